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
from medi.review.draft import Draft
from medi.review.pool import Pool, Regrouped

CLEARLY = 0.05
"""How much more probable another group must be before an item moves: less is noise of the samples."""
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
    """Take over the places and the confidence of items that are free to change."""
    held = draft.held()
    number = recognise(draft, found.labels, held)
    shown = np.array(draft.groups)
    wanted = np.array([number.get(label, -1) for label in found.labels])
    samples = thinned(found.samples)
    now, then = belonging(samples, shown), belonging(samples, wanted)
    apart: dict[int, set[int]] = defaultdict(set)
    for word in draft.words:
        if not word.same:
            apart[word.a].add(word.b)
            apart[word.b].add(word.a)
    for item, kind in enumerate(found.kinds):
        if item in held:
            if draft.confidence[item] < 1 and wanted[item] == shown[item]:
                draft.confidence[item] = _rounded(found.confidence[item])
            continue
        moves = item not in draft.touched
        if moves and kind == "known" and (item, found.known[item]) not in draft.refused:
            moves = draft.known[item] == found.known[item] or found.confidence[item] >= DOUBTFUL_BELOW
            if moves:
                draft.groups[item], draft.known[item] = -1, found.known[item]
        elif moves and kind == "alone" and (draft.groups[item] >= 0 or draft.known[item]):
            moves = found.confidence[item] >= DOUBTFUL_BELOW
            if moves:
                draft.groups[item], draft.known[item] = -1, ""
        elif moves and kind == "novel" and wanted[item] != draft.groups[item]:
            moves = shown[item] < 0 or then[item] >= now[item] + CLEARLY
            moves = moves and not any(draft.groups[other] == wanted[item] for other in apart[item])
            if moves:
                draft.groups[item], draft.known[item] = int(wanted[item]), ""
        draft.confidence[item] = _rounded(found.confidence[item] if moves else min(now[item], found.confidence[item]))
    _number_new(draft)


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
    """Two digits: more would be noise, and journals full of it."""
    return round(min(1.0, max(0.0, float(value))), 2)


def belonging_to(samples: NDArray[np.int64], members: Sequence[int]) -> NDArray[np.float64]:
    """(n,): how probable it is that an item is together with one of some others."""
    total = np.zeros(samples.shape[1])
    for sample in samples:
        labels, label = np.unique(sample, return_inverse=True)
        total += np.bincount(label[list(members)], minlength=len(labels))[label] / len(members)
    return total / max(len(samples), 1)
