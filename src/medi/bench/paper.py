"""Every table and figure of the paper, from one grid that can be interrupted and continued."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from medi.bench.candidates import FROM, Changes
from medi.bench.figures import COMPARED, LATER, draw_comparison, save_figure
from medi.bench.grid import ALL, REGIMES, Run, expand
from medi.bench.mm_parts import mm_parts
from medi.bench.paired import render_gains, sampler_gains
from medi.bench.rows import read_rows
from medi.bench.run import RESULTS, run_grid
from medi.bench.tables import render, summarise
from medi.data.benchmarks import Benchmark, load
from medi.data.facts import BENCHMARKS
from medi.errors import InputError, unknown_name
from medi.methods import METHODS
from medi.names import SAMPLER_NAMES
from medi.runtime.files import make_folder, write_atomically
from medi.runtime.progress import Reporter

DATASETS = ("svhn", "cifar10", "cifar100", "omniglot")
FEW = (5, 1)
ALL_COMPARED = (*COMPARED, *LATER)
"""Those that the paper compares, and what was published since."""
_QUARTER = {FROM: "paper", "schedule": {"steps": 5_000, "halve_every": 500}}
PUBLISHED_MP: Mapping[str, Changes] = {
    "paper-quarter": _QUARTER,
    "paper-quarter-plain": _QUARTER | {"distance": "euclidean"},
}
"""The published MP with the squared distance of prototypical networks, and with the plain one that the paper prints.

