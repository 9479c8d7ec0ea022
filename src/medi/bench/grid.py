"""A grid of benchmark runs: what identifies a run, and every run of a product of settings; made without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby, product
from typing import Any

from medi.bench.candidates import assignments_of
from medi.bench.datasets import facts_for
from medi.core.errors import InputError, refuse_unknown
from medi.core.settings import FROM, Changes
from medi.presets import DEFAULT, resolve
from medi.registry import FILE_MARK, METHOD_NAMES, PLAIN, SAMPLER_NAMES

REGIMES = ("honest", "transductive", "grouped")
"""What a method may see: nothing but the bag; also the queries; the bag's true groups (an oracle)."""

SCORES = ("episode", "pooled")
"""Where ACC is computed: inside each of many small episodes, or over all test images of one draw."""

BALANCES = ("preset", "on", "off")
"""Whether a method is told that classes are equally large: as its settings have it, or the same for every method."""

SIZES = ("equal", "unequal")
"""How many images of each class a task has: equally many, or different numbers that nobody is told."""

GROUPINGS = METHODS_OWN, ENGINE = ("kmeans", "posterior")
"""Who groups: the method as the paper has it, by k-means or by itself; or the engine that `medi discover` runs,
whose groups may come from a file of the user's own, `path/to/file.py:Name`."""

CLASSES = GIVEN, AUTO = ("given", "auto")
"""Whether the number of novel classes is told, or has to be found."""

POOLS = ONLY_NOVEL, MIXED = ("pure", "mixed")
"""What a bag holds: novel classes alone; or also items of known classes, and one-offs."""

EPISODES = 600
"""Scoring episodes, where none are asked for."""

ALL = "all"
"""As a number of observations: the whole unlabelled training split of the novel classes."""


@dataclass(frozen=True)
class Run:
    """One cell of a grid. All fields but `changes` identify it in a results file.

    Attributes:
        config: Name of its settings: a preset of the method, or a candidate.
        sampler: None for a method that takes none.
        way: Novel classes in a task.
        observations: Unlabelled images of each, or `ALL`.
        regime: Of `REGIMES`.
        score: Of `SCORES`.
        seed: Of training and draws.
        changes: What its settings have other than the preset, which is named by `config`, or by the key `from`.
        sizes: Of `SIZES`.
        balance: Whether the method is told that classes are equally large; an oracle need not be.
        grouping: Of `GROUPINGS`, or a file.
        classes: Of `CLASSES`.
        pool: Of `POOLS`.
    """

    dataset: str
    method: str
    config: str
    sampler: str | None
    way: int
    observations: int | str
    regime: str
    score: str
    seed: int
    changes: Changes = field(default_factory=dict, compare=False)
    sizes: str = "equal"
    balance: bool = False
    grouping: str = METHODS_OWN
    classes: str = GIVEN
    pool: str = ONLY_NOVEL

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Run:
        """The run a row of results is of; one of an earlier version does not say that sizes were equal."""
        return cls(**{name: row[name] for name in IDENTITY if name in row})

    @property
    def training(self) -> tuple[Any, ...]:
        """What its training depends on: runs that agree here share a learner."""
        return (self.dataset, self.method, self.config, self.sampler, self.way, self.observations, self.seed)

    @property
    def source(self) -> tuple[str, bool]:
        """What its images are read from: a dataset, and whether its photos are read as `medi discover` reads them."""
        return self.dataset, self.by_engine

    @property
    def by_engine(self) -> bool:
        """Whether the engine that people use does the grouping."""
        return self.grouping != METHODS_OWN

    def describe(self) -> str:
        """The run in a few words."""
        sampler = f" {self.sampler}" if self.sampler else ""
        changed = "".join(f", {one}" for one in assignments_of(self.changes))
        told = " unequal" if self.sizes == "unequal" else " balanced" if self.balance else ""
        told += f" {self.pool} pools, number {self.classes}" if self.by_engine else ""
        return (
            f"{self.dataset} {self.method} ({self.config}{sampler}{changed}) {self.way}-way {self.observations}-obs "
            f"{self.regime} {self.score}{told} seed {self.seed}"
        )

    def as_row(self) -> dict[str, Any]:
        """The fields of a results row that identify the run."""
        return {name: getattr(self, name) for name in IDENTITY}


IDENTITY = tuple(field.name for field in fields(Run) if field.compare)


