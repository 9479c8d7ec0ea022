"""Group the pool again under what was said, and take over what changes clearly: only items nobody has settled move."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from medi.discovery.result import DOUBTFUL_BELOW
from medi.review.constraints import bundles
from medi.review.draft import Draft
from medi.review.pool import Pool, Regrouped

CLEARLY = 0.05
"""How much more probable another group must be before an item moves: less is noise of the samples."""
BY_ITSELF = 0.3
"""What a group without other items is worth to one that may leave it or begin it."""
MOST_SAMPLES = 64
_SETTLED = 1000
"""Weight of an item that a person settled when new groups are recognised as old ones."""


def regroup(draft: Draft, pool: Pool) -> NDArray[np.int64]:
    """Group again and change the draft; what it was about stays exactly as said. Returns samples, few enough."""
    found = sampled(draft, pool)
    adopt(draft, found)
    return thinned(found.samples)


def sampled(draft: Draft, pool: Pool) -> Regrouped:
    """Group a pool under what was said; of classes that it does not know, all it is told is that they are no group."""
    links, names = draft.links(), set(pool.names)
    known = {item: name for item, name in links.known.items() if name in names}
    links = replace(links, known=known, aside=links.aside | (links.known.keys() - known.keys()))
    return pool.regroup(links, np.array(draft.groups, dtype=np.int64))


def thinned(samples: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most as many samples as an answer within a moment allows, evenly from all of them."""
    return samples[:: max(1, math.ceil(len(samples) / MOST_SAMPLES))]


def adopt(draft: Draft, found: Regrouped) -> None:
    """Take over the places and the confidence of items that are free to change.

    Items that a person put somewhere stay there. Items that were only said to be the same move together or not at all.
    """
    held, placed, of = draft.held(), _placed(draft), bundles(draft.words)
    number = recognise(draft, found.labels, held)
    shown, wanted = np.array(draft.groups), np.array([number.get(label, -1) for label in found.labels])
    samples = thinned(found.samples)
    now = belonging(samples, shown)
    apart: dict[int, set[int]] = defaultdict(set)
    for word in draft.words:
        if not word.same:
            apart[word.a].add(word.b)
            apart[word.b].add(word.a)
    units: dict[int, list[int]] = defaultdict(list)
    for item in range(len(shown)):
        if item not in placed:
            units[of.get(item, -1 - item)].append(item)
        elif draft.confidence[item] < 1 and wanted[item] == shown[item]:
            draft.confidence[item] = _rounded(found.confidence[item])
    for unit in units.values():
        first = unit[0]
        kind, sure, name = found.kinds[first], found.confidence[first], found.known[first]
        here, there = int(shown[first]), int(wanted[first])
        if kind == "known" and (first, name) not in draft.refused:
            moves = draft.known[first] == name or (sure >= DOUBTFUL_BELOW and len(unit) == 1)
            place = -1, name
        elif kind == "alone" and (here >= 0 or draft.known[first]):
            moves, place = sure >= DOUBTFUL_BELOW and len(unit) == 1, (-1, "")
        elif kind == "novel" and there != here:
            gain = _tie(samples, unit, wanted == there) - _tie(samples, unit, shown == here)
            moves, place = here < 0 or gain >= CLEARLY, (there, "")
            moves = moves and not any(draft.groups[other] == there for item in unit for other in apart[item])
        else:
            moves, place = kind != "known", (draft.groups[first], draft.known[first])
        for item in unit:
            if moves:
                draft.groups[item], draft.known[item] = place
            draft.confidence[item] = _rounded(sure if moves else min(now[item], sure))
    _number_new(draft)


def _placed(draft: Draft) -> set[int]:
    """Items that stay where they are: a person put them there, or they belong together with one that was put."""
    stands = draft.anchors()
    put = draft.aside | draft.marked | draft.touched | {stands[group] for group in draft.names if group in stands}
    put |= {item for item, group in enumerate(draft.groups) if group >= 0 and draft.confidence[item] == 1}
    put |= {item for word in draft.words if word.same and word.why != "answer" for item in (word.a, word.b)}
    of = bundles(draft.words)
    roots = {of[item] for item in put if item in of}
    return put | {item for item, root in of.items() if root in roots}


def _tie(samples: NDArray[np.int64], unit: Sequence[int], members: NDArray[np.bool_]) -> float:
    """How probable it is that items which are together belong to a group's other items."""
    others = members.copy()
    others[list(unit)] = False
    if not others.any():
        return BY_ITSELF
    return float((samples[:, others] == samples[:, [unit[0]]]).mean())


def recognise(draft: Draft, labels: Sequence[int], held: set[int]) -> dict[int, int]:
    """Which group each label is: the one that shares most with it, settled items above all; else a new one."""
    overlap: Counter[tuple[int, int]] = Counter()
    for item, (label, group) in enumerate(zip(labels, draft.groups, strict=True)):
        if label >= 0 and group >= 0:
            overlap[label, group] += _SETTLED if item in held else 1
    found = sorted({label for label in labels if label >= 0})
    groups = sorted({group for group in draft.groups if group >= 0})
    table = np.array([[overlap[label, group] for group in groups] for label in found]).reshape(len(found), len(groups))
    rows, columns = linear_sum_assignment(-table)
    number = {found[r]: groups[c] for r, c in zip(rows, columns, strict=True) if table[r, c]}
    new = (label for label in found if label not in number)
    return number | {label: draft.next_group + count for count, label in enumerate(new)}


def _number_new(draft: Draft) -> None:
    """Give the new groups that got items the next numbers, without gaps."""
    new = sorted({group for group in draft.groups if group >= draft.next_group})
    number = {group: draft.new_group() for group in new}
    draft.groups = [number.get(group, group) for group in draft.groups]


def belonging(samples: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,): how probable it is that an item is together with another one of its group; 0 for items in none."""
    total = np.zeros(len(groups))
    inside = np.flatnonzero(groups >= 0)
    if not len(samples) or not len(inside):
        return total
    _, group = np.unique(groups[inside], return_inverse=True)
    others = np.maximum(np.bincount(group)[group] - 1, 1)
    for sample in samples:
        _, label = np.unique(sample[inside], return_inverse=True)
        _, pair, count = np.unique(label * (group.max() + 1) + group, return_inverse=True, return_counts=True)
        total[inside] += (count[pair] - 1) / others
    total /= len(samples)
    alone = inside[np.bincount(group)[group] == 1]
    total[alone] = 1.0
    return total


def moved_items(draft: Draft, direct: Mapping[int, tuple[int, str]]) -> list[int]:
    """Items that grouping again moved, beyond the places that the action itself gave them."""
    return [item for item, place in enumerate(zip(draft.groups, draft.known, strict=True)) if place != direct[item]]


def _rounded(value: float) -> float:
    """Two digits: more would be noise, and journals full of it; only a person is entirely sure."""
    return round(min(0.99, max(0.0, float(value))), 2)


def belonging_to(samples: NDArray[np.int64], members: Sequence[int]) -> NDArray[np.float64]:
    """(n,): how probable it is that an item is together with one of some others."""
    total = np.zeros(samples.shape[1])
    for sample in samples:
        labels, label = np.unique(sample, return_inverse=True)
        total += np.bincount(label[list(members)], minlength=len(labels))[label] / len(members)
    return total / max(len(samples), 1)
