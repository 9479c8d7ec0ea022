"""What the experiments share: how they start and end, tables, and classes to draw from."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from medi.core.errors import InputError
from medi.core.files import read_journal
from medi.data.augment import to_float
from medi.data.benchmarks import Benchmark
from medi.data.imageset import ImageSet

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))  # a script sees its own folder alone
from script import Parser, positive, read_json, run, some_of, write_json

__all__ = [
    "Parser",
    "Table",
    "all_classes",
    "half_size_pixels",
    "markdown",
    "mean_of",
    "of_rule",
    "positive",
    "read_json",
    "read_rows",
    "run",
    "some_of",
    "spread",
    "write_json",
]

Table = Sequence[Sequence[str]]
"""Lines of cells; the first is the heading."""


def markdown(table: Table) -> str:
    """A table in Markdown."""
    heading, *lines = table
    return "".join("| " + " | ".join(cells) + " |\n" for cells in (heading, ["---"] * len(heading), *lines))


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation; a single value has none, which counts as 0."""
    return fmean(values), stdev(values) if len(values) > 1 else 0.0


def mean_of(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard deviation."""
    mean, deviation = spread(values)
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def read_rows(path: Path, *columns: str) -> list[dict[str, Any]]:
    """The rows of a journal, all of which must have these columns."""
    rows = read_journal(path)
    if not rows or any(column not in row for row in rows for column in columns):
        raise InputError(f"{path} has no rows with {', '.join(columns)}: give a file that --out wrote.")
    return rows


def all_classes(benchmark: Benchmark) -> ImageSet:
    """The known classes and, numbered after them, the novel ones."""
    known, novel = benchmark.known, benchmark.novel
    return ImageSet(
        torch.cat([known.images, novel.images]),
        torch.cat([known.labels, novel.labels + known.n_classes]),
        known.class_names + novel.class_names,
    )


def of_rule(images: ImageSet, rule: str) -> ImageSet:
    """The classes of the set `rules` that follow one rule: `colour`, `shape` or `frame`."""
    return images.of_classes([c for c, name in enumerate(images.class_names) if name.startswith(f"{rule}:")])


def half_size_pixels(images: Tensor) -> Tensor:
    """Images (n, channels, h, w) at half their size, as vectors (n, channels * h * w / 4)."""
    return avg_pool2d(to_float(images), 2).flatten(1)
