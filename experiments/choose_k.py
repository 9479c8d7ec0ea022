"""How well is the number of classes estimated? Ours, calibrated on known classes, against silhouette and DTC's probe.

    python experiments/choose_k.py --dataset glyphs --out results/choose_k/glyphs.jsonl [--episodes 20]
    python experiments/choose_k.py --table results/choose_k/*.jsonl

A Conv-4 is trained by MP on half of the known classes, on a CPU; the other half, which it has not seen, calibrates our
estimate and serves DTC's method as probe classes. Bags of 5, 10 and 20 *novel* classes with 3 to 20 items each are then
drawn from the test split, and each method says how many classes there are. All methods get the same points and may
answer anything from 2 to half the number of items. One row for each setting and method: mean absolute error, fraction
of answers within 20 %, mean answer, and for ours how often the interval holds the truth and how often the estimate is
called certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

import numpy as np
import torch
from common import Parser, markdown, positive, read_rows, run, spread
from medi.discovery.count import Pool, by_silhouette, calibrate, estimate
from rivals import dtc_probe

from medi.bench.run import describe_run
from medi.cluster.ward import ward
from medi.data.benchmarks import load
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.base import Plan
from medi.methods.mp import MP
from medi.runtime.context import Context
from medi.runtime.files import append_to_journal, make_folder
from medi.runtime.progress import Reporter
from medi.train.schedule import Schedule

WAYS, SIZES = (5, 10, 20), (3, 5, 10, 20)
KEPT, PROBE_CLASSES, PROBE_ITEMS = 30, 10, 10
METHOD = MP(queries=5, images=200, schedule=Schedule(steps=150, rate=3e-3))


def embed(name: str, folder: Path | None) -> tuple[Pool, Pool]:
    """Points of known classes that the network has not seen, and of novel ones; at most 30 items a class."""
    benchmark, context = load(name), Context(folder=folder, reporter=Reporter())
    known = benchmark.known
    order = torch.randperm(known.n_classes, generator=torch.Generator().manual_seed(0)).tolist()
    half = known.n_classes // 2
    plan = Plan(way=20, observations=5, queries=5, augmentation=benchmark.facts.augmentation, context=context)
    learner = METHOD.fit(known.of_classes(order[:half]), plan)

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
    if calibration is None:
        raise InputError(
            f"{int(known.labels.max()) + 1} known classes are too few to calibrate on: take another dataset."
        )
    seconds = perf_counter() - start
    probe = torch.cat([(known.labels == c).nonzero().squeeze(1)[:PROBE_ITEMS] for c in range(PROBE_CLASSES)])
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
        answers["dtc probe"].append(dtc_probe(points, known.points[probe], known.labels[probe], candidates, g))
    found = {}
    for method, values in answers.items():
        errors = [abs(value - way) for value in values]
        mae, deviation = spread(errors)
        found[method] = {
            "mae": mae,
            "mae_std": deviation,
            "within_20": fmean(error <= 0.2 * way + 1e-9 for error in errors),
            "mean_answer": fmean(values),
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
    """Markdown: a line for each dataset and number of classes, over all numbers of items a class."""
    lines = [["data", "classes"]]
    for title in ("ours", "silhouette", "DTC"):
        lines[0] += [f"{title}: error", "within 20 %"]
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        for way in sorted({row["way"] for row in rows if row["dataset"] == dataset}):
            cells = [dataset, str(way)]
            for method in ("calibrated", "silhouette", "dtc probe"):
                mine = [r for r in rows if (r["dataset"], r["way"], r["method"]) == (dataset, way, method)]
                cells.append(f"{fmean(r['mae'] for r in mine):.1f}")
                cells.append(f"{100 * fmean(r['within_20'] for r in mine):.0f} %")
            lines.append(cells)
    return markdown(lines)


def intervals(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: how often our interval holds and what `certain` is worth, a line a dataset."""
    lines = [["data", "the interval holds the truth", "called certain", "within 20 % where certain"]]
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == dataset and row["method"] == "calibrated"]
        sure = sum(row["certain"] for row in mine)
        right = sum(row["certain"] * (row["within_20_if_certain"] or 0) for row in mine)
        holds = f"{100 * fmean(row['interval_holds'] for row in mine):.0f} %"
        when_sure = f"{100 * right / sure:.0f} %" if sure else "never certain"
        lines.append([dataset, holds, f"{100 * sure / len(mine):.0f} %", when_sure])
    return markdown(lines)


def main(parser: Parser) -> None:
    """Measure and write."""
    parser.add_argument("--dataset")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, nargs="+", help="print the tables of these results instead")
    parser.add_argument("--episodes", type=positive, default=20)
    parser.add_argument("--models", type=Path, help="where the trained network is kept and looked for")
    options = parser.parse_args()
    if options.table:
        rows = [row for path in options.table for row in read_rows(path, "dataset", "way", "method", "mae")]
        print(table(rows), intervals(rows), sep="\n", end="")
        return
    if not options.dataset or not options.out:
        raise InputError("nothing to measure: give --dataset NAME and --out FILE.jsonl.")
    make_folder(options.out.parent)
    known, novel = embed(options.dataset, options.models)
    options.out.unlink(missing_ok=True)
    counts = torch.bincount(novel.labels)
    for way in WAYS:
        for size in SIZES:
            if int((counts >= size).sum()) < way:
                continue
            for method, figures in measure(known, novel, way, size, options.episodes).items():
                setting = {"dataset": options.dataset, "way": way, "size": size, "method": method}
                row = setting | figures | {"episodes": options.episodes, "training": asdict(METHOD.schedule)}
                append_to_journal(options.out, row | describe_run(torch.device("cpu")))
                print(setting, {name: round(v, 2) for name, v in figures.items() if v is not None}, flush=True)


if __name__ == "__main__":
    run(main, __doc__)
