"""How well is the number of classes estimated? Ours, calibrated on known classes, against silhouette and DTC's probe.

    python benchmarks/choose_k.py --dataset glyphs --out results/choose_k/glyphs.jsonl [--episodes 20]

A Conv-4 is trained by MP on half of the known classes, on a CPU; the other half, which it has not seen, calibrates our
estimate and serves DTC's method as probe classes. Bags of 5, 10 and 20 *novel* classes with 3 to 20 items each are then
drawn from the test split, and each method says how many classes there are; all may answer anything from 2 to half as
many as there are items, and all get the same points. One line for each setting and method: mean absolute error,
share of answers within 20 %, mean answer, and for ours how often the interval holds the truth and how often it called
itself certain.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from medi.bench.run import describe_run
from medi.cluster.choose_k import Pool, by_silhouette, calibrate, estimate
from medi.cluster.rivals import dtc_probe
from medi.cluster.trees import ward
from medi.data.benchmarks import load
from medi.data.images import ImageSet
from medi.files import append_to_journal
from medi.methods.base import Plan
from medi.methods.mp import MP, MPConfig
from medi.progress import Reporter
from medi.train.loop import Desk
from medi.train.schedule import Schedule

WAYS, SIZES = (5, 10, 20), (3, 5, 10, 20)
KEPT, PROBE_CLASSES, PROBE_ITEMS = 30, 10, 10
CONFIG = MPConfig(queries=5, images=200, schedule=Schedule(steps=150, rate=3e-3))


def embed(name: str, folder: Path | None) -> tuple[Pool, Pool]:
    """Points of known classes that the network has not seen, and of novel ones; at most 30 items a class."""
    benchmark, desk = load(name), Desk(folder=folder, reporter=Reporter())
    known = benchmark.known
    order = torch.randperm(known.n_classes, generator=torch.Generator().manual_seed(0)).tolist()
    half = known.n_classes // 2
    plan = Plan(way=20, observations=5, queries=5, augmentation=benchmark.facts.augmentation, desk=desk)
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


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--models", type=Path, help="where the trained network is kept and looked for")
    arguments = parser.parse_args()
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
