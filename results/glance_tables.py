"""The tables of docs/glance.md and results/glance, from rows that `benchmarks/glance.py` wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np
from tables import NOT_YET, Cells, Rows, markdown

OURS = {"pure": "medi --only-novel", "mixed": "medi"}
"""The approach that others are compared with in each pool."""
POOLS = ("pure", "mixed")
GUESSING = {
    "medi --only-novel": "MEDI",
    "medi": "MEDI",
    "medi, names as groups": "MEDI, names as groups",
    "whitened Ward": "whitened Ward",
    "HDBSCAN": "HDBSCAN",
    "k-means": "k-means",
    "photo tool, tuned": "photo tool's rule",
    "classifier, then whitened Ward": "classifier + Ward",
}
TOLD = {
    "medi, told": "MEDI, told how many",
    "whitened Ward, told": "whitened Ward, told",
}
"""Who is told the number of groups; `cases_table` has more of them."""
ONLY_MIXED = ("medi", "classifier, then whitened Ward")
"""Not shown for pure pools: there they are not what one would run."""
TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "omniglot": "Omniglot", "glyphs": "letters"}
"""Of the sets that are no folder of photos."""


def page_tables(rows: Rows) -> dict[str, str]:
    """Approaches by what a newcomer asks, a table a pool, and how sure the figures are."""
    if not rows:
        return dict.fromkeys((*POOLS, "notes"), NOT_YET)
    found = {}
    for pool in POOLS:
        mine = [row for row in rows if row["pool"] == pool]
        shown = [name for name in (*GUESSING, *TOLD) if _figures(mine, name)]
        shown = [name for name in shown if pool == "mixed" or name not in ONLY_MIXED]
        lines = {name: _cells(mine, name, pool, sets_of(rows)) for name in shown}
        _mark_best([cells for name, cells in lines.items() if name in GUESSING])
        found[pool] = markdown([{"": (GUESSING | TOLD)[name]} | cells for name, cells in lines.items()])
    return found | {"notes": _notes(rows)}


def cases_table(rows: Rows) -> str:
    """Every approach in every case."""
    table = []
    for name in sets_of(rows):
        for pool in POOLS:
            for groups in sorted({row["groups"] for row in rows if row["set"] == name}):
                mine = [row for row in rows if (row["set"], row["pool"], row["groups"]) == (name, pool, groups)]
                approaches = dict.fromkeys(approach for row in mine for approach in row["approaches"])
                case = {"set": name, "pool": pool, "new classes": str(groups), "draws": str(len(mine))}
                table += [case | {"approach": one} | _case_cells(mine, one, pool) for one in approaches]
    return markdown(table)


def sets_of(rows: Rows) -> list[str]:
    """Names of the sets, photos first."""
    names = dict.fromkeys(row["set"] for row in rows)
    return sorted(names, key=lambda name: list(TITLES).index(name) if name in TITLES else -1)


def stated_and_right(rows: Rows, name: str) -> tuple[float, float]:
    """Mean confidence of an approach over all photos, and the share of them that is right."""
    total = {
        key: np.sum([one["bins"][key] for one in _figures(rows, name)]) for key in ("lines", "confidence", "right")
    }
    return float(total["confidence"] / total["lines"]), float(total["right"] / total["lines"])


def off(one: dict[str, Any]) -> float:
    """How far the number of groups is off, as a share of the true number."""
    return abs(one["groups"] - one["classes"]) / max(one["classes"], 1)


def _figures(rows: Rows, name: str) -> list[dict[str, Any]]:
    return [row["approaches"][name] for row in rows if name in row["approaches"]]


def _cells(rows: Rows, name: str, pool: str, sets: Sequence[str]) -> Cells:
    cells = {}
    for one in sets:
        mine = _figures([row for row in rows if row["set"] == one], name)
        cells[TITLES.get(one, one)] = _percent([figures["acc"] for figures in mine])
    return cells | {
        "number off by": "" if name in TOLD else _by_set(rows, name, off),
        "known named": _by_set(rows, name, lambda one: one.get("known named")),
        "one-offs alone": _by_set(rows, name, lambda one: one.get("one-offs alone")),
        "all photos right": _by_set(rows, name, lambda one: one["all right"]) if pool == "mixed" else "",
        "time": _ratio(_figures(rows, name), _figures(rows, OURS[pool])) if pool == "pure" else "",
    }


def _by_set(rows: Rows, name: str, figure: Callable[[dict[str, Any]], float | None]) -> str:
    """The mean over sets of a set's mean; "" where it is not defined."""
    means = []
    for one in sets_of(rows):
        values = [figure(figures) for figures in _figures([row for row in rows if row["set"] == one], name)]
        if kept := [value for value in values if value is not None]:
            means.append(fmean(kept))
    return _percent(means)


