"""How probable each place is for each item: what the engine says, among the groups that are shown.

All figures of a page come from here or from the confidence of a line, so that none contradicts another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.review.state import ReviewState

if TYPE_CHECKING:
    from medi.grouping.saved_pool import Regrouped

MOST_SAMPLES = 64


@dataclass(frozen=True)
class View:
    """What the engine says of n items under what was said of them up to now.

    Attributes:
        samples: (s, n) groupings: items with equal numbers are together.
        groups: (n, groups shown) how probable each group is for each item.
        known: (n, classes) how probable each known class is.
        names: Of these classes.
        pure: (groups shown,) how probable it is that all items of a group are of one kind.
        kin: (groups shown, groups shown) how probable it is that two groups are of one kind.
    """

    samples: Ints
    groups: Floats
    known: Floats
    names: tuple[str, ...]
    pure: Floats
    kin: Floats

    @classmethod
    def of(cls, state: ReviewState, found: Regrouped, shown: Mapping[int, int]) -> View:
        """An item's own place is as probable as its line says, and no other place is likelier.

        Args:
            state: Where items are shown.
            found: What the engine says.
            shown: The group that each label of `found` is shown as. Of other groups nothing is known.
        """
        k, column = max(found.labels, default=-1) + 1, {group: place for place, group in enumerate(state.members)}
        every = np.zeros((len(state.groups), len(column) + found.chances.shape[1] - k - 1))
        every[:, len(column) :] = found.chances[:, k:-1]
        label_of = {column[group]: label for label, group in shown.items() if group in column and 0 <= label < k}
        there, labels = [*label_of], [*label_of.values()]
        every[:, there] = found.chances[:, labels]
        pure, kin = np.ones(len(column)), np.zeros((len(column), len(column)))
        pure[there], kin[np.ix_(there, there)] = found.pure[labels], found.kin[np.ix_(labels, labels)]
        held, confidence = state.held, state.confidence
        sure = np.array([1.0 if item in held else confidence[item] for item in range(len(every))])
        own = np.array([column.get(group, -1) for group in state.groups], dtype=np.int64)
        for item, name in enumerate(state.known):
            if name in found.names:
                own[item] = len(column) + found.names.index(name)
        inside = np.flatnonzero(own >= 0)
        every[inside, own[inside]] = 0.0
        left = np.minimum(1.0, (1 - sure) / np.maximum(every.sum(1), 1e-12))
        every = np.minimum(every * left[:, None], sure[:, None])
        every[inside, own[inside]] = sure[inside]
        return cls(thinned(found.samples), every[:, : len(column)], every[:, len(column) :], found.names, pure, kin)


def thinned(samples: Ints) -> Ints:
    """At most as many samples as an answer within a moment allows, evenly from all of them."""
    return samples[:: max(1, math.ceil(len(samples) / MOST_SAMPLES))]
