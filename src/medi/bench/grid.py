"""A grid of benchmark runs: what identifies a run, and every run that a command asks for.

Nothing here imports torch before names that need it are checked, so that a typing error is answered at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

from medi.data.facts import facts_of
from medi.errors import InputError, unknown_name

REGIMES = ("honest", "transductive", "grouped")
"""What a method may see: nothing but the bag; also the queries; the bag's true groups (an oracle)."""

SCORES = ("episode", "pooled")
"""Where ACC is computed: inside each of many small episodes, or over all test images of one draw."""

ALL = "all"
"""As a number of observations: the whole unlabelled training split of the novel classes."""


@dataclass(frozen=True)
class Run:
    """One cell of a grid; its fields identify it in a results file."""

    dataset: str
    method: str
    config: str
    sampler: str | None
    way: int
    observations: int | str
    regime: str
    score: str
    seed: int

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Run:
        """The run a row of results is of."""
        return cls(**{field.name: row[field.name] for field in fields(cls)})

    @property
    def training(self) -> tuple[Any, ...]:
        """What its training depends on: runs that agree here share a learner."""
        return (self.dataset, self.method, self.config, self.sampler, self.way, self.observations, self.seed)

    def describe(self) -> str:
        """The run in a few words."""
        sampler = f" {self.sampler}" if self.sampler else ""
        return (
            f"{self.dataset} {self.method} ({self.config}{sampler}) {self.way}-way {self.observations}-obs "
            f"{self.regime} {self.score} seed {self.seed}"
        )

    def as_row(self) -> dict[str, Any]:
        """The fields of a results row that identify the run."""
        return asdict(self)


def parse_list(text: str, option: str, allowed: Sequence[str] | None = None) -> list[str]:
    """The parts of a comma-separated option, without repetitions."""
    parts = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not parts:
        raise InputError(f"{option} is empty: give one value or several separated by commas.")
    for part in parts:
        if allowed is not None and part not in allowed:
            raise unknown_name(f"value of {option}", part, allowed)
    return parts


def parse_datasets(text: str) -> list[str]:
    """The benchmarks that an option names; an unknown one is an error."""
    return [facts_of(name).name for name in parse_list(text, "--dataset")]


def parse_observations(text: str) -> list[int | str]:
    """`1,5` or `all`."""
    parts = parse_list(text, "--observations")
    for part in parts:
        if part != ALL and not (part.isascii() and part.isdecimal() and int(part) > 0):
            raise InputError(f"--observations {part}: give whole numbers from 1, separated by commas, or 'all'.")
    return list(dict.fromkeys(part if part == ALL else int(part) for part in parts))


def expand(
    *,
    datasets: Sequence[str],
    methods: Sequence[str],
    samplers: dict[str, str | None],
    config: str,
    way: int | None,
    observations: Sequence[int | str],
    regimes: Sequence[str],
    score: str,
    seeds: Sequence[int],
) -> list[Run]:
    """Every run of a grid, those that share a learner next to each other.

    Args:
        datasets: Names of benchmarks.
        methods: Names of methods.
        samplers: The sampler of each method, None for one that takes none.
        config: Named settings, the same for all methods.
        way: Classes in a task; None for each dataset's own, and for all novel classes where everything is observed.
        observations: Unlabelled images a class.
        regimes: Of `REGIMES`.
        score: Of `SCORES`.
        seeds: New training and new draws each.
    """
    if way is not None and way < 2:
        raise InputError(f"--way {way}: telling classes apart needs at least 2.")
    if ALL in observations and score != "pooled":
        raise InputError(
            "--observations all uses every image once and has no episodes: run it with --score pooled, or give numbers."
        )
    return [
        Run(dataset, method, config, samplers[method], way or _way(dataset, count), count, regime, score, seed)
        for dataset, method, count, seed, regime in product(datasets, methods, observations, seeds, regimes)
    ]


def _way(dataset: str, observations: int | str) -> int:
    facts = facts_of(dataset)
    return facts.novel or facts.way if observations == ALL else facts.way


def runs_asked_for(
    dataset: str,
    method: str,
    config: str,
    sampler: str,
    way: int | None,
    observations: str,
    regime: str,
    score: str,
    seeds: Sequence[int],
) -> list[Run]:
    """The runs that options ask for; every name is checked before any work starts."""
    datasets = parse_datasets(dataset)
    regimes = parse_list(regime, "--regime", REGIMES)
    if score not in SCORES:
        raise unknown_name("value of --score", score, SCORES)
    counts = parse_observations(observations)
    from medi.methods import method_of
    from medi.methods.cata_views import SAMPLERS

    if sampler not in SAMPLERS:
        raise unknown_name("sampler", sampler, SAMPLERS)
    samplers: dict[str, str | None] = {}
    for name in parse_list(method, "--method"):
        chosen = method_of(name)
        chosen.preset(config)
        samplers[name] = sampler if chosen.takes_sampler else None
    return expand(
        datasets=datasets,
        methods=list(samplers),
        samplers=samplers,
        config=config,
        way=way,
        observations=counts,
        regimes=regimes,
        score=score,
        seeds=seeds,
    )