def _mark_best(lines: Sequence[Cells]) -> None:
    """The best of every column in bold; the time is not a contest."""
    for column in lines[0]:
        values = [int(cells[column]) for cells in lines if cells[column] and column != "time"]
        best = str((min if "off by" in column else max)(values, default=None))
        for cells in lines:
            if len(values) > 1 and cells[column] == best:
                cells[column] = f"**{best}**"


def _notes(rows: Rows) -> str:
    """What confidence was worth, how many draws there are, and how sure the figures are."""
    counts, confidence, errors = [], [], []
    for name in sets_of(rows):
        mine = [row for row in rows if row["set"] == name]
        title, pools = TITLES.get(name, name), [[row for row in mine if row["pool"] == pool] for pool in POOLS]
        counts.append(f"{title} {len({(row['groups'], row['draw']) for row in mine})}")
        if pools[1]:
            stated, right = stated_and_right(pools[1], "medi")
            confidence.append(f"{title} {100 * stated:.0f} / {100 * right:.0f}")
        for some in pools:
            for approach in (*GUESSING, *TOLD):
                if len(values := [one["acc"] for one in _figures(some, approach)]) > 1:
                    errors.append(100 * stdev(values) / len(values) ** 0.5)
    seconds = fmean(row["approaches"][OURS["pure"]]["seconds"] for row in rows if row["pool"] == "pure")
    sure = f"; standard errors under a set: {min(errors):.1f} to {max(errors):.1f}" if errors else ""
    return (
        f"Confidence that MEDI states / photos that it puts right, second table: {', '.join(confidence)}.\n"
        f"Draws: {', '.join(counts)}{sure}. Time 1 is {seconds:.1f} s.\n"
    )


def _case_cells(rows: Rows, name: str, pool: str) -> Cells:
    found = _figures(rows, name)
    stated = right = None
    if "bins" in found[0]:
        stated, right = stated_and_right(rows, name)
    return {
        "ACC": _spread([one["acc"] for one in found]),
        "less `medi`'s": _difference(rows, name, OURS[pool]),
        "all photos right": _spread([one["all right"] for one in found]) if pool == "mixed" else "",
        "number off": _spread([off(one) for one in found]),
        "known named": _spread([one["known named"] for one in found if "known named" in one]),
        "new called known": _spread([one["new called known"] for one in found if "new called known" in one]),
        "one-offs alone": _spread([one["one-offs alone"] for one in found if "one-offs alone" in one]),
        "stated": "" if stated is None else f"{100 * stated:.0f}",
        "right": "" if right is None else f"{100 * right:.0f}",
        "seconds": f"{fmean(one['seconds'] for one in found):.3f}",
    }


def _difference(rows: Rows, name: str, ours: str) -> str:
    """Mean difference of ACC on the same draws ± its standard error."""
    if name == ours:
        return ""
    measured = [row["approaches"] for row in rows if name in row["approaches"]]
    differences = [100 * (one[name]["acc"] - one[ours]["acc"]) for one in measured]
    error = f" ± {stdev(differences) / len(differences) ** 0.5:.1f}" if len(differences) > 1 else ""
    return f"{round(fmean(differences), 1) + 0.0:+.1f}{error}"


def _spread(shares: Sequence[float]) -> str:
    """Mean ± standard deviation over draws, percent."""
    if not shares:
        return ""
    mean = f"{100 * fmean(shares):.0f}"
    return f"{mean} ± {100 * stdev(shares):.0f}" if len(shares) > 1 else mean


def _percent(shares: Sequence[float]) -> str:
    return f"{100 * fmean(shares):.0f}" if shares else ""


def _ratio(found: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]]) -> str:
    """Seconds as a part of ours, or as a multiple, of two digits at most."""
    share = fmean(one["seconds"] for one in found) / fmean(one["seconds"] for one in ours)
    return f"1/{float(f'{1 / share:.2g}'):.0f}" if share < 2 / 3 else f"{round(share, 1):g}"
