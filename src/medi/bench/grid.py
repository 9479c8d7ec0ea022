"""A grid of benchmark runs: what identifies a run, and every run that a command asks for.

Nothing here imports torch before names that need it are checked, so that a typing error is answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby, product
from typing import Any

from medi.bench.candidates import FROM, Changes, NamedSettings, apply_changes, assignments_of
from medi.bench.datasets import facts_for
from medi.errors import InputError, unknown_name
from medi.names import FILE_MARK, METHOD_NAMES, SAMPLER_NAMES

REGIMES = ("honest", "transductive", "grouped")
"""What a method may see: nothing but the bag; also the queries; the bag's true groups (an oracle)."""

SCORES = ("episode", "pooled")
"""Where ACC is computed: inside each of many small episodes, or over all test images of one draw."""

BALANCES = ("preset", "on", "off")
"""Whether a method is told that classes are equally large: as its settings have it, or the same for every method."""

SIZES = ("equal", "unequal")
"""How many images of each class a task has: equally many, or different numbers that nobody is told."""

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

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Run:
        """The run a row of results is of; one of an earlier version does not say that sizes were equal."""
        return cls(**{name: row[name] for name in IDENTITY if name in row})

    @property
    def training(self) -> tuple[Any, ...]:
        """What its training depends on: runs that agree here share a learner."""
        return (self.dataset, self.method, self.config, self.sampler, self.way, self.observations, self.seed)

    def describe(self) -> str:
        """The run in a few words."""
        sampler = f" {self.sampler}" if self.sampler else ""
        changed = "".join(f", {one}" for one in assignments_of(self.changes))
        told = " unequal" if self.sizes == "unequal" else " balanced" if self.balance else ""
        return (
            f"{self.dataset} {self.method} ({self.config}{sampler}{changed}) {self.way}-way {self.observations}-obs "
            f"{self.regime} {self.score}{told} seed {self.seed}"
        )

    def as_row(self) -> dict[str, Any]:
        """The fields of a results row that identify the run."""
        return {name: getattr(self, name) for name in IDENTITY}


IDENTITY = tuple(field.name for field in fields(Run) if field.compare)


def config_of(run: Run) -> Any:
    """The method's settings that a run is made with: those of its preset, changed as it says."""
    from medi.methods import method_of

    preset = run.changes.get(FROM, run.config)
    config = method_of(run.method).preset(preset, run.dataset, everything=run.observations == ALL)
    return apply_changes(config, run.changes)


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
    return [facts_for(name).name for name in parse_list(text, "--dataset")]


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
    changes: Changes | None = None,
    balance: str = "preset",
    sizes: str = "equal",
) -> list[Run]:
    """Every run of a grid, those that share a learner next to each other.

    Args:
        datasets: Names of benchmarks.
        methods: Names of methods.
        samplers: The sampler of each method, None for one that takes none.
        config: Name of the settings, the same for all methods.
        way: Classes in a task; None for each dataset's own, and for all novel classes where everything is observed.
        observations: Unlabelled images a class.
        regimes: Of `REGIMES`.
        score: Of `SCORES`.
        seeds: New training and new draws each.
        changes: Of the preset's settings.
        balance: Of `BALANCES`.
        sizes: Of `SIZES`.
    """
    if way is not None and way < 2:
        raise InputError(f"--way {way}: telling classes apart needs at least 2.")
    if ALL in observations and score != "pooled":
        raise InputError(
            "--observations all uses every image once and has no episodes: run it with --score pooled, or give numbers."
        )
    if balance == "on" and (sizes == "unequal" or ALL in observations):
        why = "--sizes unequal" if sizes == "unequal" else "--observations all takes a set as it is, and it"
        raise InputError(f"{why} has classes of different sizes: leave --balance out, or give off.")
    if sizes == "unequal" and ALL in observations:
        raise InputError("--observations all takes every image there is: run it with --sizes equal.")
    changes = changes or {}
    ways = {(dataset, count): way or _way(dataset, count) for dataset, count in product(datasets, observations)}
    runs = [
        Run(dataset, method, config, samplers[method], ways[dataset, count], count, regime, score, seed, changes, sizes)
        for dataset, method, count, seed, regime in product(datasets, methods, observations, seeds, regimes)
    ]
    return [replace(run, balance=is_told_sizes(run, balance)) for run in runs]


