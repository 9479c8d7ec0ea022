"""How probable each place is for each item: what the engine says, among the groups that are shown.

All figures of a page come from here or from the confidence of a line, so that none contradicts another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Floats, Ints
from medi.grouping.elsewhere import levelled
from medi.review.constraints import bundles, kept_apart
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
        every, own = place_chances(state, found, shown)
        held, confidence = state.held, state.confidence
        sure = np.array([1.0 if item in held else confidence[item] for item in range(len(every))])
        lines, members = np.arange(len(every)), list(state.members)
        every[lines, own] = 0.0
        left = np.minimum(1.0, (1 - sure) / np.maximum(every.sum(1), 1e-12))
        every = np.minimum(every * left[:, None], sure[:, None])
        every[lines, own] = sure
        label_of = {place: label for label, place in _columns(state, found, shown)}
        there, labels = [*label_of], [*label_of.values()]
        pure, kin = np.ones(len(members)), np.zeros((len(members), len(members)))
        pure[there], kin[np.ix_(there, there)] = found.pure[labels], found.kin[np.ix_(labels, labels)]
        denied = _denied(state, found.names)[:, : len(members)]
        for place, items in enumerate(state.members.values()):
            if place not in label_of and len(items) == 1:  # a group of one photo is where that photo may be
                kin[place] = kin[:, place] = every[items[0], : len(members)]
            apart = denied[items].any(0)
            kin[place, apart] = kin[apart, place] = 0.0
        groups, known = every[:, : len(members)], every[:, len(members) : len(members) + len(found.names)]
        return cls(thinned(found.samples), groups, known, found.names, pure, kin)


def confidences(state: ReviewState, found: Regrouped, shown: Mapping[int, int]) -> Floats:
    """(n,) how probable the place is that each item is shown in.

    Where others seem likelier, it and they get their mean: those are the nearest probabilities of which none is larger.
    """
    every, own = place_chances(state, found, shown)
    lines = np.arange(len(every))
    mine = every[lines, own].copy()
    every[lines, own] = 0.0
    return levelled(mine, every)


def place_chances(state: ReviewState, found: Regrouped, shown: Mapping[int, int]) -> tuple[Floats, Ints]:
    """What the engine says of every place (n, groups shown + classes + 2), and where each item is shown (n,).

    The places after the classes are alone, and a class that the engine does not know. What a person said that an item
    is not is left out, and the rest as much more probable.
    """
    groups, names, k = list(state.members), found.names, max(found.labels, default=-1) + 1
    every = np.zeros((len(state.groups), len(groups) + len(names) + 2))
    every[:, len(groups) : -1] = found.chances[:, k:]
    for label, place in _columns(state, found, shown):
        every[:, place] = found.chances[:, label]
    denied = _denied(state, names)
    own = np.array([_own(state, item, groups, names) for item in range(len(every))], dtype=np.int64)
    denied[np.arange(len(every)), own] = False
    known_to_it = {place for _, place in _columns(state, found, shown)}
    new = np.array([place < len(groups) and place not in known_to_it for place in own.tolist()], dtype=bool)
    every[new, own[new]] = np.maximum(0.0, 1 - every[new].sum(1))  # a class without a group of the engine's
    left = 1 - np.where(denied, every, 0.0).sum(1, keepdims=True)
    every[denied] = 0.0
    return np.minimum(every / np.maximum(left, 1e-12), 1.0), own


def _denied(state: ReviewState, names: Sequence[str]) -> NDArray[np.bool_]:
    """Whether (n, groups shown + classes + 2) a person said that an item does not belong to a place."""
    groups, of = list(state.members), bundles(state.words)
    found = np.zeros((len(state.groups), len(groups) + len(names) + 2), dtype=bool)
    for ends in kept_apart(state.words, of):
        sides = [[item for item in range(len(found)) if of[item] == root] for root in ends]
        for one, other in (sides, sides[::-1]) if len(sides) == 2 else ():
            there = {state.groups[item] for item in other if state.groups[item] >= 0}
            found[np.ix_(one, [groups.index(group) for group in there])] = True
    for item, name in state.refused:
        if name in names:
            found[item, len(groups) + names.index(name)] = True
    return found


def _columns(state: ReviewState, found: Regrouped, shown: Mapping[int, int]) -> list[tuple[int, int]]:
    """Labels of groups of `found` with the places of the groups that they are shown as."""
    column = {group: place for place, group in enumerate(state.members)}
    labels = range(max(found.labels, default=-1) + 1)
    return [(label, column[shown[label]]) for label in labels if shown.get(label) in column]


def _own(state: ReviewState, item: int, groups: Sequence[int], names: Sequence[str]) -> int:
    """The place that an item is shown in."""
    if state.groups[item] >= 0:
        return groups.index(state.groups[item])
    if not state.known[item]:
        return len(groups) + len(names)
    known = state.known[item]
    return len(groups) + (names.index(known) if known in names else len(names) + 1)


def thinned(samples: Ints) -> Ints:
    """At most as many samples as an answer within a moment allows, evenly from all of them."""
    return samples[:: max(1, math.ceil(len(samples) / MOST_SAMPLES))]
