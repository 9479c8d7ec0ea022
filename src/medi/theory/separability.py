"""K-epsilon-separability of a benchmark's novel classes under several transformations (Definitions 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from medi.data.benchmarks import Benchmark, load
from medi.data.imageset import ImageSet
from medi.runtime.context import Context
from medi.runtime.progress import Reporter
from medi.theory.embeddings import KINDS, Recipe, learn
from medi.theory.study import Row, measure
from medi.theory.supports import overlap

TRAINING_WAY = 5
ITEMS = 100
"""Most images of a class that are looked at."""


def study_separability(
    datasets: Sequence[str],
    out: Path,
    *,
    seeds: int,
    reporter: Reporter,
    recipe: Recipe | None = None,
    kinds: Sequence[str] = KINDS,
    items: int = ITEMS,
) -> list[Row]:
    """A row of `separability.jsonl` for each dataset, seed and kind of transformation."""
    recipe = recipe or Recipe()
    jobs = [
        {"dataset": dataset, "kind": kind, "seed": seed, "items": items, **recipe.as_job()}
        for dataset in datasets
        for seed in range(seeds)
        for kind in kinds
    ]
    benchmarks: dict[str, Benchmark] = {}

    def work(job: Row) -> Row:
        name, seed = job["dataset"], job["seed"]
        if name not in benchmarks:
            benchmarks[name] = load(name)
        benchmark = benchmarks[name]
        points = draw_novel(benchmark, items, torch.Generator().manual_seed(seed))
        learner = learn(
            job["kind"],
            benchmark.known,
            recipe,
            Context(seed=seed),
            way=TRAINING_WAY,
            augmentation=benchmark.facts.augmentation,
        )
        encoded = learner.encode(points.images)
        found = overlap(encoded, points.labels, seed=seed)
        counts = torch.bincount(points.labels)
        return {
            "tau": found.tau,
            "low": found.low,
            "high": found.high,
            "pair": [points.class_names[c] for c in found.pair],
            "classes": points.n_classes,
            "per_class": [int(counts.min()), int(counts.max())],
            "width": encoded.shape[1],
        }

    return measure(out / "separability.jsonl", jobs, work, "separability", reporter)


def draw_novel(benchmark: Benchmark, items: int, generator: torch.Generator) -> ImageSet:
    """Novel images, at most `items` a class, of as many random classes as a task has.

    No training sees an image of a novel class, so those of the training split serve as well as the test split's.
    """
    novel, more = benchmark.novel, benchmark.novel_train
    if more is not None and more.class_names == novel.class_names:
        novel = ImageSet(
            torch.cat([novel.images, more.images]), torch.cat([novel.labels, more.labels]), novel.class_names
        )
    classes = torch.randperm(novel.n_classes, generator=generator)[: benchmark.facts.way].sort().values
    some = novel.of_classes(classes.tolist())
    shuffled = torch.randperm(len(some), generator=generator)
    chosen = torch.cat([shuffled[some.labels[shuffled] == c][:items] for c in range(some.n_classes)])
    return ImageSet(some.images[chosen], some.labels[chosen], some.class_names)
