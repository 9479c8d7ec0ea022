"""The tables of `docs/pools.md`: how each method does on the road of `medi discover`."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from tables import Cells, markdown

from medi.bench.grid import AUTO, GIVEN, MIXED, ONLY_NOVEL
from medi.bench.rows import scored
from medi.metrics import chance
from medi.registry import METHOD_NAMES, PLAIN, title_of

SETS = {"glyphs": "letters", "omniglot": "Omniglot", "cifar10": "CIFAR-10", "svhn": "SVHN", "cifar100": "CIFAR-100"}
Rows = Sequence[dict[str, Any]]


def tables(rows: Rows) -> dict[str, str]:
    """A table of lines that are right, by set and setting, and one of every statement in the setting of people."""
    found = _by_method(rows)
    return {
        "right": markdown([*map(_right, found), _by_chance([row for some in found for row in some])]),
        "said": said(rows),
    }


def said(rows: Rows) -> str:
    """What is said of mixed pools whose number nobody tells: means over the sets that every method was run on."""
    found = [_setting(some, MIXED, AUTO) for some in _by_method(rows)]
    sets = set.intersection(*({row["dataset"] for row in some} for some in found)) if found else set()
    return markdown([_said([row for row in some if row["dataset"] in sets]) for some in found if sets])


def _by_method(rows: Rows) -> list[list[dict[str, Any]]]:
    ours = [row for row in scored(rows) if row["sizes"] == "equal"]
    return [some for name in (PLAIN, *METHOD_NAMES) if (some := [row for row in ours if row["method"] == name])]


def _setting(rows: Rows, pool: str, classes: str) -> list[dict[str, Any]]:
    return [row for row in rows if (row["pool"], row["classes"]) == (pool, classes)]


def _right(rows: Rows) -> Cells:
    """Right lines of one method, pure and told / pure / mixed."""
    cells = {"": _name(rows), "n": _draws(rows)}
    for name, title in SETS.items():
        mine = [row for row in rows if row["dataset"] == name]
        parts = [_setting(mine, *setting) for setting in ((ONLY_NOVEL, GIVEN), (ONLY_NOVEL, AUTO), (MIXED, AUTO))]
        if all(parts):
            cells[title] = " / ".join(_percent(part, "acc_observed") for part in parts)
    return cells


def _by_chance(rows: Rows) -> Cells:
    """What random groups of the right number and sizes have, where everything is new and the number is told."""
    sizes = {SETS[row["dataset"]]: (int(row["observations"]), row["way"]) for row in rows if row["dataset"] in SETS}
    return {"": "chance, told"} | {
        title: f"{100 * chance([observed] * way, way):.0f}" for title, (observed, way) in sizes.items()
    }


def _said(rows: Rows) -> Cells:
    return {
        "": _name(rows),
        "n": _draws(rows),
        "right lines": _percent(rows, "acc_observed"),
        "stated": _percent(rows, "line_confidence"),
        "novel right": _percent(rows, "novel_right"),
        "novel called known": _percent(rows, "novel_called_known"),
        "known named": _percent(rows, "known_named"),
        "one-offs alone": _percent(rows, "alone_right"),
        "number within a fifth": _percent(rows, "number_near"),
        "number in its interval": _percent(rows, "interval_holds"),
        "further photos right": _percent(rows, "acc"),
        "stated of them": _percent(rows, "confidence"),
    }


def _name(rows: Rows) -> str:
    name = rows[0]["method"]
    return "plain" if name == PLAIN else title_of(name)


def _draws(rows: Rows) -> str:
    """Seeds x pools of each."""
    return f"{len({row['seed'] for row in rows})} x {min(row['episodes'] for row in rows)}"


def _percent(rows: Rows, field: str) -> str:
    """A mean; over sets with five novel classes there are no one-offs, and nothing is said of them."""
    found = [row[field] for row in rows if field in row]
    return f"{100 * fmean(found):.0f}" if found else ""
