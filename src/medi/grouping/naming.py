"""How known items are named: by their place in the grouping, each by itself, or by a mix of both.

By itself is a shrunken linear discriminant: the evidence of one item against the means of the known classes. Rehearsals
choose the way, and how far ahead a class must be; the place is left only for what is clearly better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.grouping.bags import Bag
from medi.grouping.engine import ALONE, known_label
from medi.grouping.lines import right_lines
from medi.grouping.moves import Places, place_scores
from medi.grouping.search import Grouped

OF_BOTH, DISCRIMINANT = 0.25, 1.0
"""Weight of an item's own evidence beside that of its place."""
LEADS = (-12, -9, -6, -4, -2, -1, 0, 1, 2, 4, 6, 9, 12, 16, 20)
"""How far ahead of any other place a class may have to be, as evidence."""
BETTER_BY = 2
"""Standard errors over bags by which another way must be better than the place."""


@dataclass(frozen=True)
class Naming:
    """A way to name known items.

    Attributes:
        own: Weight of an item's own evidence beside that of its place; 0 for the place alone.
        lead: How far ahead of any other place a class must be.

    >>> Naming() == BY_PLACE, Naming(own=1.0, lead=4.0).lead
    (True, 4.0)
    """

    own: float = 0.0
    lead: float = 0.0

    def __call__(self, grouped: Grouped, points: Floats, copies: Ints) -> Ints:
        """The labels (n,) of grouped points (n, d), of which there are so many copies (n,)."""
        if self == BY_PLACE or not len(grouped.terms.anchors):
            return grouped.labels
        return _Named.of(grouped, points, copies).labels(self)


BY_PLACE = Naming()


@dataclass(frozen=True)
class _Named:
    """What names are given by, of n items.

    Attributes:
        before: (n,) labels as the places have them.
        instead: (n,) labels where no name is given.
        place: (n, c) lead of each known class over any other place.
        own: (n, c) lead of each known class over none, by the item itself.
        least: Items that a group keeps.
    """

    before: Ints
    instead: Ints
    place: Floats
    own: Floats
    least: int

    @classmethod
    def of(cls, grouped: Grouped, points: Floats, copies: Ints) -> _Named:
        """Of grouped points (n, d)."""
        labels, terms = grouped.labels, grouped.terms
        scores, groups = place_scores(points, labels, terms), grouped.places - len(terms.anchors)
        if terms.singles:
            scores[:, -1] = -np.inf  # nothing is alone
        known, others = scores[:, groups:-1], np.delete(scores, np.s_[groups : scores.shape[1] - 1], 1)
        best = others.argmax(1)
        instead = np.where(best == groups, ALONE, best)
        stays = (labels > known_label(0)) | ((instead == ALONE) & ((copies > 1) | terms.singles))
        by_itself = Places.of(points[:0], labels[:0], terms.anchors).all_scores(points, terms.model)
        lead = known - np.maximum(others.max(1, keepdims=True), np.finfo(float).min)
        own = by_itself[:, :-1] - by_itself[:, -1:]
        return cls(labels, np.where(stays, labels, instead), lead, own, 1 if terms.singles else 2)

    def labels(self, naming: Naming) -> Ints:
        """The labels (n,) that a way gives; a group that would lose its items keeps them."""
        lead = (1 - naming.own) * self.place + naming.own * self.own
        found = np.where(lead.max(1) > naming.lead, known_label(0) - lead.argmax(1), self.instead)
        sizes = np.bincount(found[found >= 0], minlength=int(self.before.max(initial=0)) + 1)
        lost = (self.before >= 0) & (sizes[np.maximum(self.before, 0)] < self.least)
        return np.where(lost, self.before, found)


def choose_naming(bags: Sequence[Bag], found: Sequence[Grouped]) -> Naming:
    """The way with most right lines in bags, where it is clearly better than the place.

    >>> choose_naming([], [])
    Naming(own=0.0, lead=0.0)
    """
    ways = [Naming(own, lead) for own, lead in product((OF_BOTH, DISCRIMINANT), LEADS)]
    gains = np.zeros((max(len(bags), 1), len(ways)))
    for number, (bag, grouped) in enumerate(zip(bags, found, strict=True)):
        if not len(grouped.terms.anchors):
            continue
        named = _Named.of(grouped, bag.points, np.ones(len(bag.points), np.int64))
        before = right_lines(bag.truth, grouped.labels)[bag.fair].sum()
        gains[number] = [right_lines(bag.truth, named.labels(way))[bag.fair].sum() - before for way in ways]
    best = int(gains.mean(0).argmax())
    error = gains[:, best].std(ddof=1) / np.sqrt(len(bags)) if len(bags) > 1 else np.inf
    return ways[best] if gains[:, best].mean() > BETTER_BY * error else BY_PLACE
