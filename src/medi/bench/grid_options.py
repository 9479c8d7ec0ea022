"""From the words of a command to runs: every name and every setting is checked before any work starts.

Nothing here imports torch before names that need it are checked, so that a typing error is answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from medi.bench.candidates import NamedSettings
from medi.bench.datasets import facts_for
from medi.bench.grid import ALL, Grid, Run, config_of
from medi.core.errors import InputError
from medi.core.settings import FROM
from medi.presets import CPU, DEFAULT, preset_for
from medi.registry import PLAIN

SEVERAL = {"method": "methods", "regime": "regimes", "classes": "classes", "pool": "pools"}
"""Options that take several names, and the fields of a grid that these are."""


def runs_asked(settings: NamedSettings, seeds: Sequence[int], **words: Any) -> list[Run]:
    """The runs that options ask for, in the words of a command, with some settings; `Grid` says what they mean."""
    lists: dict[str, Any] = {
        field: parse_list(words.pop(option), f"--{option}") for option, field in SEVERAL.items() if option in words
    }
    if "observations" in words:
        lists["observations"] = parse_observations(words.pop("observations"))
    datasets = parse_datasets(words.pop("dataset"))
    grid = Grid(datasets=datasets, config=settings.name, seeds=seeds, changes=settings.changes, **lists, **words)
    try:
        for run in replace(grid, seeds=[0], regimes=["honest"], balance="off").runs():
            _refuse_settings(run)
    except InputError as error:
        raise InputError(f"{settings.source}: {error}" if settings.source else str(error)) from error
    return grid.runs()


def parse_list(text: str, option: str) -> list[str]:
    """The parts of a comma-separated option, without repetitions."""
    parts = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not parts:
        raise InputError(f"{option} is empty: give one value or several separated by commas.")
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


def _refuse_settings(run: Run) -> None:
    """Settings that cannot be, or that a name cannot stand for."""
    if run.method == PLAIN:
        if run.config != DEFAULT or run.changes:
            raise InputError(f"{PLAIN} learns nothing and has no settings: leave --config, --candidates and --set out.")
        return
    from medi.methods import method_of
    from medi.nn.schedule import Schedule

    if FROM in run.changes and run.config in method_of(run.method).presets:
        raise InputError(f"{run.method} has a preset of that name: give the candidate another one.")
    schedule = getattr(config_of(run), "schedule", None)
    if run.sampler is not None and isinstance(schedule, Schedule):
        schedule.refuse_tasks_by(run.sampler)


def fit_to_device(runs: Sequence[Run], *, on_cpu: bool, say: Callable[[str], None]) -> list[Run]:
    """The runs with settings that a CPU can do, where theirs were chosen for no dataset in particular.

    `default` on a CPU is the preset `cpu`, unless the dataset has a preset of its own.
    """
    from medi.methods import method_of

    fitted, said = [], set[str]()
    for run in runs:
        if run.method == PLAIN:
            fitted.append(run)
            continue
        kind, message = method_of(run.method), ""
        wanted = on_cpu and run.config == DEFAULT and FROM not in run.changes
        preset = run.changes.get(FROM, run.config)
        chosen = preset_for(kind, preset, run.dataset, on_cpu=wanted, everything=run.observations == ALL)
        if CPU not in kind.presets and (wanted or run.config == CPU):
            if config_of(run).learns:
                message = f"{run.method} has no preset cpu: its default is used."
        elif wanted and chosen == CPU:
            smaller = replace(run, changes=run.changes | {FROM: CPU})
            if config_of(smaller) != config_of(run):
                run, message = smaller, f"{run.method} on {run.dataset}: a CPU works here, so its preset cpu is used."
        elif wanted and not facts_for(run.dataset).small:
            message = f"{run.method}'s settings for {run.dataset} are made for a GPU: --config cpu is quicker here."
        if message and message not in said:
            said.add(message)
            say(message)
        fitted.append(run)
    return fitted
