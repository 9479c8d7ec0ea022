"""Reading results back: every row is checked, so that a table never ends in a traceback or prints `nan`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from medi.bench.grid import IDENTITY, METHODS_OWN, Run
from medi.core.errors import InputError
from medi.core.files import read_journal
from medi.schemas import fault, schema

SCORES_OF_A_ROW = ("acc", "nmi", "ari")
"""None where training diverged; `diverged` then says how."""
LATER_FIELDS = ("sizes", "grouping", "classes", "pool")
"""What identifies a run today and rows of earlier versions do not have."""
NEEDED = (*(name for name in IDENTITY if name not in LATER_FIELDS), *SCORES_OF_A_ROW, "chance", "acc_ci95", "episodes")
"""What a row must have for a table to be made of it."""
OF_POOLS = ("compared_by", "ece", "line_ece")
"""What it must have beside that where pools were grouped as `medi discover` groups them."""


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a results file; one that `medi bench` cannot have written is refused by file, number and field."""
    rows = read_journal(path)
    for number, row in enumerate(rows, 1):
        if (field := _wrong_field(row)) is not None:
            found = repr(row[field])[:80] if field in row else "nothing"
            raise InputError(f"{path}, row {number}: {field} is {found}; mend or delete that line.")
    return rows


def _wrong_field(row: dict[str, Any]) -> str | None:
    """The first field that a row lacks, or that its schema does not allow; only a diverged training has no scores."""
    rules = schema("row")["properties"]
    more = OF_POOLS if row.get("grouping", METHODS_OWN) != METHODS_OWN and "diverged" not in row else ()
    missing = (name for name in (*NEEDED, *more) if name not in row)
    without_score = (name for name in SCORES_OF_A_ROW if row.get(name) is None and "diverged" not in row)
    not_allowed = (name for name in row if name in rules and fault(rules[name], row[name]) is not None)
    return next(chain(missing, without_score, not_allowed), None)


def no_scores(error: Exception) -> dict[str, Any]:
    """What a row has instead of scores where training diverged."""
    return dict.fromkeys((*SCORES_OF_A_ROW, "acc_ci95")) | {"diverged": str(error)}


def scored(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that have scores: without those of trainings that diverged."""
    return [row for row in rows if row["acc"] is not None]


def by_setting(rows: Iterable[dict[str, Any]]) -> dict[Run, list[dict[str, Any]]]:
    """Rows by run without its seed; the last row of a repeated run counts."""
    settings: dict[Run, list[dict[str, Any]]] = {}
    for run, row in {Run.of_row(row): row for row in rows}.items():
        settings.setdefault(replace(run, seed=0), []).append(row)
    return settings
