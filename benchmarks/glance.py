"""Numbers at a glance: `medi discover` beside what one would use instead, on the same photos and the same features.

    python benchmarks/glance.py --photos FOLDER --out results/glance [--sets NAMES] [--draws 15] [--first 7000]

FOLDER holds a subfolder of photos for each class: ten classes or more of twelve photos or more. The other sets are
CIFAR-10, CIFAR-100 and Omniglot (`medi data fetch`), all by the default encoder, and letters as pixels, which come with
the package. --sets takes some of them: the name of FOLDER, cifar10, cifar100, omniglot, glyphs.

A draw has up to 20 known classes of up to 20 photos, and 5 or 10 new classes of 1 to 5 photos. Two pools are sorted:
`pure` holds the new classes alone; `mixed` also holds as many known classes, 1 to 5 photos of each, and up to ten
one-offs. `alternatives.py` has the alternatives. Most of them name no known class, so that a mixed pool asks less of
them: MEDI is scored there a second time as they are, its names taken for groups. Seconds are those of the processor.
Every draw and pool is a row of OUT/draws.jsonl, and rows that are there are not made again. OUT/table.md has every
case; the tables of docs/glance.md are printed.
"""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import sklearn
import torch
from alternatives import ALTERNATIVES, NAMING, Ints, Question, apart
from discover_draws import (
    NOVEL_ITEMS,
    Draw,
    Source,
    Sources,
    add_arguments,
    draw,
    encoded,
    glyphs,
    photo_folder,
    read_sets,
)
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from script import Parser, run
from threadpoolctl import threadpool_limits

from discover import bins
from medi.bench.run import describe_run
from medi.core.errors import InputError
from medi.core.files import append_to_journal, make_folder, read_journal, write_atomically
from medi.core.progress import Reporter
from medi.core.workplace import Workplace
from medi.discover.config import DiscoveryConfig
from medi.discover.learning import Learnt, learn
from medi.discover.pipeline import group_pool
from medi.grouping.copies import in_order
from medi.grouping.lines import right_lines
from medi.photos.folders import class_of, find_photos

sys.path.append(str(Path(__file__).resolve().parents[1] / "results"))
from glance_tables import cases_table, page_tables

GROUPS = (5, 10)
FEWEST_CLASSES, FEWEST_PHOTOS = 2 * GROUPS[0], 12
"""Of a folder of photos: half of the classes are known, and every one has photos to learn from and to sort."""
FIRST = 7000
"""The first draw; no draw from here on was looked at while the engine was built."""
JOURNAL = "draws.jsonl"
MIXED = DiscoveryConfig(only_novel=False)
ONLY_NOVEL = DiscoveryConfig(only_novel=True)


def photos_of(root: Path, reporter: Reporter) -> Source:
    """Photos in class folders; classes with few photos are left out."""
    photos = Counter(class_of(path) for path in find_photos(root, "--photos").paths)
    large = sum(count >= FEWEST_PHOTOS for name, count in photos.items() if name)
    if large < FEWEST_CLASSES:
        raise InputError(
            f"--photos {root} has {large} subfolders with {FEWEST_PHOTOS} photos or more: "
            f"give a folder with {FEWEST_CLASSES} such classes, one subfolder each."
        )
    read = photo_folder(root, reporter)
    counts = np.bincount(read.known_labels)
    keep = counts[read.known_labels] >= FEWEST_PHOTOS
    values, labels = read.known[keep], read.known_labels[keep]
    return Source(values, labels, values, labels, shared=True)


def sources(photos: Path | None, reporter: Reporter) -> Sources:
    """How each set is read."""
    found: Sources = {}
    if photos is not None:
        found[photos.resolve().name] = lambda: photos_of(photos, reporter)
    return found | {
        "cifar10": lambda: encoded("cifar10", 40, 60, reporter),
        "cifar100": lambda: encoded("cifar100", 40, 60, reporter),
        "omniglot": lambda: encoded("omniglot", 20, 20, reporter),
        "glyphs": glyphs,
    }


