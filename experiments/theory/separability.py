"""How far novel classes overlap in pixels and in random, supervised and meta-trained embeddings (Definitions 1, 2).

    python experiments/theory/separability.py --out results/theory [--dataset omniglot,cifar10] [--seeds 3]

Writes separability.jsonl and prints tau: mean ± standard deviation over seeds, and the lowest and the highest end of
their 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from embeddings import KINDS, Recipe, learn
from study import Parser, Row, Table, markdown, mean_of, measure, parse_study, run

from medi.bench.grid_options import parse_datasets
from medi.core.progress import Reporter
from medi.data.benchmarks import Benchmark, load
from medi.data.facts import facts_of
from medi.data.imageset import ImageSet
from medi.nn.context import Context
from medi.theory import overlap

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
        {"dataset": dataset, "kind": kind, "seed": seed, "items": items, **asdict(recipe)}
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


def separability_table(rows: Sequence[Row]) -> Table:
    """Overlap of novel classes by kind of transformation: mean ± deviation over seeds, and the widest interval."""
    lines = [["novel classes of", "classes × images", "seeds", *KINDS]]
    for dataset in dict.fromkeys(row["job"]["dataset"] for row in rows):
        mine = [row for row in rows if row["job"]["dataset"] == dataset]
        by_kind = {kind: [row for row in mine if row["job"]["kind"] == kind] for kind in KINDS}
        cells = [
            facts_of(dataset).title,
            f"{mine[0]['classes']} × {mine[0]['per_class'][0]}",
            str(min(map(len, by_kind.values()))),
        ]
        for some in by_kind.values():
            if not some:  # not measured yet
                cells.append("")
                continue
            low, high = min(row["low"] for row in some), max(row["high"] for row in some)
            cells.append(f"{mean_of([row['tau'] for row in some])} ({low:.2f} to {high:.2f})")
        lines.append(cells)
    return lines


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("--dataset", type=parse_datasets, default="glyphs,rules", help="separated by commas")
    options = parse_study(parser, seeds=3)
    rows = study_separability(options.dataset, options.out, seeds=options.seeds, reporter=Reporter())
    print(markdown(separability_table(rows)))


if __name__ == "__main__":
    run(main, __doc__)
