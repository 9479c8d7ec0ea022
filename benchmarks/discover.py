"""How right `medi discover` is, and how right it is about how right it is.

    python benchmarks/discover.py --out results/discover/draws.jsonl [--photos FOLDER] [--sets cifar100,…] [--draws 20]

Sets: photos in class folders (--photos, one subfolder a class), CIFAR-100 and Omniglot images (`medi data fetch`), all
by the default encoder; letters and digits as pixels. A draw has up to 20 known classes of up to 20 items and 5 or 20
novel classes of 5 items, or of 1 to 10. Three pools are grouped: `only` the novel items, and it is said that they are
all; the same without saying so (`pure`); and `mixed`, with as many items of known classes and up to 10 one-offs.

One row a draw and pool: the number of groups and its interval, ACC with the number found and given, ACC of Ward's
method on whitened features, calibration, what was found of known classes, one-offs, and further items. Rows that are
there already are not made again. `results/render.py` makes the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from alternatives import fit_whitened
from discover_draws import Draw, Source, add_arguments, draw, read_sets, sources
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from script import Parser, run
from threadpoolctl import threadpool_limits

from medi.bench.run import describe_run
from medi.core.files import append_to_journal, make_folder, read_journal
from medi.core.workplace import Workplace
from medi.discover.config import DiscoveryConfig
from medi.discover.learning import learn
from medi.discover.pipeline import GroupedPool, group_pool
from medi.grouping.copies import in_order
from medi.grouping.lines import right_lines
from medi.grouping.recogniser import Recogniser
from medi.grouping.ward import ward
from medi.metrics import acc

POOLS = ("only", "pure", "mixed")
ENGINE = "medi"
"""Rows of an earlier engine have the name of its commit."""
BINS = 10
"""Bins of confidence; a row has how many lines are in each, their confidence and how many are right."""
NONE_RATES = (None, 0.0, 0.02, 0.05, 0.1, 0.2, 0.3)
"""None for the likeliest answer, the default."""
CONFIG = DiscoveryConfig()


def cases(source: Source) -> Iterator[int]:
    """Numbers of novel classes that a set has enough classes for."""
    spare = len(np.unique(source.novel_labels)) // (2 if source.shared else 1)
    yield from (groups for groups in (5, 20) if groups <= spare)


def bins(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> dict[str, list[float]]:
    """Lines, confidence and right lines in each bin."""
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return {
        "lines": np.bincount(place, minlength=BINS).tolist(),
        "confidence": np.bincount(place, confidence, BINS).tolist(),
        "right": np.bincount(place, right.astype(float), BINS).tolist(),
    }


def novel_acc(problem: Draw, labels: NDArray[np.int64]) -> float:
    """ACC on the novel items; those that are called known or alone are wrong."""
    mine = (problem.truth >= 0) & ~problem.one_off
    found = np.where(labels[mine] >= 0, labels[mine], labels.max() + 1 + np.arange(mine.sum()))
    return acc(problem.truth[mine], found)


def score(problem: Draw, found: GroupedPool) -> dict[str, Any]:
    """One pool, grouped."""
    labels, confidence, count = found.labels, found.confidence, found.count
    truth, known = problem.truth, problem.truth < 0
    sizes = np.bincount(truth[~known])
    right = right_lines(truth, labels)
    row: dict[str, Any] = {
        "k": count.k,
        "low": count.low,
        "high": count.high,
        "acc": novel_acc(problem, labels),
        "expected": float(confidence.mean()),
        "right": float(right.mean()),
        "bins": bins(confidence, right),
        "classes": int((sizes > 0).sum()) if not problem.one_off.any() and not known.any() else int((sizes > 1).sum()),
    }
    if known.any():
        row["known found"] = float((labels[known] == truth[known]).mean())
        mine = ~known & ~problem.one_off
        row["novel called known"] = float((labels[mine] <= -2).mean())
    if problem.one_off.any():
        row["one-offs not called known"] = float((labels[problem.one_off] >= -1).mean())
    return row | recognition(problem, found.recogniser, labels)


def recognition(problem: Draw, recogniser: Recogniser, labels: NDArray[np.int64]) -> dict[str, Any]:
    """Further items of the novel classes, and strangers: the likeliest answers, and those at each rate."""
    items, classes = problem.further
    group_of = {c: g for g, c in enumerate(_majorities(problem.truth, labels)) if c >= 0}
    rates = {}
    for rate in NONE_RATES:
        answers = recogniser.recognise(items, rate)
        pairs = zip(answers, classes.tolist(), strict=True)
        rightly = [answer.kind == "novel" and int(answer.label) == group_of.get(c, -1) for answer, c in pairs]
        strange = recogniser.recognise(problem.strangers, rate)
        rates["likeliest" if rate is None else str(rate)] = {
            "recognised": float(np.mean(rightly)),
            "called none": float(np.mean([a.kind == "none" for a in answers])),
            "strangers found out": float(np.mean([a.kind == "none" for a in strange])) if strange else None,
        }
    return {"further": rates}


def _majorities(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> list[int]:
    """The class that each group is matched with, -1 for none."""
    both = (labels >= 0) & (truth >= 0)
    table = np.zeros((labels.max(initial=-1) + 1, truth.max() + 1))
    np.add.at(table, (labels[both], truth[both]), 1)
    groups, classes = linear_sum_assignment(-table)
    found = [-1] * len(table)
    for g, c in zip(groups.tolist(), classes.tolist(), strict=True):
        found[g] = c if table[g, c] else -1
    return found


def measure(problem: Draw, mixed: Draw, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The three pools of one draw; `problem` is the pure one."""
    start = perf_counter()
    learnt = learn(in_order(problem.known), problem.pool, CONFIG, Workplace(seed=seed))
    learning = perf_counter() - start
    for pool in POOLS:
        one = mixed if pool == "mixed" else problem
        start = perf_counter()
        config = replace(CONFIG, only_novel=pool == "only")
        row = score(one, group_pool(learnt, one.pool, config)) | {"seconds": learning + perf_counter() - start}
        if pool == "only":
            number = len(np.unique(one.truth))
            row["acc given"] = novel_acc(one, group_pool(learnt, one.pool, replace(config, classes=number)).labels)
            row["acc whitened Ward"] = acc(one.truth, ward(fit_whitened(learnt.known, seed)(one.pool)).cut(number))
            row["representation"] = learnt.representation.name
        yield pool, row


