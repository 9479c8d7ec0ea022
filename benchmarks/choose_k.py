"""How well is the number of classes estimated? Ours, calibrated on known classes, against silhouette and DTC's probe.

    python benchmarks/choose_k.py --dataset glyphs --out results/choose_k/glyphs.jsonl [--episodes 20]
    python benchmarks/choose_k.py --table results/choose_k/*.jsonl

A Conv-4 is trained by MP on half of the known classes, on a CPU; the other half, which it has not seen, calibrates our
estimate and serves DTC's method as probe classes. Bags of 5, 10 and 20 *novel* classes with 3 to 20 items each are then
drawn from the test split, and each method says how many classes there are; all may answer anything from 2 to half as
many as there are items, and all get the same points. One line for each setting and method: mean absolute error,
share of answers within 20 %, mean answer, and for ours how often the interval holds the truth and how often it called
itself certain.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

import numpy as np
import torch

from medi.bench.run import describe_run
from medi.cluster.rivals import dtc_probe
from medi.cluster.ward import ward
from medi.data.benchmarks import load
from medi.data.imageset import ImageSet
from medi.discovery.count import Pool, by_silhouette, calibrate, estimate
from medi.methods.base import Plan
from medi.methods.mp import MP, MPConfig
from medi.runtime.context import Context
from medi.runtime.files import append_to_journal, read_journal
from medi.runtime.progress import Reporter
from medi.train.schedule import Schedule

WAYS, SIZES = (5, 10, 20), (3, 5, 10, 20)
KEPT, PROBE_CLASSES, PROBE_ITEMS = 30, 10, 10
CONFIG = MPConfig(queries=5, images=200, schedule=Schedule(steps=150, rate=3e-3))


def embed(name: str, folder: Path | None) -> tuple[Pool, Pool]:
    """Points of known classes that the network has not seen, and of novel ones; at most 30 items a class."""
    benchmark, context = load(name), Context(folder=folder, reporter=Reporter())
    known = benchmark.known
    order = torch.randperm(known.n_classes, generator=torch.Generator().manual_seed(0)).tolist()
    half = known.n_classes // 2
    plan = Plan(way=20, observations=5, queries=5, augmentation=benchmark.facts.augmentation, context=context)
    learner = MP(CONFIG).fit(known.of_classes(order[:half]), plan)

    def pool(classes: ImageSet) -> Pool:
        g = torch.Generator().manual_seed(1)
        keep = []
        for label in range(min(classes.n_classes, 100)):
            members = (classes.labels == label).nonzero().squeeze(1)
            keep.append(members[torch.randperm(len(members), generator=g)[:KEPT]])
        chosen = torch.cat(keep)
        return Pool(learner.encode(classes.images[chosen]).double(), classes.labels[chosen])

    return pool(known.of_classes(order[half:])), pool(benchmark.novel)


def bag(pool: Pool, way: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Points of `way` classes, `size` of each."""
    counts = torch.bincount(pool.labels)
    classes = (counts >= size).nonzero().squeeze(1)
    chosen = classes[torch.randperm(len(classes), generator=generator)[:way]]
    parts = [(pool.labels == label).nonzero().squeeze(1) for label in chosen]
    picked = [part[torch.randperm(len(part), generator=generator)[:size]] for part in parts]
    return pool.points[torch.cat(picked)]


