"""What known classes teach before the pool is looked at: what items are compared by, and the stages of rehearsals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.core.workplace import Workplace
from medi.data.items import Items
from medi.data.splits import FEWEST_KNOWN
from medi.discover.candidates import PIXELS, Fitter
from medi.discover.choice import Choice, choose, make_splits
from medi.discover.config import DiscoveryConfig, Teacher
from medi.discover.thinning import MOST_KNOWN, thin
from medi.grouping.copies import LabelledItems
from medi.grouping.engine import Anchors, Stage
from medi.grouping.grouper import PosteriorGrouper
from medi.grouping.partition import partition_of
from medi.grouping.preparations import as_they_are, class_means
from medi.grouping.representation import Representation

FEWEST_ITEMS = 3
"""Items that a known class needs to take part in choices and rehearsals."""


@dataclass(frozen=True)
class Learnt:
    """What known classes taught.

    Attributes:
        known: Their items.
        choice: What held-out known classes chose.
        representation: What items are compared by.
        grouper: What groups pools, calibrated on the splits.
        teacher: The method that learnt; None for none.
        work: Where, and from which seed.
    """

    known: Items
    choice: Choice
    representation: Representation
    grouper: PosteriorGrouper
    teacher: Teacher | None
    work: Workplace

    @cached_property
    def labelled(self) -> LabelledItems:
        """The known items by their content."""
        return LabelledItems.of(self.known)

    @cached_property
    def anchors(self) -> Anchors:
        """The known classes, their means as they were fitted."""
        return Anchors(class_means(self.known, self.representation), self.known.counts().astype(np.float64))


def learn(
    known: Items, pool: NDArray[Any], config: DiscoveryConfig, work: Workplace, teacher: Teacher | None = None
) -> Learnt:
    """Choose what items are compared by, and fit it to the known classes, or without any to the pool.

    `teacher` is the method in other settings than the config's.
    """
    fitter = Fitter(config, teacher or config.teacher(), work)
    large = _large_classes(known, work.seed)
    choice = _choose(known, large, fitter)
    representation = _representation(choice, known, pool, fitter)
    partition = partition_of(config.grouping)
    if partition is None and fitter.teacher is not None:
        partition = fitter.teacher.partition(work, vectors=not known.are_images)
    few = thin(known.labels[:0] if choice.splits else known.labels, MOST_KNOWN, seed=0)  # where nothing is rehearsed
    points = representation(known.values[few])
    grouper = PosteriorGrouper(tuple(_stages(choice)), points, known.labels[few], work.seed, partition)
    return Learnt(known, choice, representation, grouper, fitter.teacher, work)


def _large_classes(known: Items, seed: int) -> Items:
    """The known classes that take part in choices and rehearsals, `MOST_KNOWN` items of them or fewer."""
    large = np.flatnonzero(known.counts() >= FEWEST_ITEMS).tolist()
    indices = Items(np.arange(len(known))[:, None], known.labels, known.class_names).of_classes(large)
    keep = thin(indices.labels, MOST_KNOWN, seed)  # the items are not copied yet
    return Items(known.values[indices.values[keep, 0]], indices.labels[keep], indices.class_names)


def _choose(known: Items, large: Items, fitter: Fitter) -> Choice:
    """What held-out known classes choose; where they are too few, features as they are, or the trained network."""
    if large.n_classes >= FEWEST_KNOWN:
        return choose(make_splits(large, fitter), fitter.work.seed)
    plain, learnt = fitter.names(vectors=not known.are_images)
    network = known.are_images and large.n_classes >= 2 and bool(learnt)
    return Choice(learnt[0] if network else plain[0], {}, None, None, ())


def _representation(choice: Choice, known: Items, items: NDArray[Any], fitter: Fitter) -> Representation:
    """What was chosen, fitted to the known classes; items (n, …) of the pool frame it too where those are too few."""
    if not len(known):
        return as_they_are(items, fitter.config.features if items.ndim == 2 else PIXELS).framed(items)
    fitted = fitter.fit(choice.representation, known)
    if choice.splits or not len(items):
        return fitted
    # One class by itself shows neither where the middle of all classes is nor how far apart they lie.
    return replace(fitted, centre=None, scale=1.0).framed(np.concatenate([known.values, items]))


def _stages(choice: Choice) -> list[Stage]:
    """The splits as points of the representation that was kept."""
    stages = []
    for split in choice.splits:
        represent = split.candidates.all[choice.representation]
        means = class_means(split.learnt_from, represent)
        back = represent(split.kept_back.values) if len(split.kept_back) else means[:0]
        anchors = Anchors(means, split.learnt_from.counts().astype(np.float64))
        held_out = split.held_out
        stages.append(Stage(represent(held_out.values), held_out.labels, back, split.kept_back.labels, anchors))
    return stages