def compare(source: Source, case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of one draw."""
    seed, groups, unequal = case["draw"], case["groups"], case["sizes"] == "unequal"
    pure, mixed = (draw(source, seed, groups, unequal=unequal, mixed=mixed) for mixed in (False, True))
    for pool, row in measure(pure, mixed, seed):
        yield case | {"engine": ENGINE, "pool": pool} | row


def main(parser: Parser) -> None:
    """Draw, group, compare."""
    parser.add_argument("--out", type=Path, required=True)
    options = add_arguments(parser, draws=20, first=0).parse_args()
    read = read_sets(sources, options)
    make_folder(options.out.parent)
    rows = read_journal(options.out) if options.out.exists() else []
    done = {(row["set"], row["groups"], row["sizes"], row["draw"]) for row in rows if row["engine"] == ENGINE}
    with threadpool_limits(1):
        facts = describe_run(torch.device("cpu"))
        for seed in range(options.first, options.first + options.draws):
            for name, source in read.items():
                for sizes, groups in product(("equal", "unequal"), cases(source)):
                    case = {"set": name, "groups": groups, "sizes": sizes, "draw": seed}
                    for row in compare(source, case) if tuple(case.values()) not in done else ():
                        append_to_journal(options.out, row | facts)
                        print(*case.values(), *(row[key] for key in ("pool", "classes", "k", "acc")), flush=True)


if __name__ == "__main__":
    run(main, __doc__)
