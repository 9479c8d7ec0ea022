"""How right `medi discover` is, and how right it is about how right it is.

    python benchmarks/discover.py --out results/discover/draws.jsonl [--photos FOLDER] [--sets cifar100,…] [--draws 20]

Sets: photos in class folders (--photos, one subfolder a class), CIFAR-100 and Omniglot images (`medi data fetch`), all
by the default encoder; letters and digits as pixels. A draw has up to 20 known classes of up to 20 items and 5 or 20
novel classes of 5 items, or of 1 to 10. Three pools are grouped: `only` the novel items, and it is said that they are
all; the same without saying so (`pure`); and `mixed`, with as many items of known classes and up to 10 one-offs.

One row a draw and pool: the number of groups and its interval, ACC with the number found and given, ACC of Ward's
method on whitened features, calibration, what was found of known classes, one-offs, and further items. The engine of an
earlier commit runs on the same draws (`--earlier COMMIT`, taken out of git; empty to leave it out). Rows that are there
already are not made again. `results/render.py` makes the tables.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import torch
from discover_draws import Draw, Source, draw, sources
from numpy.typing import NDArray
from script import Parser, positive, run, some_of

from medi.bench.run import describe_run
from medi.cluster.ward import ward
from medi.discovery.canonical import in_order, unique_items
from medi.discovery.discover import DiscoveryConfig, Found, find_groups, recogniser_of
from medi.discovery.grouping import Wanted, right_lines
from medi.discovery.held_out import WHITENED, fit
from medi.discovery.learning import Learnt, learn
from medi.metrics import acc
from medi.runtime.context import Context
from medi.runtime.files import append_to_journal, make_folder, read_journal
from medi.runtime.progress import Reporter

SETS = ["cifar100", "omniglot", "glyphs", "digits"]
POOLS = ("only", "pure", "mixed")
OURS, EARLIER = "medi", "a24c678"
BINS = 10
"""Bins of confidence; a row has how many lines are in each, their confidence and how many are right."""
NONE_RATES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)
CONFIG = DiscoveryConfig(method="kmeans")
"""Without a projector, which takes longest and is nearly never kept: other methods differ in nothing else."""


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


def score(problem: Draw, found: Found, learnt: Learnt, place: NDArray[np.int64]) -> dict[str, Any]:
    """One pool, grouped."""
    labels, confidence = found.grouped.labels[place], found.confidence[place]
    truth, known = problem.truth, problem.truth < 0
    sizes = np.bincount(truth[~known])
    right = right_lines(truth, labels)
    row: dict[str, Any] = {
        "k": found.count.k,
        "low": found.count.low,
        "high": found.count.high,
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
    return row | recognition(problem, found, learnt, labels)


def recognition(problem: Draw, found: Found, learnt: Learnt, labels: NDArray[np.int64]) -> dict[str, Any]:
    """Further items of the novel classes, and strangers, by the rate at which belonging items may be called none."""
    recogniser = recogniser_of(found, learnt)
    items, classes = problem.further
    group_of = {c: g for g, c in enumerate(_majorities(problem.truth, labels)) if c >= 0}
    rates = {}
    for rate in NONE_RATES:
        answers = recogniser.recognise(items, rate)
        pairs = zip(answers, classes.tolist(), strict=True)
        rightly = [answer.kind == "novel" and int(answer.label) == group_of.get(c, -1) for answer, c in pairs]
        strange = recogniser.recognise(problem.strangers, rate)
        rates[str(rate)] = {
            "recognised": float(np.mean(rightly)),
            "called none": float(np.mean([a.kind == "none" for a in answers])),
            "strangers found out": float(np.mean([a.kind == "none" for a in strange])) if strange else None,
        }
    return {"further": rates}


def _majorities(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> list[int]:
    """The class that each group is matched with, -1 for none."""
    from scipy.optimize import linear_sum_assignment

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
    context = Context(seed=seed)
    start = perf_counter()
    learnt = learn(in_order(problem.known), problem.pool, CONFIG, context)
    learning = perf_counter() - start
    for pool in POOLS:
        one = mixed if pool == "mixed" else problem
        start = perf_counter()
        items, copies, place = unique_items(one.pool)
        found = find_groups(learnt, items, copies, Wanted(None, pool == "only"), context)
        row = score(one, found, learnt, place) | {"seconds": learning + perf_counter() - start}
        if pool == "only":
            given = find_groups(learnt, items, copies, Wanted(len(np.unique(one.truth)), True), context)
            row["acc given"] = novel_acc(one, given.grouped.labels[place])
            white = fit(f"{CONFIG.features}{WHITENED}", learnt.known, CONFIG, context)
            row["acc whitened Ward"] = acc(one.truth, ward(white(one.pool)).cut(len(np.unique(one.truth))))
            row["representation"] = learnt.representation.name
        yield pool, row


def earlier(commit: str, problems: list[tuple[str, Draw]], folder: Path) -> dict[str, dict[str, Any]]:
    """What the engine of an earlier commit makes of the same draws, by name."""
    archive = subprocess.run(["git", "archive", commit, "src"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    for number, (_, one) in enumerate(problems):
        np.savez(folder / f"{number}.npz", known=one.known.images, labels=one.known.labels, pool=one.pool)
    script = Path(__file__).with_name("earlier_engine.py")
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    command = [sys.executable, script, folder, str(len(problems))]
    output = subprocess.run(command, check=True, capture_output=True, env=environment, text=True).stdout
    answers = {}
    for (name, one), line in zip(problems, output.splitlines(), strict=True):
        answer = json.loads(line)
        labels, confidence = np.array(answer.pop("labels")), np.array(answer.pop("confidence"))
        right = right_lines(one.truth, labels)
        sizes = np.bincount(one.truth[one.truth >= 0])
        answers[name] = answer | {
            "acc": novel_acc(one, labels),
            "expected": float(confidence.mean()),
            "right": float(right.mean()),
            "bins": bins(confidence, right),
            "classes": int((sizes > 0).sum()) if name == "only" else int((sizes > 1).sum()),
        }
    return answers


def compare(source: Source, case: dict[str, Any], engines: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of one draw."""
    seed, groups, unequal = case["draw"], case["groups"], case["sizes"] == "unequal"
    pure = draw(source, seed, groups, unequal=unequal, mixed=False)
    mixed = draw(source, seed, groups, unequal=unequal, mixed=True)
    for engine in engines:
        if engine == OURS:
            found = dict(measure(pure, mixed, seed))
        else:
            with TemporaryDirectory() as folder:
                found = earlier(engine, [("only", pure), ("mixed", mixed)], Path(folder))
        for pool, row in found.items():
            yield case | {"engine": engine, "pool": pool} | row