Both take a quarter of the published tasks and halve the rate four times as often: 160 trainings are many, and halfway
through the published one its rate is down to a 32nd.
"""


@dataclass(frozen=True)
class Part:
    """A table or figure of the paper.

    Attributes:
        name: Of its files.
        runs: Its runs with one seed.
        drawn: The scoring set of its figure; None for a table alone.
        least_seeds: Fewest seeds, even where fewer were asked for.
    """

    name: str
    runs: tuple[Run, ...]
    drawn: str | None = None
    least_seeds: int = 0

    def at(self, seeds: Iterable[int]) -> list[Run]:
        """Its runs with these seeds."""
        return [replace(run, seed=seed) for seed in seeds for run in self.runs]


def parts_of(datasets: Sequence[str], abundant: Sequence[str]) -> list[Part]:
    """What the paper shows, with our honest regime first, and the records of our own method beside it.

    Methods that are compared have the same information: none, or all are told that classes are equally large.

    Args:
        datasets: Benchmarks.
        abundant: Those of them whose novel classes have training images, so that all can be observed.
    """

    def runs(methods: Iterable[str], sampler: str, regimes: Sequence[str], score: str, **other: Any) -> tuple[Run, ...]:
        samplers = {name: sampler if METHODS[name].takes_sampler else None for name in methods}
        grid = {"datasets": datasets, "observations": FEW, "config": "default", "way": None, "seeds": [0]} | other
        return tuple(expand(methods=list(samplers), samplers=samplers, regimes=regimes, score=score, **grid))

    def both_samplers(method: str, regimes: Sequence[str], **other: Any) -> tuple[Run, ...]:
        return sum((runs([method], sampler, regimes, "episode", **other) for sampler in SAMPLER_NAMES), ())

    def few(**told: str) -> tuple[Run, ...]:
        return runs(ALL_COMPARED, "cata", ("honest",), "pooled", **told)

    published_mp = [
        both_samplers("mp", ("honest", "grouped"), config=config, changes=changes)
        for config, changes in PUBLISHED_MP.items()
    ]
    kmeans = [runs(["kmeans"], "uniform", ("honest",), score) for score in ("episode", "pooled")]
    if "omniglot" in datasets:
        every_character = {"datasets": ["omniglot"], "way": BENCHMARKS["omniglot"].novel}
        kmeans.append(runs(["kmeans"], "uniform", ("honest",), "pooled", **every_character))
    everything = {"datasets": abundant, "observations": [ALL]}
    return [
        Part("ablation", both_samplers("mp", REGIMES) + both_samplers("mm", REGIMES)),
        Part("mp-published", sum(published_mp, ()), least_seeds=5),
        Part("mm-published", runs(["mm"], "cata", ("honest",), "episode", config="paper")),
        Part("mm-parts", mm_parts(datasets)),
        Part("kmeans", sum(kmeans, ())),
        Part("few-observations", few(balance="off"), drawn="pooled"),
        Part("few-observations-balanced", few(balance="on"), drawn="pooled"),
        Part("few-observations-unequal", few(sizes="unequal")),
        Part(
            "abundant",
            runs(ALL_COMPARED, "cata", ("honest",), "pooled", **everything)
            + runs(["kmeans"], "cata", ("honest",), "pooled", config="features", **everything),
        ),
        Part("records", runs(["medi"], "uniform", REGIMES, "episode")),
    ]


def run_paper(
    datasets: Sequence[str],
    out: Path,
    *,
    seeds: Sequence[int],
    episodes: int,
    device: torch.device,
    resume: bool,
    reporter: Reporter,
    only: Sequence[str] = (),
) -> list[Path]:
    """Run what is missing, one seed over everything first; tables and figures are renewed after every part.

    Args:
        datasets: Benchmarks.
        out: Folder of the results, with tables and figures in its subfolder `paper`.
        seeds: New training and new draws each.
        episodes: Scoring episodes.
        device: Where to train.
        resume: Keep what is in the folder.
        reporter: Shows progress.
        only: Names of parts; none for all.

    Returns:
        The tables and figures.
    """
    names = [part.name for part in parts_of(datasets, datasets)]
    if unknown := next((name for name in only if name not in names), None):
        raise unknown_name("part of the paper", unknown, names)
    abundant = [name for name in datasets if _can_observe_all(load(name, torch.device("cpu")))]
    if left_out := sorted(set(datasets) - set(abundant)):
        reporter.say(f"abundant: no training images of novel classes in {', '.join(left_out)}; left out.")
    parts = [part for part in parts_of(datasets, abundant) if part.runs and (not only or part.name in only)]
    if not parts:
        raise InputError(f"--part {','.join(only)} has nothing on {', '.join(datasets)}: name other --dataset.")
    written: list[Path] = []
    first, most = min(seeds), max(len(seeds), *(part.least_seeds for part in parts))
    of_part = {part.name: range(first, first + max(len(seeds), part.least_seeds)) for part in parts}
    everything = [run for part in parts for run in part.at(of_part[part.name])]
    for seed in range(first, first + most):
        for part in [part for part in parts if seed in of_part[part.name]]:
            done = {Run.of_row(row): row for row in read_rows(out / RESULTS)} if resume else {}
            reporter.say(f"{part.name}, seed {seed}: {what_is_left(everything, done)}")
            run_grid(part.at([seed]), out, episodes=episodes, device=device, resume=resume, reporter=reporter)
            resume = True
            written += _write(part, read_rows(out / RESULTS), of_part[part.name], out)
    return sorted(set(written))


def what_is_left(runs: Sequence[Run], done: Mapping[Run, Mapping[str, Any]]) -> str:
    """How many runs are missing and about how long they take, judged by those that are there."""
    left = [run for run in dict.fromkeys(runs) if run not in done]
    if not left:
        return "nothing is left to run"
    known = [
        _mean_seconds(done, lambda other, run=run: (other.dataset, other.method) == (run.dataset, run.method))  # type: ignore[misc]
        or _mean_seconds(done, lambda other, run=run: other.method == run.method)  # type: ignore[misc]
        for run in left
    ]
    minutes = sum(seconds for seconds in known if seconds) / 60
    unknown = sorted({run.method for run, seconds in zip(left, known, strict=True) if seconds is None})
    estimate = f"at most about {minutes:.0f} min" if minutes else "no estimate yet"
    return f"{len(left)} runs left, {estimate}" + (f"; nothing known of {', '.join(unknown)}" if unknown else "")


def _mean_seconds(done: Mapping[Run, Mapping[str, Any]], like: Callable[[Run], bool]) -> float | None:
    """Mean time of the finished runs that are alike; runs that share a training count it each, hence "at most"."""
    seconds = [float(row["seconds"]) for run, row in done.items() if like(run)]
    return fmean(seconds) if seconds else None


def _can_observe_all(benchmark: Benchmark) -> bool:
    return benchmark.novel_train is not None or benchmark.facts.families


def _write(part: Part, rows: Sequence[dict[str, Any]], seeds: Sequence[int], out: Path) -> list[Path]:
    """The part's table, what CATA adds and its figure where it has them, from what is there by now."""
    wanted = set(part.at(seeds))
    mine = [row for row in rows if Run.of_row(row) in wanted]
    if not mine:
        return []
    table = make_folder(out / "paper") / f"{part.name}.md"
    write_atomically(table, render(summarise(mine), "md").encode())
    written = [table]
    if gains := sampler_gains(mine):
        written.append(table.with_name(f"{part.name}-cata.md"))
        write_atomically(written[-1], render_gains(gains).encode())
    if part.drawn is not None:
        written.append(table.with_suffix(".png"))
        save_figure(draw_comparison(mine, part.drawn), written[-1])
    return written
