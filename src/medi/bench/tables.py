"""Tables from results: mean, deviation and n over seeds, beside chance, the oracle and the paper."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from medi.bench.grid import ALL, REGIMES, Run
from medi.bench.published import Published, published
from medi.bench.rows import read_rows
from medi.errors import InputError

COLUMNS = (
    "dataset", "task", "score", "sizes", "method", "regime", "balance", "ACC", "std", "n", "±95", "episodes", "NMI",
    "ARI", "ECE", "chance", "oracle", "paper",
)  # fmt: skip
NOT_PUBLISHED = "not published"
NOTE = (
    "ACC, NMI, ARI, chance, oracle and paper in percent; std and n over seeds; ±95: half the 95 % interval over a "
    "seed's episodes. balance: the method was told that classes are equally large. ECE: expected calibration error of "
    "its confidence, 0 (as sure as right) to 1. grouped and oracle use "
    "the true groups of the observations. The paper's MP averages the "
    "observations by true class (grouped), its scoring set is not stated, and it is not clear "
    "what its K-means on Omniglot clusters."
)
NOTE_ON_ALL = (
    "all-obs: ACC on the test split after observing the whole training split of the novel classes; on Omniglot the "
    "mean over its alphabets, each a task of its own, on the observed images themselves."
)


NOTE_ON_ASSUMED = "assumed: it was not told, but its loss draws clusters to equal size."
NOTE_ON_UNEQUAL = (
    "unequal: 1 to twice as many observations of a class, 5 to 25 queries (fewer where a class has fewer images); ±95 "
    "over draws of sizes."
)


def note(lines: Sequence[Line]) -> str:
    """What a reader of these lines has to know."""
    parts = [
        NOTE,
        NOTE_ON_ALL if any(line.run.observations == ALL for line in lines) else "",
        NOTE_ON_ASSUMED if any(line.assumed and not line.run.balance for line in lines) else "",
        NOTE_ON_UNEQUAL if any(line.run.sizes == "unequal" for line in lines) else "",
    ]
    return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Line:
    """One line of a table: the runs that differ in their seed alone.

    `observed` is the ACC on the observations themselves, None where no row has it.
    `assumed`: the method's loss draws clusters to equal size, whatever it was told.
    """

    run: Run
    acc: tuple[float, ...]
    nmi: float
    ari: float
    interval: float | None
    episodes: int
    ece: float | None
    chance: float
    oracle: float | None
    paper: Published | None
    observed: float | None
    assumed: bool

    def cells(self) -> list[str]:
        """The line as text, a cell a column."""
        run = self.run
        kind = "/".join(
            part for part in (run.method, run.config if run.config != "default" else "", run.sampler) if part
        )
        return [
            run.dataset,
            f"{run.way}-way {run.observations}-obs",
            run.score,
            run.sizes,
            kind,
            run.regime,
            "yes" if run.balance else "assumed" if self.assumed else "no",
            _percent(fmean(self.acc)),
            _percent(stdev(self.acc)) if len(self.acc) > 1 else "",
            str(len(self.acc)),
            _percent(self.interval),
            str(self.episodes),
            _percent(self.nmi),
            _percent(self.ari),
            "" if self.ece is None else f"{self.ece:.2f}",
            _percent(self.chance),
            _percent(self.oracle),
            NOT_PUBLISHED if self.paper is None else self.paper.percent(),
        ]


def read_results(*folders: Path) -> list[dict[str, Any]]:
    """The rows of each folder's `results.jsonl`, of every one below it, or of the one file that is named."""
    rows = []
    for folder in folders:
        paths = sorted(folder.rglob("results.jsonl")) if folder.is_dir() else [folder] if folder.is_file() else []
        found = [row for path in paths for row in read_rows(path)]
        if not found:
            raise InputError(f"no results in {folder}: run `medi bench run --out {folder} …` first.")
        rows += found
    return rows


def summarise(rows: Sequence[dict[str, Any]]) -> list[Line]:
    """Group rows by everything but the seed, in the order of settings; the last row of a repeated run counts."""
    latest = {Run.of_row(row): row for row in rows}
    groups: dict[Run, list[dict[str, Any]]] = {}
    for run, row in latest.items():
        groups.setdefault(replace(run, seed=0), []).append(row)
    means = {run: fmean(row["acc"] for row in group) for run, group in groups.items()}
    lines = []
    for run, group in groups.items():
        intervals = [row["acc_ci95"] for row in group if row["acc_ci95"] is not None]
        calibration = [row["ece"] for row in group if "ece" in row]
        observed = [row["acc_observed"] for row in group if row.get("acc_observed") is not None]
        lines.append(
            Line(
                run=run,
                acc=tuple(row["acc"] for row in group),
                nmi=fmean(row["nmi"] for row in group),
                ari=fmean(row["ari"] for row in group),
                interval=fmean(intervals) if intervals else None,
                episodes=min(row["episodes"] for row in group),
                ece=fmean(calibration) if calibration else None,
                chance=fmean(row["chance"] for row in group),
                oracle=means.get(replace(run, regime="grouped", balance=False)),
                paper=published(run),
                observed=fmean(observed) if observed else None,
                assumed=any(row.get("assumes_equal_sizes", False) for row in group),
            )
        )
    return sorted(lines, key=_order)


def render(lines: Sequence[Line], form: str) -> str:
    """A table as csv, md (Markdown) or latex; `text` is shown by the terminal."""
    cells = [line.cells() for line in lines]
    match form:
        case "csv":
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([COLUMNS, *cells])
            return text.getvalue()
        case "md":
            rows = [COLUMNS, ["---"] * len(COLUMNS), *cells]
            return "".join("| " + " | ".join(row) + " |\n" for row in rows) + f"\n{note(lines)}\n"
        case "latex":
            body = "".join(" & ".join(map(_latex, row)) + r" \\" + "\n" for row in cells)
            head = " & ".join(map(_latex, COLUMNS))
            return (
                f"\\begin{{tabular}}{{{'l' * 7}{'r' * (len(COLUMNS) - 7)}}}\n\\toprule\n{head} \\\\\n\\midrule\n"
                f"{body}\\bottomrule\n\\end{{tabular}}\n% {note(lines)}\n"
            )
        case _:
            raise ValueError(f"no such form of a table: {form}")


def _order(line: Line) -> tuple[Any, ...]:
    run = line.run
    return (run.dataset, run.score, run.sizes, str(run.observations), run.way, run.method, run.config,
            run.sampler or "", REGIMES.index(run.regime), not run.balance)  # fmt: skip


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _latex(text: str) -> str:
    return text.replace("%", r"\%").replace("_", r"\_").replace("±", r"$\pm$")
