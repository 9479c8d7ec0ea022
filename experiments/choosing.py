"""Does choosing on held-out known classes work? Settings that were scored there and on the novel classes.

    python experiments/choosing.py [--results results] --out docs/images/choosing.png

Gathers every setting that has rows of both kinds (choices.jsonl, results.jsonl: honest, uniform tasks), draws the ACC
on novel classes over that on held-out ones, and prints their rank correlation in each group: one dataset, method,
number of observations, scoring set, and number of classes held out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from common import Parser, Table, markdown, run
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import rankdata

from medi.bench.grid import ALL
from medi.bench.rows import read_rows
from medi.core.errors import InputError
from medi.core.files import make_folder
from medi.data.facts import BENCHMARKS
from medi.registry import title_of

FEWEST = 3
"""Settings that a rank correlation is computed from, at least."""
DRAWS, MOST_ORDERS = 2000, 8
"""Of bootstrap and permutations; up to so many settings, every order counts instead."""

Rows = Sequence[dict[str, Any]]
Question = tuple[str, str, str, int]
"""Dataset, observations, scoring set, and classes in a task when known ones are held out."""


@dataclass(frozen=True)
class Setting:
    """One setting that was scored on held-out known classes and on novel ones; ACC in percent.

    Attributes:
        question: What it was asked.
        method: Whose setting.
        name: Of the candidate.
        held_out: By split.
        novel: By seed.
        same_code: Whether the rows of both kinds are of one commit.
    """

    question: Question
    method: str
    name: str
    held_out: Mapping[tuple[str, ...], float]
    novel: Sequence[float]
    same_code: bool


def gather(trials: Rows, results: Rows) -> list[Setting]:
    """Every setting with trials and results: of the same dataset, method, observations, scoring set and settings."""
    novel: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    tried: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in results:
        if row["regime"] == "honest" and row["sampler"] in (None, "uniform"):
            novel.setdefault(_key(row), []).append(row)
    for row in trials:
        if row["regime"] == "honest" and _key(row) in novel:
            tried.setdefault((*_key(row), row["asked_way"]), []).append(row)
    found = []
    for (dataset, method, observations, score, settings, way), mine in tried.items():
        theirs = novel[dataset, method, observations, score, settings]
        found.append(
            Setting(
                (dataset, observations, score, way),
                method,
                mine[-1]["config"],
                {tuple(row["held_out"]): 100 * row["acc"] for row in mine},
                [100 * row["acc"] for row in theirs],
                len({row.get("commit") for row in (*mine, *theirs)}) == 1,
            )
        )
    return found


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["dataset"], row["method"], str(row["observations"]), row["score"], _frozen(row["settings"])


def _frozen(settings: Any) -> Any:
    """Settings to compare: what is none, off or empty is as good as absent, as rows of earlier versions have it."""
    if isinstance(settings, dict):
        inside = {name: _frozen(value) for name, value in settings.items()}
        return tuple(sorted((name, value) for name, value in inside.items() if value))
    if isinstance(settings, list):
        return tuple(map(_frozen, settings))
    return settings or None


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation of n pairs, its 95 % bootstrap interval, and how often chance does as well."""

    n: int
    rho: float
    low: float
    high: float
    p: float


def correlate(first: Sequence[float], second: Sequence[float], seed: int = 0) -> Correlation:
    """The rank correlation of two lists; equal values share their mean rank.

    p is the share of orders in which the correlation is as large: of all orders up to `MOST_ORDERS` values, else of
    random ones. A bootstrap sample that has no order, with one value on either side, does not count.
    """
    x, y = np.asarray(first, float), np.asarray(second, float)
    n, rng = len(x), np.random.default_rng(seed)
    (rho,) = _spearman(x[None], y[None])
    every = n <= MOST_ORDERS
    orders = np.array(list(permutations(range(n)))) if every else np.argsort(rng.random((DRAWS, n)), axis=1)
    as_large = int((_spearman(np.broadcast_to(x, orders.shape), y[orders]) >= rho - 1e-12).sum())
    drawn = rng.integers(0, n, (DRAWS, n))
    low, high = np.nanquantile(_spearman(x[drawn], y[drawn]), [0.025, 0.975])
    # Of random orders, the one that was found is one more.
    return Correlation(n, float(rho), float(low), float(high), (as_large + (not every)) / (len(orders) + (not every)))