def cases(source: Source) -> list[int]:
    """Numbers of new classes that a set has enough classes for."""
    classes = len(np.unique(source.novel_labels))
    return [groups for groups in GROUPS if groups <= (classes - classes // 2 if source.shared else classes)]


def put_right(truth: Ints, labels: Ints) -> NDArray[np.bool_]:
    """Which photos are in the group that is their class; a photo that is called known never is.

    Groups and classes, known ones too, are matched one to one so that as many photos as possible are right.
    """
    grouped = labels >= -1
    right = np.zeros(len(truth), bool)
    if grouped.any():
        groups, mine = np.unique(apart(labels[grouped]), return_inverse=True)
        classes, true = np.unique(truth[grouped], return_inverse=True)
        table = np.zeros((len(groups), len(classes)), dtype=int)
        np.add.at(table, (mine, true), 1)
        class_of_group = np.full(len(groups), -1)
        rows, columns = linear_sum_assignment(table, maximize=True)
        class_of_group[rows] = columns
        right[grouped] = class_of_group[mine] == true
    return right


def figures(problem: Draw, labels: Ints, *, names_known: bool) -> dict[str, Any]:
    """What became of a pool. Groups and classes are counted from two photos on.

    Who names no known class is asked less: a known class is right where it is a group.
    """
    truth, known, one_off = problem.truth, problem.truth < 0, problem.one_off
    new = ~known & ~one_off
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    lone = (labels == -1) | ((labels >= 0) & (sizes[np.maximum(labels, 0)] == 1))
    right = np.where(one_off, lone, put_right(truth, labels))
    if names_known:
        right[known] = labels[known] == truth[known]
    counted = truth[~known] if names_known else truth
    found: dict[str, Any] = {
        "acc": float(right[new].mean()),
        "all right": float(right.mean()),
        "groups": int((sizes > 1).sum()),
        "classes": int((np.unique(counted, return_counts=True)[1] > 1).sum()),
    }
    if known.any() and names_known:
        found["known named"] = float(right[known].mean())
        found["new called known"] = float((labels[new] <= -2).mean())
    if one_off.any():
        found["one-offs alone"] = float(right[one_off].mean())
    return found


def names_as_groups(labels: Ints) -> Ints:
    """Labels in which what has the name of one known class is a group like any other."""
    return np.where(labels <= -2, labels.max(initial=-1) - 1 - labels, labels)


def by_medi(problem: Draw, learnt: Learnt, config: DiscoveryConfig) -> tuple[Ints, dict[str, Any]]:
    """Labels (n,) by the engine of `medi discover`, what became of the pool, and what the engine says of itself."""
    start = process_time()
    found = group_pool(learnt, problem.pool, config)
    seconds = process_time() - start
    return found.labels, figures(problem, found.labels, names_known=not config.only_novel) | {
        "low": found.count.low,
        "high": found.count.high,
        "bins": bins(found.confidence, right_lines(problem.truth, found.labels)),
        "seconds": seconds,
    }


def compare(problem: Draw, learnt: Learnt, learning: float, seed: int) -> dict[str, dict[str, Any]]:
    """Every approach on one pool."""
    mixed = bool((problem.truth < 0).any())
    number = len(np.unique(problem.truth))
    asked = {"medi": MIXED}
    if not mixed:
        asked |= {"medi --only-novel": ONLY_NOVEL, "medi, told": replace(ONLY_NOVEL, classes=number)}
    found = {}
    for name, config in asked.items():
        labels, found[name] = by_medi(problem, learnt, config)
        found[name]["seconds"] += learning
        if mixed:
            same_terms = figures(problem, names_as_groups(labels), names_known=False)
            found[f"{name}, names as groups"] = same_terms | {"seconds": found[name]["seconds"]}
    question = Question(learnt.known, problem.pool, number, seed)
    for name, group in ALTERNATIVES.items():
        start = process_time()
        labels = group(question)
        seconds = process_time() - start
        found[name] = figures(problem, labels, names_known=name in NAMING or not mixed) | {"seconds": seconds}
    return found


def measure(source: Source, seed: int, groups: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Both pools of one draw, each with what every approach made of it."""
    pure, mixed = (
        draw(source, seed, groups, unequal=True, mixed=mixed, largest=NOVEL_ITEMS) for mixed in (False, True)
    )
    start = process_time()
    learnt = learn(in_order(pure.known), pure.pool, MIXED, Workplace(seed=seed))
    learning = process_time() - start
    for pool, problem in (("pure", pure), ("mixed", mixed)):
        approaches = compare(problem, learnt, learning, seed)
        yield pool, {"photos": len(problem.truth), "known classes": learnt.known.n_classes, "approaches": approaches}


def rounded(value: Any) -> Any:
    """Figures with four digits after the point, so that the file stays small."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


def main(parser: Parser) -> None:
    """Draw, sort, compare."""
    parser.add_argument("--out", type=Path, required=True, help="folder for the rows and the table")
    options = add_arguments(parser, draws=15, first=FIRST).parse_args()
    read = read_sets(sources, options)
    make_folder(options.out)
    journal = options.out / JOURNAL
    rows = read_journal(journal) if journal.exists() else []
    done = {(row["set"], row["groups"], row["draw"], row["pool"]) for row in rows}
    with threadpool_limits(1):
        facts = describe_run(torch.device("cpu")) | {
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        }
        for seed in range(options.first, options.first + options.draws):
            for name, groups in ((name, groups) for name, source in read.items() for groups in cases(source)):
                todo = {pool for pool in ("pure", "mixed") if (name, groups, seed, pool) not in done}
                for pool, found in measure(read[name], seed, groups) if todo else ():
                    if pool in todo:
                        row = {"set": name, "groups": groups, "draw": seed, "pool": pool} | rounded(found) | facts
                        append_to_journal(journal, row)
                        rows.append(row)
                        acc = {key: one["acc"] for key, one in row["approaches"].items()}
                        print(name, groups, seed, pool, acc, flush=True)
    write_atomically(options.out / "table.md", cases_table(rows).encode())
    print(*page_tables(rows).values(), sep="\n")


if __name__ == "__main__":
    run(main, __doc__)
