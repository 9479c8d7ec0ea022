"""Do rank statistics see classes? How often two images share the set of their largest features, as RS asks.

    python benchmarks/rank_statistics.py --out results/diagnose/ranks.json
    python benchmarks/rank_statistics.py --table results/diagnose/ranks.json

A network learns from some known classes as RS's start does; pairs are of other known classes, held out, whose images
are changed at random as in training. One line for a dataset and a size of the set: the share of pairs with equal sets,
among pairs of one class and of two, how many pairs have equal sets, and which part of these, and of all pairs, is of
one class. Omniglot needs MEDI_DATA; its start is shorter than RS's (400 steps), so that a CPU can do it.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medi.bench.choose import hold_out, splits_of
from medi.bench.run import describe_run
from medi.bench.score import families
from medi.data.augment import augment
from medi.data.benchmarks import load
from medi.methods import Plan
from medi.methods.inner_steps import rank_pairs
from medi.methods.pretraining import CHARACTERS, CPU, Start, started
from medi.runtime.context import Context
from medi.runtime.files import write_atomically
from medi.runtime.progress import Reporter

STARTS: dict[str, Start] = {
    "glyphs": CPU,
    "omniglot": replace(CHARACTERS, schedule=replace(CHARACTERS.schedule, steps=400)),
}
TOPS = (1, 2, 3, 5)
MOST = 800
"""Images at most that are compared in pairs."""


def agreement(features: Tensor, labels: Tensor, top: int) -> dict[str, float]:
    """Shares of ordered pairs of distinct items with equal sets of largest features (n, d), by labels (n,)."""
    equal = rank_pairs(features, top).bool().fill_diagonal_(False)
    same = (labels[:, None] == labels).fill_diagonal_(False)
    other = labels[:, None] != labels
    found = int(equal.sum())
    return {
        "same": float(equal[same].float().mean()),
        "other": float(equal[other].float().mean()),
        "equal": found,
        "precision": float((equal & same).sum()) / found if found else float("nan"),
        "one class": float(same.sum()) / (len(labels) * (len(labels) - 1)),
    }


def measure(dataset: str, models: Path | None) -> list[dict[str, Any]]:
    """The rows of one dataset, over one bag of held-out known classes."""
    benchmark = load(dataset, torch.device("cpu"))
    split = hold_out(benchmark, splits_of(benchmark, "all" if benchmark.facts.families else 5)[0])
    augmentation = benchmark.facts.augmentation
    plan = Plan(20, 5, augmentation=augmentation, context=Context(folder=models, reporter=Reporter()))
    network, seconds = started(split.known, STARTS[dataset], plan)
    held = split.novel.of_classes(families(split.novel.class_names)[0]) if benchmark.facts.families else split.novel
    generator = torch.Generator().manual_seed(0)
    images = augment(held.images[:MOST], augmentation, generator)
    with torch.inference_mode():
        features = network.eval()(images).relu()
    facts = {"dataset": dataset, "images": len(images), "classes": held.n_classes, "seconds": round(seconds, 1)}
    return [facts | {"top": top} | agreement(features, held.labels[:MOST], top) for top in TOPS]


def table(rows: list[dict[str, Any]]) -> str:
    """A Markdown table."""
    head = "| dataset | set of | equal, of one class | equal, of two | equal pairs | of one class | of all pairs |\n"
    lines = [
        f"| {row['dataset']} | {row['top']} | {100 * row['same']:.2f} % | {100 * row['other']:.3f} % "
        f"| {row['equal'] // 2:,} | {100 * row['precision']:.0f} % | {100 * row['one class']:.1f} % |\n"
        for row in rows
    ]
    return head + "|" + " --- |" * 7 + "\n" + "".join(lines)


def main() -> None:
    """Measure, or print the table of what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--models", type=Path, help="folder in which trainings are kept")
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(arguments.table.read_text())["rows"]))
        return
    if not arguments.out:
        parser.error("--out is needed to measure")
    rows = [row for dataset in STARTS for row in measure(dataset, arguments.models)]
    found = {"rows": rows} | describe_run(torch.device("cpu"))
    write_atomically(arguments.out, json.dumps(found, indent=1).encode())
    print(table(rows))


if __name__ == "__main__":
    main()