def is_told_sizes(run: Run, balance: str) -> bool:
    """Whether a run's method is told that classes are equally large, by one of `BALANCES`."""
    if balance == "off" or run.sizes == "unequal" or run.observations == ALL or run.regime == "grouped":
        return False
    return balance == "on" or bool(config_of(run).balanced)


def batches(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Neighbouring runs that share a learner and its answers: they differ in regime alone."""
    found: list[tuple[Run, ...]] = []
    for _, some in groupby(runs, key=lambda run: (run.training, run.score, run.sizes)):
        together = list(some)
        oracles = [run for run in together if run.regime == "grouped"]
        told, untold = ([run for run in together if run.balance is on and run not in oracles] for on in (True, False))
        parts = [part for part in (told, untold) if part] or [[]]
        found += [tuple(part) for part in (parts[0] + oracles, *parts[1:])]
    return found


def _way(dataset: str, observations: int | str) -> int:
    facts = facts_for(dataset)
    return facts.novel or facts.way if observations == ALL else facts.way


def fit_to_device(runs: Sequence[Run], *, on_cpu: bool, say: Callable[[str], None]) -> list[Run]:
    """The runs with settings that a CPU can do, where theirs were chosen for no dataset in particular.

    `default` on a CPU is the preset `cpu`, unless the dataset has a preset of its own.
    """
    from medi.methods import method_of

    fitted, said = [], set[str]()
    for run in runs:
        presets, message = method_of(run.method).presets, ""
        wanted = on_cpu and run.config == "default" and FROM not in run.changes
        if "cpu" not in presets and (wanted or run.config == "cpu"):
            message = f"{run.method} has no preset cpu: its default is used."
        elif wanted and run.dataset not in presets:
            smaller = replace(run, changes=run.changes | {FROM: "cpu"})
            if config_of(smaller) != config_of(run):
                run, message = smaller, f"{run.method} on {run.dataset}: a CPU works here, so its preset cpu is used."
        elif wanted and not facts_for(run.dataset).small:
            message = f"{run.method}'s settings for {run.dataset} are made for a GPU: --config cpu is quicker here."
        if message and message not in said:
            said.add(message)
            say(message)
        fitted.append(run)
    return fitted


def runs_asked_for(
    dataset: str,
    method: str,
    settings: NamedSettings,
    sampler: str,
    way: int | None,
    observations: str,
    regime: str,
    score: str,
    seeds: Sequence[int],
    balance: str = "preset",
    sizes: str = "equal",
) -> list[Run]:
    """The runs that options ask for; every name and every setting is checked before any work starts."""
    datasets = parse_datasets(dataset)
    regimes = parse_list(regime, "--regime", REGIMES)
    for option, value, allowed in (("score", score, SCORES), ("balance", balance, BALANCES), ("sizes", sizes, SIZES)):
        if value not in allowed:
            raise unknown_name(f"value of --{option}", value, allowed)
    counts = parse_observations(observations)
    methods = parse_list(method, "--method")
    for name in methods:
        if name not in METHOD_NAMES and FILE_MARK not in name:
            raise unknown_name("method", name, METHOD_NAMES)
    if sampler not in SAMPLER_NAMES:
        raise unknown_name("sampler", sampler, SAMPLER_NAMES)
    from medi.methods import method_of
    from medi.train.schedule import Schedule

    grid: dict[str, Any] = {
        "datasets": datasets,
        "methods": methods,
        "samplers": {name: sampler if method_of(name).takes_sampler else None for name in methods},
        "config": settings.name,
        "way": way,
        "observations": counts,
        "regimes": regimes,
        "score": score,
        "seeds": seeds,
        "changes": settings.changes,
        "sizes": sizes,
    }
    try:
        for run in expand(**grid | {"seeds": [0], "regimes": ["honest"]}, balance="off"):
            if FROM in run.changes and run.config in method_of(run.method).presets:
                raise InputError(f"{run.method} has a preset of that name: give the candidate another one.")
            schedule = getattr(config_of(run), "schedule", None)
            if run.sampler is not None and isinstance(schedule, Schedule):
                schedule.refuse_tasks_by(run.sampler)
    except InputError as error:
        raise InputError(f"{settings.source}: {error}" if settings.source else str(error)) from error
    return expand(**grid, balance=balance)
