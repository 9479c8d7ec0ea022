"""Discovery in one call: known items with labels and a pool without in, groups and a recogniser out.

outcome = discover_groups(known, pool, DiscoveryConfig(), Workplace())
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Floats, Ints
from medi.core.errors import InputError
from medi.core.workplace import Workplace
from medi.data.items import Items
from medi.discover.config import DiscoveryConfig
from medi.discover.describe import describe, nothing
from medi.discover.diagnose import distance_from_known, largest_overlap
from medi.discover.large_pools import MOST_GROUPED, draw, join_groups
from medi.discover.learning import Learnt, learn
from medi.discover.map import map_positions
from medi.discover.result import ClassCount, Discovery
from medi.discover.verdict import FAR, UNCERTAIN, Figures
from medi.grouping.constraints import Constraints
from medi.grouping.copies import LabelledItems, Remembered, in_order, unique_items
from medi.grouping.engine import Ask, Grouping, known_label, place_numbers
from medi.grouping.recogniser import Recogniser
from medi.grouping.representation import check_features, check_size
from medi.grouping.saved_pool import SavedPool
from medi.grouping.ward import by_size


@dataclass(frozen=True)
class Outcome:
    """What came out of a discovery.

    Attributes:
        discovery: Everything that is said of the items and the groups.
        recogniser: Recognises further items.
        pool: The grouping, which can be made again under what a person says.
    """

    discovery: Discovery
    recogniser: Recogniser
    pool: SavedPool


def discover_groups(known: Items, pool: NDArray[Any], config: DiscoveryConfig, work: Workplace) -> Outcome:
    """Group the items of a pool by what known classes teach.

    The order of the items does not matter: they are put into an order of their own first, and copies of an item count
    once and get the same answer.

    Args:
        known: Labelled items: vectors (n, d) float, or images (n, c, h, w) uint8. There may be none.
        pool: Unlabelled items (m, …) of the same kind. There may be none; of more than `MOST_GROUPED`, so many drawn
            at random are grouped, and the others join the group that they fit best.
        config: Number of classes, method, network.
        work: Device, seed, folder for checkpoints and progress.
    """
    known = in_order(_checked(known, pool, config))
    items, _, _ = unique_items(pool)
    learnt = learn(known, items[draw(len(items), work.seed)], config, work)
    return discover_with(learnt, pool, config)


def discover_with(learnt: Learnt, pool: NDArray[Any], config: DiscoveryConfig) -> Outcome:
    """Group the items of a pool (m, …) by what known classes have taught already, and describe what was found."""
    found, names, blank = group_pool(learnt, pool, config), learnt.known.class_names, nothing(learnt.choice)
    if not len(pool):
        return Outcome(blank, found.recogniser, SavedPool(found.whole, found.place, np.zeros((0, 2)), names))
    positions = map_positions(found.whole.points, found.drawn, learnt.work.seed)[found.place]
    discovery = replace(
        describe(blank, found.grouping, found.whole, found.drawn, found.place, names),
        count=found.count,
        diagnosis=_figures(found, learnt, config).diagnosis(config.noun),
        positions=tuple((x, y) for x, y in positions.tolist()),
    )
    return Outcome(discovery, found.recogniser, SavedPool(found.whole, found.place, positions, names))


@dataclass(frozen=True)
class GroupedPool:
    """A pool of m items after grouping.

    Attributes:
        grouping: Of the items that were grouped.
        whole: Of all different items.
        drawn: (n,) which of these were grouped.
        place: (m,) each item of the pool among the different ones.
        count: How many groups, and why.
        recogniser: Recognises further items.
        distance: How far the items of groups lie from known classes, as `distance_from_known` has it.
    """

    grouping: Grouping
    whole: Grouping
    drawn: Ints
    place: Ints
    count: ClassCount
    recogniser: Recogniser
    distance: float | None

    @property
    def labels(self) -> Ints:
        """(m,) as `Grouping` has them."""
        return self.whole.labels[self.place]

    @property
    def confidence(self) -> Floats:
        """(m,) probability that each label is right."""
        return self.whole.confidence[self.place]


def group_pool(learnt: Learnt, pool: NDArray[Any], config: DiscoveryConfig) -> GroupedPool:
    """Group the items of a pool (m, …) by what known classes have taught already."""
    names, work = learnt.known.class_names, learnt.work
    items, copies, place = unique_items(pool)
    drawn = draw(len(items), work.seed)
    aside = sorted({int(place[item]) for item in config.aside})
    only_novel = config.only_novel or not names
    asked = None if config.classes == "auto" else config.classes
    labelled = None if only_novel else learnt.labelled
    said = _said(items[drawn], np.flatnonzero(np.isin(drawn, aside)), labelled)
    ask = Ask(asked, only_novel=only_novel, constraints=said)
    points = learnt.representation(items[drawn])
    with work.reporter.track("rehearsing on known classes, then grouping", 1) as tick:
        grouping: Grouping = learnt.grouper.group(points, learnt.anchors, ask, copies[drawn])
        tick(1)
    count = count_of(grouping, learnt.grouper.partition is not None)
    if learnt.teacher is not None and learnt.teacher.trains_on_observations:
        grouping, count = _by_training(grouping, count, items[drawn], learnt)
    distance = distance_from_known(learnt.choice.splits, items[drawn][grouping.labels > known_label(0)])
    if distance is not None and distance > FAR:  # rehearsals say nothing about things so unlike them
        grouping = grouping.doubted()
    whole = grouping
    if len(drawn) < len(items):
        recogniser = grouping.recogniser(learnt.representation, names)
        whole = join_groups(
            grouping, recogniser, _said(items, np.array(aside, np.int64), labelled), items, copies, drawn
        )
    number = whole.numbers_by_size
    grouping, whole = grouping.renumbered(number), whole.renumbered(number)
    lines = place_numbers(whole.labels, len(whole.known))
    remembered = Remembered.of(learnt.labelled, len(whole.known), items, lines, whole.chances)
    recogniser = replace(grouping.recogniser(learnt.representation, names), remembered=remembered)
    return GroupedPool(grouping, whole, drawn, place, count, recogniser, distance)


def _said(items: NDArray[Any], aside: Ints, labelled: LabelledItems | None) -> Constraints[int]:
    """What is certain: which items (n, …) a person set aside, and which are copies of labelled ones."""
    copied = labelled.find(items) if labelled else np.full(len(items), -1)
    copied[aside] = -1
    known = {item: int(copied[item]) for item in np.flatnonzero(copied >= 0).tolist()}
    return Constraints(known=known, aside=frozenset(aside.tolist()))


def _checked(known: Items, pool: NDArray[Any], config: DiscoveryConfig) -> Items:
    """The known items with a class, classes without items left out; bad input is refused."""
    for items, what in ((known.values, "known"), (pool, "novel")):
        if len(items) and not (
            (items.dtype.kind == "f" and items.ndim == 2) or (items.dtype == np.uint8 and items.ndim == 4)
        ):
            raise InputError(
                f"{what} items are {items.dtype} of shape {items.shape}: "
                "give float vectors (n, d) or uint8 images (n, c, h, w)."
            )
        check_features(items, what)
    check_size(*((known.values, "known") if len(known) else (pool, "novel")))
    if len(known) and len(pool) and known.values.shape[1:] != pool.shape[1:]:
        raise InputError(
            f"known items have shape {known.values.shape[1:]}, novel ones {pool.shape[1:]}: prepare both the same way."
        )
    if not len(known) and not len(pool):
        raise InputError("there is neither a known nor a novel item: give some.")
    grouped = min(len(pool), MOST_GROUPED)
    if config.classes != "auto" and 0 < grouped < config.classes:
        raise InputError(
            f"{config.classes} classes were asked for but there are {grouped} novel items to group: ask for fewer."
        )
    return known.of_classes(np.flatnonzero(known.counts()).tolist())


def count_of(grouping: Grouping, partitioned: bool = False) -> ClassCount:
    """How many groups, and why; `partitioned` where a partition, not the posterior, may have left some empty."""
    k, asked, numbers = grouping.k, grouping.ask.k, grouping.numbers
    if asked is not None:
        how = f"{k} group{'s' * (k != 1)}"
        if k == asked:
            how += ", as asked."
        else:
            others = "are copies" if len(grouping.labels) < asked else "look known"
            others = "were left empty by the method" if partitioned else others
            how += f", not {asked} as asked: the others {others}."
        return ClassCount(k, k, k, (), (), True, how)
    calibrated = grouping.calibrated
    low, high = grouping.interval
    low, high = min(low, k), max(high, k)
    shown = [number for number in range(len(numbers)) if numbers[number] >= 5e-4 or low <= number <= high]
    certain = calibrated and high <= UNCERTAIN * max(low, 1)
    how = f"There are probably {low} to {high} groups, and {k} is in the middle of what is likely."
    if low == high:
        how = f"There are very probably {k} groups." if k != 1 else "There is very probably 1 group."
    if not calibrated:
        how += " There are too few known classes to rehearse with, so this is a guess."
    return ClassCount(k, low, high, tuple(shown), tuple(float(numbers[i]) for i in shown), certain, how)


def _by_training(
    grouping: Grouping, count: ClassCount, items: NDArray[Any], learnt: Learnt
) -> tuple[Grouping, ClassCount]:
    """The groups that a method makes by training on the items; numbers and kinds stay."""
    assert learnt.teacher is not None
    novel = np.flatnonzero(grouping.labels >= 0)
    if not len(novel):
        return grouping, count
    own = learnt.teacher.trained_groups(learnt.known, learnt.representation, items[novel], count.k, learnt.work)
    labels = grouping.labels.copy()
    labels[novel] = by_size(own)
    if (filled := int(labels.max()) + 1) < count.k:
        how = f"{count.how.rstrip('.')}; the method filled only {filled} of them."
        count = replace(count, k=filled, low=min(count.low, filled), certain=False, how=how)
    return grouping.relabelled(labels), count


def _figures(found: GroupedPool, learnt: Learnt, config: DiscoveryConfig) -> Figures:
    """What the verdict rests on."""
    grouping, count = found.grouping, found.count
    rehearsed, spread = (None if np.isnan(value) else value for value in grouping.right)
    return Figures(
        expected=fsum(found.confidence) / len(found.confidence),  # whatever the order of the pool
        rehearsed=rehearsed,
        rehearsed_spread=spread,
        gain=learnt.choice.gain,
        gain_spread=learnt.choice.spread,
        distance=found.distance,
        overlap=largest_overlap(learnt.grouper.stages[:2]),
        known_share=float((found.labels <= known_label(0)).mean()),
        low=count.low,
        high=count.high,
        number_given=config.classes != "auto",
        calibrated=grouping.calibrated,
        known_classes=learnt.known.n_classes,
        known_each=int(np.quantile(learnt.known.counts(), 0.5, method="lower")) if len(learnt.known) else 0,
    )
