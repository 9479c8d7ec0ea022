"""Does a discriminant name known items better than their place in the posterior?

    python benchmarks/naming.py --sets glyphs,cifar100,omniglot,folder:FLOWERS,features:CARS.npz --out FILE.json

The known classes of each set are drawn anew as known and as novel ones, and pools mixed of them: 10 novel classes of
five items (5 where classes are few), as many known ones and up to ten one-offs. Three ways to name: the place in the
posterior; the evidence of each item by itself against the means of the known classes, a shrunken discriminant; a mix.
Each draw's own rehearsals choose the way and its threshold. Prints and writes how many lines of the pools are right.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from discover_draws import Draw, Source, draw, encoded, glyphs
from numpy.typing import NDArray
from script import Parser, positive, run, write_json
from threadpoolctl import threadpool_limits

from medi.bench.datasets import load_dataset
from medi.bench.run import describe_run
from medi.core.arrays import Floats, Ints
from medi.core.progress import Reporter
from medi.core.workplace import Workplace
from medi.discover.config import DiscoveryConfig
from medi.discover.learning import learn
from medi.discover.pipeline import group_pool
from medi.grouping.bags import draw_bag
from medi.grouping.branches import Units
from medi.grouping.by_posterior import PosteriorGrouping
from medi.grouping.copies import in_order
from medi.grouping.engine import ALONE, Anchors, Ask, known_label
from medi.grouping.lines import right_lines
from medi.grouping.moves import Places, place_of
from medi.grouping.search import Grouped, group_units
from medi.methods.teacher import as_items

WAYS = {"place": 0.0, "mix": 0.25, "discriminant": 1.0}
"""Weight of an item's own evidence, beside that of its place in the posterior."""
THRESHOLDS = np.array([-12, -9, -6, -4, -2, -1, 0, 1, 2, 4, 6, 9, 12, 16, 20.0])
BAGS, FIRST_DRAW = 60, 100
CONFIG, ASK = DiscoveryConfig(only_novel=False), Ask(only_novel=False)


def known_of(name: str, reporter: Reporter) -> Source:
    """The known classes of a set, to be drawn from as known and as novel."""
    if name in ("cifar100", "omniglot"):
        source = encoded(name, 40, 1, reporter)
        values, labels = source.known, source.known_labels
    elif name == "glyphs":
        values, labels = glyphs().known, glyphs().known_labels
    else:
        items = as_items(load_dataset(name, as_people_do=True).known)
        values, labels = items.values, items.labels
    return Source(values, labels, values, labels, shared=True)


def named(points: Floats, anchors: Anchors, found: Grouped) -> NDArray[np.int64]:
    """Labels (ways, thresholds, n) of grouped points."""
    places, terms = Places.of(points, found.labels, found.terms.anchors), found.terms
    groups, scores = places.groups, []
    for point, here in zip(points, place_of(found.labels, groups).tolist(), strict=True):
        rest = Places(places.sums.copy(), places.counts.copy(), groups)
        if here >= 0:
            rest.sums[here] -= point
            rest.counts[here] -= 1
        scores.append(rest.scores(point, np.square(rest.sums).sum(1), terms))
    laid = np.array(scores)
    known, others = laid[:, groups:-1], np.delete(laid, np.s_[groups : groups + len(anchors)], 1)
    alone = Places.of(points[:0], found.labels[:0], anchors).all_scores(points, terms.model)
    own, best = alone[:, :-1] - alone[:, -1:], others.argmax(1)
    instead = np.where(best == groups, ALONE, best)
    instead = np.where(found.labels <= known_label(0), instead, found.labels)
    ways = []
    for weight in WAYS.values():
        lead = (1 - weight) * (known - others.max(1, keepdims=True)) + weight * own
        named = lead.max(1) > THRESHOLDS[:, None]
        ways.append(np.where(named, known_label(0) - lead.argmax(1), instead))
    return np.stack(ways)


def right(truth: Ints, labels: NDArray[np.int64], fair: NDArray[np.bool_]) -> Floats:
    """Right lines (ways, thresholds) among those that are fair."""
    return np.array([[right_lines(truth, one)[fair].sum() for one in way] for way in labels], np.float64)


def compare(problem: Draw, seed: int) -> dict[str, Any]:
    """Share of right lines of a pool, by each way at the threshold that rehearsals choose for it, and by the best."""
    learnt = learn(in_order(problem.known), problem.pool, CONFIG, Workplace(seed=seed))
    pool = group_pool(learnt, problem.pool, CONFIG)
    grouping, generator = pool.grouping, np.random.default_rng(seed)
    assert isinstance(grouping, PosteriorGrouping)
    assert grouping.found is not None
    rehearsed, stages = grouping.rehearsed, learnt.grouper.stages
    rehearsals = np.zeros((len(WAYS), len(THRESHOLDS)))
    for number in range(BAGS):
        bag = draw_bag(stages[number % len(stages)], len(grouping.points), rehearsed.shrink, ASK, generator)
        found = group_units(Units.single(bag.points), bag.anchors, rehearsed.model, ASK, rehearsed.odds)
        rehearsals += right(bag.truth, named(bag.points, bag.anchors, found), bag.fair)
    truth = problem.truth[np.unique(pool.place, return_index=True)[1]]
    scored = right(truth, named(grouping.points, grouping.known, grouping.found), truth == truth) / len(truth)
    best, chosen = rehearsals.argmax(1), int(rehearsals.max(1).argmax())
    shares = {way: float(scored[number, best[number]]) for number, way in enumerate(WAYS)}
    as_it_is = float(scored[0, THRESHOLDS.tolist().index(0.0)])
    return {"as it is": as_it_is, **shares, "chosen": list(WAYS)[chosen], "by the chosen": shares[list(WAYS)[chosen]]}


def main(parser: Parser) -> None:
    """Draw, rehearse, compare."""
    parser.add_argument("--sets", required=True, help="names of sets, with commas")
    parser.add_argument("--draws", type=positive, default=10)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    figures: dict[str, Any] = {"run": describe_run(torch.device("cpu"))}
    with threadpool_limits(1):
        for name in options.sets.split(","):
            source = known_of(name, Reporter())
            groups = 10 if len(np.unique(source.known_labels)) >= 30 else 5
            rows = [
                compare(draw(source, seed, groups, unequal=False, mixed=True, largest=5), seed)
                for seed in range(FIRST_DRAW, FIRST_DRAW + options.draws)
            ]
            figures[Path(name).stem.removeprefix("folder:").removeprefix("features:")] = rows
            means = {key: np.mean([row[key] for row in rows]) for key in rows[0] if key != "chosen"}
            print(name, *(f"{key} {100 * value:.1f}" for key, value in means.items()), flush=True)
    write_json(options.out, figures)


if __name__ == "__main__":
    run(main, __doc__)