def main(parser: Parser) -> None:
    """Draw, group, compare."""
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--photos", type=Path, help="folder of photos, one subfolder a class")
    parser.add_argument("--sets", type=str, default=None, help="names of sets, with commas; all unless given")
    parser.add_argument("--draws", type=positive, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first draw")
    parser.add_argument("--earlier", default=EARLIER)
    options = parser.parse_args()
    torch.set_num_threads(1)
    make_folder(options.out.parent)
    reporter = Reporter()
    available = sources(options.photos, reporter)
    wanted = some_of(list(available))(options.sets) if options.sets else list(available)
    rows = read_journal(options.out) if options.out.exists() else []
    done = {(row["set"], row["groups"], row["sizes"], row["draw"], row["engine"]) for row in rows}
    engines = [OURS, *filter(None, [options.earlier])]
    facts = describe_run(torch.device("cpu"))
    read = {name: available[name]() for name in wanted}
    for seed in range(options.first, options.first + options.draws):
        for name, source in read.items():
            for sizes in ("equal", "unequal"):
                for groups in cases(source):
                    case = {"set": name, "groups": groups, "sizes": sizes, "draw": seed}
                    todo = [engine for engine in engines if (*case.values(), engine) not in done]
                    for row in compare(source, case, todo):
                        append_to_journal(options.out, row | facts)
                        print(
                            *case.values(), *(row[key] for key in ("engine", "pool", "classes", "k", "acc")), flush=True
                        )


if __name__ == "__main__":
    run(main, __doc__)
