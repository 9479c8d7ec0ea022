"""results/missing.md: what has not been run yet, as the commands that run it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from tables import HEADLINE, is_of_before

from medi.bench.grid import ALL, CLASSES, ENGINE, GIVEN, METHODS_OWN, ONLY_NOVEL, POOLS, Grid, Run

sys.path.append(str(Path(__file__).resolve().parents[1]))  # a script sees its own folder alone
from paper.parts import Part, parts_of

HEAD = """# What has not been run yet

By the parts of `medi bench paper` ([coverage](tables.md#the-papers-tables-and-figures)), and three more. Seed
0 comes first. All of it needs a GPU. `--out`, `--device` and `--resume` are left out, as is `--jobs`: with several
processes one GPU is never idle. `make results` writes this page.
"""
TOLD = {
    "few-observations": {"balance": "off"},
    "few-observations-balanced": {"balance": "on"},
    "crossing": {"balance": "off"},
}
"""What the runs of some parts have other than the default of an option."""
DIMENSIONS = ("dataset", "method", "observations", "regime", "classes", "pool")
"""Options that take several values."""


def more_parts() -> list[Part]:
    """What the paper's parts do not ask for."""

    def runs(**asked: Any) -> tuple[Run, ...]:
        usual = {"sampler": "cata", "score": "pooled"}
        return tuple(Grid(**usual | asked).runs())

    few = {"datasets": ["svhn", "cifar10"], "observations": [20, 100], "balance": "off"}
    fifth = {"methods": ["kcl", "mcl", "dtc", "uno", "simgcd"], "observations": [ALL], "config": "fifth"}  # as RS is
    pools = {"grouping": ENGINE, "classes": CLASSES, "pools": POOLS, "score": "episode", "observations": [5]}
    return [
        Part("crossing", runs(methods=["uno", "simgcd", "mp", "mm"], **few)),
        Part("a fifth of the published recipes", runs(datasets=["cifar10", "cifar100", "svhn"], **fifth)),
        Part("pools", runs(datasets=HEADLINE, methods=["mp", "mm", "medi"], **pools | {"sampler": "uniform"})),
    ]


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """The whole page, from all rows that are there."""
    there = {Run.of_row(dict(row)) for row in rows if not is_of_before(row)}
    parts = [*parts_of(HEADLINE, HEADLINE), *more_parts()]
    sections = []
    for title, seeds in (("Seed 0", [0]), ("Seeds 1 and 2", [1, 2])):
        commands = []
        for part in parts:
            absent = [run for run in part.runs if not {replace(run, seed=seed) for seed in seeds} <= there]
            lines = [*_commands(part, absent, seeds)] if absent else []
            commands += [f"# {part.name}: {len(absent)} of {len(part.runs)} cells", *lines] if lines else []
        sections.append(f"\n## {title}\n\n```console\n" + "\n".join(commands) + "\n```\n")
    return HEAD + "".join(sections)


def _commands(part: Part, absent: Sequence[Run], seeds: Sequence[int]) -> Iterable[str]:
    if any(run.changes for run in part.runs):  # settings of its own, which no option names
        datasets = ",".join(dict.fromkeys(run.dataset for run in absent))
        yield f"$ medi bench paper --part {part.name} --dataset {datasets} --seeds {max(seeds) + 1}"
        return
    samplers = dict.fromkeys(run.sampler for run in part.runs if run.sampler)
    usual = next(iter(samplers), "uniform")
    kinds: dict[tuple[Any, ...], list[Run]] = {}
    for run in absent:
        kinds.setdefault((run.sampler or usual, run.config, run.score, run.sizes, run.grouping), []).append(run)
    for (sampler, config, score, sizes, grouping), runs in kinds.items():
        options = {"sampler": (sampler, "uniform"), "config": (config, "default"), "score": (score, "episode")}
        options |= {"sizes": (sizes, "equal"), "grouping": (grouping, METHODS_OWN)}
        shown = {name: value for name, (value, default) in options.items() if value != default}
        shown |= TOLD.get(part.name, {})
        shown |= {"seeds": len(seeds)} | ({"first-seed": seeds[0]} if seeds[0] else {})
        for several in merged([{name: (getattr(run, name),) for name in DIMENSIONS} for run in runs]):
            default = {"observations": (5,), "regime": ("honest",), "classes": (GIVEN,), "pool": (ONLY_NOVEL,)}
            lists = {name: ",".join(map(str, values)) for name, values in several.items()
                     if values != default.get(name)}  # fmt: skip
            yield "$ medi bench run " + " ".join(f"--{name} {value}" for name, value in (lists | shown).items())


def merged(cells: list[dict[str, tuple[Any, ...]]]) -> list[dict[str, tuple[Any, ...]]]:
    """Cells as products of as few lists as merging one dimension after the other finds."""
    for name in reversed(DIMENSIONS):
        groups: dict[tuple[Any, ...], list[dict[str, tuple[Any, ...]]]] = {}
        for cell in cells:
            groups.setdefault(tuple(value for other, value in cell.items() if other != name), []).append(cell)
        cells = [some[0] | {name: tuple(chain.from_iterable(cell[name] for cell in some))} for some in groups.values()]
    return cells