def measure(known: Pool, novel: Pool, way: int, size: int, episodes: int) -> dict[str, dict[str, float]]:
    """What each method answers on the same bags."""
    items, g = way * size, torch.Generator().manual_seed(0)
    start = perf_counter()
    calibration = calibrate([known], items, torch.Generator().manual_seed(1))
    assert calibration is not None
    seconds = perf_counter() - start
    probe = known.labels < PROBE_CLASSES
    first = torch.cat([(known.labels == c).nonzero().squeeze(1)[:PROBE_ITEMS] for c in range(PROBE_CLASSES)])
    assert bool(probe[first].all())
    most = min(items // 2, 40)
    candidates = np.unique(np.geomspace(2, most, 16).round()).astype(np.int64)
    answers: dict[str, list[int]] = {"calibrated": [], "silhouette": [], "dtc probe": []}
    held, certain, right = [], [], []
    for _ in range(episodes):
        points = bag(novel, way, size, g)
        tree = ward(points)
        count = estimate(tree, calibration)
        answers["calibrated"].append(count.k)
        held.append(count.low <= way <= count.high)
        certain.append(count.certain)
        right.append(abs(count.k - way) <= 0.2 * way)
        answers["silhouette"].append(by_silhouette(points, tree, most).k)
        answers["dtc probe"].append(dtc_probe(points, known.points[first], known.labels[first], candidates, g))
    found = {}
    for method, values in answers.items():
        errors = np.abs(np.array(values) - way)
        found[method] = {
            "mae": float(errors.mean()),
            "mae_std": float(errors.std(ddof=1)),
            "within_20": float((errors <= 0.2 * way + 1e-9).mean()),
            "mean_answer": float(np.mean(values)),
        }
    sure = np.array(certain)
    found["calibrated"] |= {
        "interval_holds": float(np.mean(held)),
        "certain": float(sure.mean()),
        "within_20_if_certain": float(np.array(right)[sure].mean()) if sure.any() else None,
        "calibration_seconds": round(seconds, 2),
    }
    return found


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: a row a dataset and number of classes, over all numbers of items a class."""
    lines = [
        "| data | classes | ours: error | within 20 % | silhouette: error | within 20 % | DTC: error | within 20 % |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        for way in WAYS:
            cells = []
            for method in ("calibrated", "silhouette", "dtc probe"):
                mine = [r for r in rows if (r["dataset"], r["way"], r["method"]) == (dataset, way, method)]
                cells.append(f"{fmean(r['mae'] for r in mine):.1f}")
                cells.append(f"{100 * fmean(r['within_20'] for r in mine):.0f} %")
            lines.append(f"| {dataset} | {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def intervals(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: what our interval and its `certain` are worth, a row a dataset."""
    lines = [
        "| data | the interval holds the truth | called certain | within 20 % where certain |",
        "| --- | --- | --- | --- |",
    ]
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == dataset and row["method"] == "calibrated"]
        sure = sum(row["certain"] for row in mine)
        right = sum(row["certain"] * (row["within_20_if_certain"] or 0) for row in mine)
        holds = f"{100 * fmean(row['interval_holds'] for row in mine):.0f} %"
        share = f"{100 * right / sure:.0f} %" if sure else "never certain"
        lines.append(f"| {dataset} | {holds} | {100 * sure / len(mine):.0f} % | {share} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, nargs="+", help="print the tables of these results instead")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--models", type=Path, help="where the trained network is kept and looked for")
    arguments = parser.parse_args()
    if arguments.table:
        rows = [row for path in arguments.table for row in read_journal(path)]
        print(table(rows), intervals(rows), sep="\n")
        return
    if not arguments.dataset or not arguments.out:
        parser.error("--dataset and --out are needed to measure")
    known, novel = embed(arguments.dataset, arguments.models)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.unlink(missing_ok=True)
    counts = torch.bincount(novel.labels)
    for way in WAYS:
        for size in SIZES:
            if int((counts >= size).sum()) < way:
                continue
            for method, figures in measure(known, novel, way, size, arguments.episodes).items():
                setting = {"dataset": arguments.dataset, "way": way, "size": size, "method": method}
                row = setting | figures | {"episodes": arguments.episodes, "training": asdict(CONFIG.schedule)}
                append_to_journal(arguments.out, row | describe_run(torch.device("cpu")))
                print(setting, {name: round(v, 2) for name, v in figures.items() if v is not None}, flush=True)


if __name__ == "__main__":
    main()
