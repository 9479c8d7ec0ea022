"""Does choosing on held-out known classes work? Settings that were scored there and on the novel classes.

    python experiments/choosing.py measure --dataset svhn,cifar10,glyphs --out results/choosing
    python experiments/choosing.py draw --results results --out docs/images/choosing.png

`measure` scores the settings of CANDIDATES, all of them, on splits of the known classes and on the novel ones: MP
shortened for a CPU, 5 observations, honest. Nothing is chosen by it. `draw` gathers every setting that has rows of
both kinds, by `measure` or by any other run, and prints the rank correlation of either ACC in each group: one dataset,
method, number of observations, scoring set, and number of classes held out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from common import Parser, Table, markdown, positive, run
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import rankdata

from medi.bench.choose import try_candidates
from medi.bench.grid import ALL, Run, parse_datasets
from medi.bench.rows import read_rows
from medi.bench.run import run_grid
from medi.data.facts import BENCHMARKS
from medi.errors import InputError
from medi.names import title_of
from medi.runtime.devices import choose_device
from medi.runtime.files import make_folder
from medi.runtime.progress import Reporter

SHORT: Mapping[str, Any] = {"from": "cpu", "schedule": {"steps": 30}}
CANDIDATES: Mapping[str, Mapping[str, Any]] = {
    "short": SHORT,
    "shorter": SHORT | {"schedule": {"steps": 8}},
    "slow": SHORT | {"schedule": {"steps": 30, "rate": 3e-4}},
    "soft": SHORT | {"temperature": 16.0},
    "euclidean": SHORT | {"distance": "euclidean"},
    "plain": SHORT | {"augmented": False},
    "turned": SHORT | {"rotations": True},
    "unit": SHORT | {"grouping": {"unit": True}},
    "mlp": SHORT | {"network": "mlp"},
    "mlp-shorter": SHORT | {"network": "mlp", "schedule": {"steps": 8}},
}
"""What `measure` compares: each differs from `short` in one respect or two."""
FEWEST = 3
"""Settings that a rank correlation is computed from, at least."""
DRAWS, MOST_ORDERS = 2000, 8
"""Of bootstrap and permutations; up to so many settings, every order counts instead."""

Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Setting:
    """One setting that was scored on held-out known classes and on novel ones; ACC in percent.

    Attributes:
        group: What it may be compared within: dataset, method, observations, scoring set, classes asked when held out.
        name: Of the candidate.
        held_out: Mean over splits.
        novel: Mean over seeds.
        splits: How many.
        seeds: How many.
        same_code: Whether the rows of both kinds are of one commit.
    """

    group: tuple[str, str, str, str, int]
    name: str
    held_out: float
    novel: float
    splits: int
    seeds: int
    same_code: bool


def gather(trials: Rows, results: Rows) -> list[Setting]:
    """Every setting with trials and honest results: the same dataset, method, observations, scoring set and settings.

    Only splits that all settings of a group were tried on count, so that none is judged by easier classes.
    """
    novel: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in results:
        if row["regime"] == "honest" and row["sampler"] in (None, "uniform"):
            novel.setdefault(_key(row), []).append(row)
    held_out: dict[tuple[Any, ...], dict[tuple[str, ...], dict[str, Any]]] = {}
    for row in trials:
        key = (*_key(row), row["asked_way"])
        if row["regime"] == "honest" and key[:-1] in novel:
            held_out.setdefault(key, {})[tuple(row["held_out"])] = row
    shared: dict[tuple[Any, ...], set[tuple[str, ...]]] = {}
    for key, splits in held_out.items():
        shared[_group(key)] = shared.get(_group(key), set(splits)) & set(splits)
    found = []
    for key, by_split in held_out.items():
        mine = [by_split[split] for split in shared[_group(key)]]
        theirs = novel[key[:-1]]
        if mine:
            found.append(
                Setting(
                    _group(key),
                    mine[0]["config"],
                    100 * fmean(row["acc"] for row in mine),
                    100 * fmean(row["acc"] for row in theirs),
                    len(mine),
                    len(theirs),
                    len({row.get("commit") for row in (*mine, *theirs)}) == 1,
                )
            )
    return sorted(found, key=lambda one: (one.group, one.held_out))


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["dataset"], row["method"], str(row["observations"]), row["score"], _frozen(row["settings"])


def _group(key: tuple[Any, ...]) -> tuple[str, str, str, str, int]:
    return (*key[:4], key[-1])  # type: ignore[return-value]


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
    rho = _spearman(x, y)
    orders: Iterable[Sequence[int]]
    if n <= MOST_ORDERS:
        orders, count, own = permutations(range(n)), factorial(n), 0
    else:
        orders, count, own = (rng.permutation(n) for _ in range(DRAWS)), DRAWS + 1, 1
    as_large = own + sum(_spearman(x, y[list(order)]) >= rho - 1e-12 for order in orders)
    drawn = [_spearman(x[draw], y[draw]) for draw in rng.integers(0, n, (DRAWS, n))]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Correlation(n, rho, float(low), float(high), as_large / count)


def _spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    a, b = (rankdata(values) - (len(values) + 1) / 2 for values in (x, y))
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale else float("nan")


def by_group(settings: Sequence[Setting]) -> dict[tuple[str, str, str, str, int], list[Setting]]:
    """The settings of each group, larger groups first."""
    groups: dict[tuple[str, str, str, str, int], list[Setting]] = {}
    for one in settings:
        groups.setdefault(one.group, []).append(one)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def title(group: tuple[str, str, str, str, int]) -> str:
    """A group in words."""
    dataset, method, observations, score, way = group
    shown = "everything observed" if observations == ALL else f"{observations}-obs"
    return f"{BENCHMARKS[dataset].title}, {title_of(method)}, {shown}, {score}, {way} held out"


def correlation_table(settings: Sequence[Setting]) -> Table:
    """One line for each group that has enough settings."""
    heading = ["known", "settings compared", "n", "ρ (95 %)", "p", "first on held-out", "best", "splits", "seeds"]
    lines = []
    for group, members in by_group(settings).items():
        if len(members) < FEWEST:
            continue
        found = correlate([one.held_out for one in members], [one.novel for one in members])
        chosen = max(members, key=lambda one: one.held_out)
        lines.append(
            [
                str(BENCHMARKS[group[0]].known),
                title(group),
                str(found.n),
                f"{found.rho:.2f} ({found.low:.2f} to {found.high:.2f})",
                f"{found.p:.3f}",
                f"{chosen.novel:.1f}",
                f"{max(one.novel for one in members):.1f}",
                str(members[0].splits),
                _range([one.seeds for one in members]),
            ]
        )
    return [heading, *lines]


def _range(counts: Sequence[int]) -> str:
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def draw(settings: Sequence[Setting]) -> Figure:
    """A panel for each group that has enough settings: ACC on held-out known classes against ACC on novel ones."""
    groups = {group: members for group, members in by_group(settings).items() if len(members) >= FEWEST}
    if not groups:
        raise InputError(f"no group has {FEWEST} settings with rows of both kinds: run `measure` first.")
    columns = min(3, len(groups))
    lines = -(-len(groups) // columns)
    figure = Figure(figsize=(3.5 * columns, 3.1 * lines), layout="constrained")
    for place, (group, members) in enumerate(groups.items(), 1):
        axes = figure.add_subplot(lines, columns, place)
        first = max(members, key=lambda one: one.held_out)
        for one in members:
            colour = "tab:orange" if one is first else "tab:blue"
            axes.scatter(one.held_out, one.novel, color=colour, marker="o" if one.same_code else "s", s=26, zorder=2)
        found = correlate([one.held_out for one in members], [one.novel for one in members])
        axes.set_title(f"{title(group)}\nρ = {found.rho:.2f}, n = {found.n}", fontsize=8)
        axes.set_xlabel("ACC on held-out known classes", fontsize=8)
        axes.set_ylabel("ACC on novel classes", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3)
    return figure


def measure(
    datasets: Sequence[str],
    out: Path,
    *,
    splits: int | None,
    seeds: int,
    episodes: int,
    device: torch.device,
    reporter: Reporter,
    candidates: Mapping[str, Mapping[str, Any]] = CANDIDATES,
) -> None:
    """Score every candidate on splits of the known classes and on the novel ones; what is there is not done again."""

    def runs(dataset: str, seed: int) -> list[Run]:
        way = BENCHMARKS[dataset].way
        setting = {"sampler": "uniform", "way": way, "observations": 5, "regime": "honest", "score": "episode"}
        return [
            Run(dataset=dataset, method="mp", config=name, seed=seed, changes=dict(changes), **setting)  # type: ignore[arg-type]
            for name, changes in candidates.items()
        ]

    options = {"episodes": episodes, "device": device, "resume": True, "reporter": reporter}
    for dataset in datasets:
        try_candidates(runs(dataset, 0), out, splits=splits, **options)  # type: ignore[arg-type]
        run_grid([one for seed in range(seeds) for one in runs(dataset, seed)], out, **options)  # type: ignore[arg-type]


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
    """Measure, or gather and draw."""
    commands = parser.add_subparsers(required=True, dest="command", parser_class=Parser)
    measuring = commands.add_parser("measure", help="score all candidates on held-out and on novel classes")
    measuring.add_argument("--dataset", type=parse_datasets, required=True, help="separated by commas")
    measuring.add_argument("--out", type=Path, required=True, help="folder for rows and models")
    measuring.add_argument("--splits", type=positive, default=5, help="of the known classes; 5 where not given")
    measuring.add_argument("--seeds", type=positive, default=3, help="on novel classes; 3 where not given")
    measuring.add_argument("--episodes", type=positive, default=200, help="that score a setting; 200 where not given")
    measuring.add_argument("--device", default="cpu")
    drawing = commands.add_parser("draw", help="gather every setting that has rows of both kinds")
    drawing.add_argument("--results", type=Path, default=Path("results"), help="folder of folders of rows")
    drawing.add_argument("--out", type=Path, required=True, help="the picture")
    options = parser.parse_args()
    if options.command == "measure":
        sizes = {"splits": options.splits, "seeds": options.seeds, "episodes": options.episodes}
        measure(options.dataset, options.out, **sizes, device=choose_device(options.device), reporter=Reporter())
        return
    settings = read_settings(options.results)
    make_folder(options.out.parent)
    draw(settings).savefig(options.out, dpi=110)
    print(markdown(correlation_table(settings)), end="")


if __name__ == "__main__":
    run(main, __doc__)