def _spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank correlations of rows (draws, n) of values; not a number where a row has one value alone."""
    a, b = (rankdata(values, axis=1) - (values.shape[1] + 1) / 2 for values in (x, y))
    scale = np.sqrt((a * a).sum(1) * (b * b).sum(1))
    return np.divide((a * b).sum(1), scale, out=np.full(len(x), np.nan), where=scale > 0)


class Comparison:
    """Settings of one or several methods that were asked the same; ACC is the mean over splits that all were tried on.

    A setting is not judged by easier classes than another. Where no split is shared, there is nothing to compare.
    """

    def __init__(self, settings: Sequence[Setting]) -> None:
        splits = sorted(set.intersection(*(set(one.held_out) for one in settings)))
        self.settings = settings if splits else []
        self.splits = len(splits)
        self.held_out = [fmean(one.held_out[split] for split in splits) for one in self.settings]
        self.novel = [fmean(one.novel) for one in self.settings]

    @property
    def question(self) -> Question:
        """What the settings were asked."""
        return self.settings[0].question

    @property
    def title(self) -> str:
        """Dataset, methods and question in words."""
        dataset, observations, score, way = self.question
        methods = ", ".join(sorted({title_of(one.method) for one in self.settings}))
        shown = "everything observed" if observations == ALL else f"{observations} observations"
        return f"{BENCHMARKS[dataset].title}, {methods}; {shown}, {score}; {way}-way where held out"

    @property
    def first(self) -> int:
        """Which setting the held-out classes choose."""
        return max(range(len(self.held_out)), key=self.held_out.__getitem__)

    def correlation(self) -> Correlation:
        """Of ACC on held-out and on novel classes."""
        return correlate(self.held_out, self.novel)


def comparisons(settings: Sequence[Setting]) -> list[Comparison]:
    """All settings of every question together, then those of each method where there are several methods."""
    groups: dict[tuple[Any, ...], list[Setting]] = {}
    for one in settings:
        groups.setdefault((one.question, ""), []).append(one)
        groups.setdefault((one.question, one.method), []).append(one)
    found = []
    for (question, method), members in groups.items():
        if not method or len({one.method for one in groups[question, ""]}) > 1:
            found.append(Comparison(members))
    enough = [one for one in found if len(one.settings) >= FEWEST]
    return sorted(enough, key=lambda one: (one.question, -len(one.settings)))


def correlation_table(settings: Sequence[Setting]) -> Table:
    """One line a comparison."""
    heading = ["compared", "n", "splits", "seeds", "ρ (95 %)", "p", "chosen: ACC", "best: ACC"]
    lines = []
    for one in comparisons(settings):
        found = one.correlation()
        seeds = [len(member.novel) for member in one.settings]
        lines.append(
            [
                one.title,
                str(found.n),
                str(one.splits),
                str(min(seeds)) if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}",
                f"{found.rho:.2f} ({found.low:.2f} to {found.high:.2f})",
                f"{found.p:.3f}",
                f"{one.novel[one.first]:.1f}",
                f"{max(one.novel):.1f}",
            ]
        )
    return [heading, *lines]


def draw(settings: Sequence[Setting]) -> Figure:
    """A panel a comparison: ACC on novel classes over that on held-out known ones, a colour for each method."""
    found = comparisons(settings)
    if not found:
        raise InputError(f"no {FEWEST} settings that were asked the same have rows of both kinds: give another folder.")
    columns = min(3, len(found))
    lines = -(-len(found) // columns)
    figure = Figure(figsize=(3.6 * columns, 3.4 * lines), layout="constrained")
    colours = {method: f"C{number}" for number, method in enumerate(sorted({one.method for one in settings}))}
    for place, one in enumerate(found, 1):
        axes = figure.add_subplot(lines, columns, place)
        for method in sorted({member.method for member in one.settings}):
            mine = [i for i, member in enumerate(one.settings) if member.method == method]
            points = [one.held_out[i] for i in mine], [one.novel[i] for i in mine]
            axes.scatter(*points, color=colours[method], label=title_of(method), s=30, zorder=2)
        chosen = one.held_out[one.first], one.novel[one.first]
        axes.scatter(*chosen, s=130, facecolors="none", edgecolors="black", label="chosen", zorder=3)
        correlation = one.correlation()
        head = one.title.replace("; ", "\n", 1)
        axes.set_title(f"{head}\nρ = {correlation.rho:.2f}, n = {correlation.n}", fontsize=8)
        axes.set_xlabel("ACC on held-out known classes", fontsize=8)
        axes.set_ylabel("ACC on novel classes", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    return figure


def read_settings(results: Path) -> list[Setting]:
    """Every setting of the folders under `results` that has rows of both kinds."""
    if not results.is_dir():
        raise InputError(f"--results {results}: there is no such folder.")
    trials, novel = (
        [row for name in names for path in sorted(results.glob(f"*/{name}.jsonl")) for row in read_rows(path)]
        for names in (("choices", "threes"), ("results",))
    )
    return gather(trials, novel)


def main(parser: Parser) -> None:
    """Gather, draw and print."""
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of folders of rows")
    parser.add_argument("--out", type=Path, required=True, help="the picture")
    options = parser.parse_args()
    settings = read_settings(options.results)
    make_folder(options.out.parent)
    draw(settings).savefig(options.out, dpi=110)
    print(markdown(correlation_table(settings)), end="")


if __name__ == "__main__":
    run(main, __doc__)
