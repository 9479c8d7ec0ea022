"""Reading results back: every row is checked, so that a table never ends in a traceback or prints `nan`."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from medi.bench.grid import ALL, REGIMES, SCORES, SIZES
from medi.errors import InputError
from medi.runtime.files import read_journal


def _text(value: object) -> bool:
    return isinstance(value, str)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return (_whole(value) or isinstance(value, float)) and math.isfinite(float(value))  # type: ignore[arg-type]


FIELDS: dict[str, Callable[[object], bool]] = {
    "dataset": _text,
    "method": _text,
    "config": _text,
    "sampler": lambda value: value is None or _text(value),
    "way": _whole,
    "observations": lambda value: value == ALL or _whole(value),
    "regime": lambda value: value in REGIMES,
    "score": lambda value: value in SCORES,
    "seed": _whole,
    "acc": _number,
    "nmi": _number,
    "ari": _number,
    "chance": _number,
    "acc_ci95": lambda value: value is None or _number(value),
    "episodes": _whole,
    "balance": lambda value: isinstance(value, bool),
}
"""What a row must have for a table to be made of it."""
LATER_FIELDS: dict[str, Callable[[object], bool]] = {
    "sizes": lambda value: value in SIZES,
    "confidence": _number,
    "ece": _number,
}
"""What rows of earlier versions do not have."""


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a results file; one that `medi bench` cannot have written is refused by file, number and field."""
    rows = read_journal(path)
    for number, row in enumerate(rows, 1):
        for field, valid in (FIELDS | LATER_FIELDS).items():
            if (field in FIELDS and field not in row) or (field in row and not valid(row[field])):
                found = repr(row[field]) if field in row else "nothing"
                raise InputError(f"{path}, row {number}: {field} is {found}; mend or delete that line.")
    return rows