def config_of(run: Run) -> Any:
    """The method's settings that a run is made with: its preset's, changed as it says; None where nothing learns."""
    if run.method == PLAIN:
        return None
    from medi.methods import method_of

    preset = str(run.changes.get(FROM, run.config))
    everything = run.observations == ALL
    return resolve(method_of(run.method), preset, run.dataset, everything=everything, changes=run.changes)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What a grid is made of: every combination is a `Run`, which has what is not said here.

    Attributes:
        sampler: Of the methods that take any.
        config: Name of the settings, the same for all methods.
        way: None for each dataset's own, and for all novel classes where everything is observed.
        balance: Of `BALANCES`.
    """

    datasets: Sequence[str]
    methods: Sequence[str]
    sampler: str = "uniform"
    config: str = DEFAULT
    way: int | None = None
    observations: Sequence[int | str] = (5,)
    regimes: Sequence[str] = ("honest",)
    score: str = "episode"
    seeds: Sequence[int] = (0,)
    changes: Changes = field(default_factory=dict)
    balance: str = "preset"
    sizes: str = "equal"
    grouping: str = METHODS_OWN
    classes: Sequence[str] = (GIVEN,)
    pools: Sequence[str] = (ONLY_NOVEL,)

    def __post_init__(self) -> None:
        self._refuse_unknown_names()
        if self.way is not None and self.way < 2:
            raise InputError(f"--way {self.way}: telling classes apart needs at least 2.")
        if self.grouping != METHODS_OWN:
            self._refuse_for_engine()
            return
        if PLAIN in self.methods or list(self.classes) != [GIVEN] or list(self.pools) != [ONLY_NOVEL]:
            classes, pools = ",".join(self.classes), ",".join(self.pools)
            what = f"--pool {pools}" if list(self.classes) == [GIVEN] else f"--classes {classes}"
            what = f"--method {PLAIN}" if PLAIN in self.methods else what
            raise InputError(f"{what}: methods by themselves cannot do that; add --grouping {ENGINE}.")
        if ALL in self.observations and self.score != "pooled":
            raise InputError(
                "--observations all uses every image once and has no episodes: "
                "run it with --score pooled, or give numbers."
            )
        if self.balance == "on" and (self.sizes == "unequal" or ALL in self.observations):
            why = "--sizes unequal" if self.sizes == "unequal" else "--observations all takes a set as it is, and it"
            raise InputError(f"{why} has classes of different sizes: leave --balance out, or give off.")
        if self.sizes == "unequal" and ALL in self.observations:
            raise InputError("--observations all takes every image there is: run it with --sizes equal.")

    def _refuse_unknown_names(self) -> None:
        for name in self.methods:
            if FILE_MARK not in name:
                refuse_unknown("method", name, (*METHOD_NAMES, PLAIN))
        refuse_unknown("sampler", self.sampler, SAMPLER_NAMES)
        refuse_unknown("value of --score", self.score, SCORES)
        refuse_unknown("value of --balance", self.balance, BALANCES)
        refuse_unknown("value of --sizes", self.sizes, SIZES)
        if FILE_MARK not in self.grouping:
            refuse_unknown("value of --grouping", self.grouping, (*GROUPINGS, "FILE.py:NAME"))
        for option, names, allowed in (
            ("regime", self.regimes, REGIMES), ("classes", self.classes, CLASSES), ("pool", self.pools, POOLS),
        ):  # fmt: skip
            for name in names:
                refuse_unknown(f"value of --{option}", name, allowed)

    def _refuse_for_engine(self) -> None:
        """People give one pool at a time, and nobody tells them sizes or sorts their photos."""
        for wrong, option, cure in (
            (ALL in self.observations, "--observations all", "give numbers"),
            (self.score != "episode", f"--score {self.score}", "leave it out"),
            (list(self.regimes) != ["honest"], f"--regime {','.join(self.regimes)}", "leave it out"),
            (self.balance == "on", "--balance on", "leave it out"),
        ):
            if wrong:
                raise InputError(f"{option} is not for --grouping {ENGINE}, which scores what people use: {cure}.")

    def runs(self) -> list[Run]:
        """Every run, those that share a learner next to each other."""
        tasks = product(self.datasets, self.methods, self.observations, self.seeds)
        runs = []
        for dataset, method, count, seed in tasks:
            way = self.way or _way(dataset, count)
            sampler = self.sampler if _takes_sampler(method) else None
            for regime, classes, pool in product(self.regimes, self.classes, self.pools):
                run = Run(
                    dataset, method, self.config, sampler, way, count, regime, self.score, seed,
                    changes=self.changes, sizes=self.sizes, grouping=self.grouping, classes=classes, pool=pool,
                )  # fmt: skip
                runs.append(replace(run, balance=is_told_sizes(run, self.balance)))
        return runs


def is_told_sizes(run: Run, balance: str) -> bool:
    """Whether a run's method is told that classes are equally large, by one of `BALANCES`."""
    told_nothing = run.sizes == "unequal" or run.observations == ALL or run.regime == "grouped" or run.by_engine
    if balance == "off" or told_nothing:
        return False
    return balance == "on" or bool(config_of(run).balanced)


def batches(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Neighbouring runs that share a learner, and its answers where they differ in regime alone."""
    found: list[tuple[Run, ...]] = []
    for _, some in groupby(runs, key=lambda run: (run.training, run.score, run.sizes, run.grouping)):
        together = list(some)
        oracles = [run for run in together if run.regime == "grouped"]
        told, untold = ([run for run in together if run.balance is on and run not in oracles] for on in (True, False))
        parts = [part for part in (told, untold) if part] or [[]]
        found += [tuple(part) for part in (parts[0] + oracles, *parts[1:])]
    return found


def _takes_sampler(method: str) -> bool:
    if method == PLAIN:
        return False
    from medi.methods import method_of

    return bool(method_of(method).takes_sampler)


def _way(dataset: str, observations: int | str) -> int:
    facts = facts_for(dataset)
    return facts.novel or facts.way if observations == ALL else facts.way
