"""Bags for rehearsals: pools whose truth is known, because known classes play novel in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.grouping.engine import Anchors, Ask, Stage, known_label

LARGEST_CLASS, LARGEST_BAG = 10, 120
"""Most items that an average class has in a bag, and most items of a bag."""
FURTHER = 40
"""Most further items that are recognised after a bag was grouped."""


@dataclass(frozen=True)
class Bag:
    """A pool whose truth is known.

    Attributes:
        points: (n, d).
        truth: (n,) classes from 0 on, or `known_label` of an anchor.
        fair: (n,) whether nothing was fitted to the item's class; only those are scored.
        anchors: The known classes.
        further: (f, d) items that are not in the bag.
        further_truth: (f,) like `truth`; -1 for items of no class of the bag.
    """

    points: Floats
    truth: Ints
    fair: np.ndarray
    anchors: Anchors
    further: Floats
    further_truth: Ints

    @property
    def groups(self) -> int:
        """How many classes that are not known it holds, one-offs counted."""
        return len(np.unique(self.truth[self.truth >= 0]))


def draw_bag(stage: Stage, items: int, shrink: float, ask: Ask, generator: np.random.Generator) -> Bag:
    """A bag of up to so many items like a pool."""
    classes, known = np.unique(stage.labels), np.unique(stage.kept_labels)
    plays_novel = known if ask.only_novel else generator.permutation(known)[: len(known) // 2]
    sources = [stage.held_out[stage.labels == c] for c in classes]
    sources += [stage.kept_back[stage.kept_labels == c] for c in plays_novel]
    fair = np.arange(len(sources)) < len(classes)
    chosen = some_classes(len(sources), items, np.where(fair, 3.0, 1.0), generator)
    points, truth, further, further_truth = [], [], [], []
    for label, (source, size) in enumerate(zip(chosen, sizes_of(len(chosen), items, generator), strict=True)):
        shuffled = generator.permutation(sources[source])
        size = min(size, len(shuffled))
        points.append(shuffled[:size])
        truth.append(np.full(size, label))
        if fair[source]:
            further.append(shuffled[size:])
            further_truth.append(np.full(len(shuffled) - size, label))
    scored = [np.full(len(part), fair[source]) for part, source in zip(points, chosen, strict=True)]
    strangers = [generator.permutation(sources[c]) for c in np.setdiff1d(np.flatnonzero(fair), chosen)]
    if not ask.only_novel and ask.k is None and generator.random() < 0.5:  # one-offs, each a class of its own
        for part in strangers:
            points.append(part[:1])
            truth.append(np.array([len(truth)]))
            scored.append(np.array([True]))
        strangers = [part[1:] for part in strangers]
    remaining = np.setdiff1d(known, plays_novel)
    anchors = Anchors(shrink * stage.anchors.means[remaining], stage.anchors.counts[remaining])
    back = generator.permutation(np.flatnonzero(np.isin(stage.kept_labels, remaining)))
    present = round(generator.choice([0.0, 0.3, 1.0]) * sum(map(len, points))) if not ask.only_novel else 0
    names = known_label(0) - np.searchsorted(remaining, stage.kept_labels)
    points.append(stage.kept_back[back[:present]])
    truth.append(names[back[:present]])
    scored.append(np.full(len(back[:present]), True))
    further += [stage.kept_back[back[present:]], *strangers]
    further_truth += [names[back[present:]], *(np.full(len(part), -1) for part in strangers)]
    rest, rest_truth = np.concatenate(further), np.concatenate(further_truth)
    some = generator.permutation(len(rest))[:FURTHER]
    return Bag(
        np.concatenate(points), np.concatenate(truth), np.concatenate(scored), anchors, rest[some], rest_truth[some]
    )


def some_classes(available: int, items: int, odds: Floats, generator: np.random.Generator) -> Ints:
    """Two classes or more, as many as a bag may have: small numbers are as frequent as large ones, in logarithms."""
    most = max(2, min(available, items // 2))
    number = round(float(np.exp(generator.uniform(np.log(2), np.log(most + 0.49)))))
    return np.asarray(generator.choice(available, min(number, available), replace=False, p=odds / odds.sum()))


def sizes_of(classes: int, items: int, generator: np.random.Generator) -> Ints:
    """Items of each class, alike or not."""
    most = max(2.5, min(min(items, LARGEST_BAG) / classes, LARGEST_CLASS))
    mean = np.exp(generator.uniform(np.log(2), np.log(most)))
    weights = np.ones(classes) if generator.random() < 0.5 else generator.uniform(0.2, 1.8, classes)
    sizes: Ints = np.maximum(1, np.round(mean * weights)).astype(np.int64)
    return sizes
