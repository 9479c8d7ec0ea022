"""Tables from results: mean, deviation and n over seeds, beside chance, the oracle and the paper."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from medi.bench.grid import ALL, CLASSES, ENGINE, POOLS, REGIMES, Run
from medi.bench.published import Published, published
from medi.bench.rows import by_setting, read_rows, scored
from medi.core.errors import InputError
from medi.registry import METHOD_NAMES, PLAIN

METHOD_COLUMNS = (
    "dataset", "task", "score", "sizes", "method", "regime", "balance", "ACC", "std", "n", "±95", "episodes", "NMI",
    "ARI", "ECE", "chance", "oracle", "paper",
)  # fmt: skip
NOT_PUBLISHED = "not published"
DIVERGED = "diverged"
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
NOTE_ON_DIVERGED = "n of N: with the other seeds, training diverged."


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


def note(lines: Sequence[Line]) -> str:
    """What a reader of these lines has to know."""
    parts = [
        NOTE,
        NOTE_ON_ALL if any(line.run.observations == ALL for line in lines) else "",
        NOTE_ON_ASSUMED if any(line.assumed and not line.run.balance for line in lines) else "",
        NOTE_ON_UNEQUAL if any(line.run.sizes == "unequal" for line in lines) else "",
        NOTE_ON_DIVERGED if any(line.diverged for line in lines) else "",
    ]
    return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Line:
    """One line of a table: the runs that differ in their seed alone.

    `acc` is empty, and other scores are None, where training diverged with every seed; `diverged` counts those seeds.
    `observed` is the ACC on the observations themselves, None where no row has it.
    `assumed`: the method's loss draws clusters to equal size, whatever it was told.
    """

    run: Run
    acc: tuple[float, ...]
    diverged: int
    nmi: float | None
    ari: float | None
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
            _percent(fmean(self.acc)) if self.acc else DIVERGED,
            _percent(stdev(self.acc)) if len(self.acc) > 1 else "",
            f"{len(self.acc)}" + (f" of {len(self.acc) + self.diverged}" if self.diverged else ""),
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
    """A line for each setting, over its seeds, in the order of settings."""
    groups, lines = by_setting(rows), []
    for run, group in groups.items():
        acc = tuple(row["acc"] for row in scored(group))
        lines.append(
            Line(
                run=run,
                acc=acc,
                diverged=len(group) - len(acc),
                nmi=_mean(group, "nmi"),
                ari=_mean(group, "ari"),
                interval=_mean(group, "acc_ci95"),
                episodes=min(row["episodes"] for row in group),
                ece=_mean(group, "ece"),
                chance=fmean(row["chance"] for row in group),
                oracle=_mean(groups.get(replace(run, regime="grouped", balance=False), ()), "acc"),
                paper=published(run),
                observed=_mean(group, "acc_observed"),
                assumed=any(row.get("assumes_equal_sizes", False) for row in group),
            )
        )
    return sorted(lines, key=_order)


def _mean(rows: Sequence[dict[str, Any]], name: str) -> float | None:
    """The mean of a field over the rows that have it."""
    values = [row[name] for row in rows if row.get(name) is not None]
    return fmean(values) if values else None


@dataclass(frozen=True)
class Table:
    """Cells as text under their columns, the first `words` of which hold words, and what a reader has to know."""

    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    words: int
    note: str

    def render(self, form: str) -> str:
        """As csv, md (Markdown) or latex; `text` is shown by the terminal."""
        match form:
            case "csv":
                text = io.StringIO()
                csv.writer(text, lineterminator="\n").writerows([self.columns, *self.cells])
                return text.getvalue()
            case "md":
                rows = [self.columns, ["---"] * len(self.columns), *self.cells]
                return "".join("| " + " | ".join(row) + " |\n" for row in rows) + f"\n{self.note}\n"
            case "latex":
                body = "".join(" & ".join(map(_latex, row)) + r" \\" + "\n" for row in self.cells)
                head = " & ".join(map(_latex, self.columns))
                return (
                    f"\\begin{{tabular}}{{{'l' * self.words}{'r' * (len(self.columns) - self.words)}}}\n\\toprule\n"
                    f"{head} \\\\\n\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n% {self.note}\n"
                )
            case _:
                raise ValueError(f"no such form of a table: {form}")


def tables_of(rows: Sequence[dict[str, Any]]) -> list[Table]:
    """The table of methods by themselves, then that of pools; what there are no rows of is left out."""
    pools = [row for row in rows if Run.of_row(row).by_engine]
    lines = summarise([row for row in rows if not Run.of_row(row).by_engine])
    found = [Table(METHOD_COLUMNS, [line.cells() for line in lines], 7, note(lines))] if lines else []
    return found + ([Table(POOL_COLUMNS, pool_cells(pools), len(TOLD), POOLS_NOTE)] if pools else [])


def render(rows: Sequence[dict[str, Any]], form: str) -> str:
    """The tables of rows, one after the other."""
    return "\n".join(table.render(form) for table in tables_of(rows))


def _order(line: Line) -> tuple[Any, ...]:
    run = line.run
    return (run.dataset, run.score, run.sizes, str(run.observations), run.way, run.method, run.config,
            run.sampler or "", REGIMES.index(run.regime), not run.balance)  # fmt: skip


def _percent(value: float | None, whole: float = 100) -> str:
    return "" if value is None else f"{whole * value:.1f}"


def _latex(text: str) -> str:
    return text.replace("%", r"\%").replace("_", r"\_").replace("±", r"$\pm$")


def pool_cells(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A line for each setting, the mean over seeds; without those where training diverged."""
    settings = by_setting(scored(rows))
    return [_pool_line(run, settings[run]) for run in sorted(settings, key=_pool_order)]


def _pool_line(run: Run, rows: Sequence[dict[str, Any]]) -> list[str]:
    accs = [row["acc"] for row in rows]
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
        *(_percent(_mean(rows, name), 1 if name == "number" else 100) for name in MEASURES.values()),
        _percent(stdev(accs)) if len(accs) > 1 else "",
        *(f"{fmean(row[name] for row in rows):.2f}" for name in ("ece", "line_ece")),
    ]


def _pool_order(run: Run) -> tuple[Any, ...]:
    names = (PLAIN, *METHOD_NAMES)
    place = names.index(run.method) if run.method in names else len(names)
    return (run.dataset, run.sizes, run.observations, run.way, POOLS.index(run.pool), CLASSES.index(run.classes),
            place, run.method, run.config, run.sampler or "")  # fmt: skip
