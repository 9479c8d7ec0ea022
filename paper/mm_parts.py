"""MM taken apart: the whole, and the whole without one part (`mm_parts.json`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from medi.bench.candidates import read_candidates
from medi.bench.grid import Grid, Run, config_of
from medi.registry import SAMPLER_NAMES

MM_PARTS = Path(__file__).with_name("mm_parts.json")
"""For `--candidates`; changes of each dataset's own preset."""
TAKEN_APART_ON = ("cifar10", "omniglot")


def mm_parts(datasets: Sequence[str]) -> tuple[Run, ...]:
    """The runs with one seed, by either sampler where any task is drawn.

    All are told that classes are equally large: by its preset, a head is told nothing.
    """
    runs = [
        run
        for settings in read_candidates(MM_PARTS)
        for sampler in SAMPLER_NAMES
        for run in Grid(
            datasets=[name for name in TAKEN_APART_ON if name in datasets],
            methods=["mm"],
            sampler=sampler,
            config=settings.name,
            changes=settings.changes,
            balance="on",
        ).runs()
    ]
    return tuple(run for run in runs if run.sampler == "uniform" or config_of(run).schedule.steps)
