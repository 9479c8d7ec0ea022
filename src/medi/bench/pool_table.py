"""The table of runs that score the engine of `medi discover` on pools."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from medi.bench.grid import CLASSES, ENGINE, POOLS, Run
from medi.bench.rows import by_setting, scored
from medi.registry import METHOD_NAMES, PLAIN

MEASURES = {
    "ACC": "acc",
    "chance": "chance",
    "right lines": "acc_observed",
    "stated": "line_confidence",
    "groups": "number",
    "within 20 %": "number_near",
    "in interval": "interval_holds",
    "novel right": "novel_right",
    "novel called known": "novel_called_known",
    "known named": "known_named",
    "one-offs alone": "alone_right",
}
"""Columns and the fields of a row that they show."""
TOLD = ("dataset", "task", "pool", "number", "method", "config", "compared by")
POOL_COLUMNS = (*TOLD, "n", "pools", *MEASURES, "std", "ECE", "ECE of lines")
POOLS_NOTE = (
    "Pools go the road of `medi discover`. In percent, but for groups and ECE; n seeds, std over them. pool: pure, "
    "novel classes alone, or mixed with as many known classes and one-offs. number: of novel classes, told or found "
    "(auto). "
    "ACC: further images of novel classes, recognised one by one; a known class or none is wrong. right lines: of the "
    "pool, all kinds of items; stated: their mean confidence. in interval: pools whose 90 % interval holds the number. "
    "ECE: expected calibration error, 0 (as sure as right) to 1."
)


def pool_cells(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A line for each setting, the mean over seeds; without those where training diverged."""
    settings = by_setting(scored(rows))
    return [_cells(run, settings[run]) for run in sorted(settings, key=_order)]


def _cells(run: Run, rows: Sequence[dict[str, Any]]) -> list[str]:
    shown = {column: [row[name] for row in rows if name in row] for column, name in MEASURES.items()}
    accs = shown["ACC"]
    sizes = "" if run.sizes == "equal" else " unequal"
    return [
        run.dataset,
        f"{run.way}-way {run.observations}-obs{sizes}",
        run.pool,
        run.classes,
        "/".join(part for part in (run.method, run.sampler, "" if run.grouping == ENGINE else run.grouping) if part),
        run.config,
        ", ".join(dict.fromkeys(row["compared_by"] for row in rows)),
        str(len(rows)),
        str(min(row["episodes"] for row in rows)),
        *(_mean(column, values) for column, values in shown.items()),
        f"{100 * stdev(accs):.1f}" if len(accs) > 1 else "",
        *(f"{fmean(row[name] for row in rows):.2f}" for name in ("ece", "line_ece")),
    ]


def _mean(column: str, values: Sequence[float]) -> str:
    if not values:
        return ""
    return f"{fmean(values):.1f}" if column == "groups" else f"{100 * fmean(values):.1f}"


def _order(run: Run) -> tuple[Any, ...]:
    names = (PLAIN, *METHOD_NAMES)
    place = names.index(run.method) if run.method in names else len(names)
    return (run.dataset, run.sizes, run.observations, run.way, POOLS.index(run.pool), CLASSES.index(run.classes),
            place, run.method, run.config, run.sampler or "")  # fmt: skip
