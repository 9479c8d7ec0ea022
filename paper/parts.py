"""The parts of the paper: which runs each of its tables and figures takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medi.bench.grid import ALL, REGIMES, Grid, Run
from medi.core.settings import FROM, Changes
from medi.data.facts import BENCHMARKS
from medi.registry import COMPARED_METHODS, SAMPLER_NAMES
from paper.mm_parts import mm_parts

FEW = (5, 1)
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
        usual = {"datasets": datasets, "observations": FEW}
        grid = Grid(methods=list(methods), sampler=sampler, regimes=regimes, score=score, **usual | other)
        return tuple(grid.runs())

    def both_samplers(method: str, regimes: Sequence[str], **other: Any) -> tuple[Run, ...]:
        return sum((runs([method], sampler, regimes, "episode", **other) for sampler in SAMPLER_NAMES), ())

    def few(**told: str) -> tuple[Run, ...]:
        return runs(COMPARED_METHODS, "cata", ("honest",), "pooled", **told)

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
            runs(COMPARED_METHODS, "cata", ("honest",), "pooled", **everything)
            + runs(["kmeans"], "cata", ("honest",), "pooled", config="features", **everything),
        ),
        Part("records", runs(["medi"], "uniform", REGIMES, "episode")),
    ]
