"""How probable each place is for each item: by what items look like, and by what samples of groupings say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from medi.core.arrays import Floats, Ints
from medi.grouping.engine import Anchors
from medi.review.state import ReviewState
from medi.review.togetherness import near_groups

if TYPE_CHECKING:
    from medi.grouping.saved_pool import SavedPool


def chances(state: ReviewState, samples: Ints, pool: SavedPool) -> tuple[Floats, Floats]:
    """(n, groups) and (n, classes): how probable each group and each known class is for each item.

    Samples speak of groups only: they take far too many for known.
    """
    members = state.members
    alike = place_chances(pool.points, members, pool.known, np.asarray(state.confidence), state.held)
    groups, known = np.split(alike, [len(members)], axis=1)
    near = near_groups(samples, members)
    seen = near / np.maximum(near.sum(1, keepdims=True), 1e-9)
    return (groups + seen * (1 - known.sum(1, keepdims=True))) / 2, known


def place_chances(
    points: Floats, members: Mapping[int, Sequence[int]], known: Anchors, confidence: Floats, held: Collection[int]
) -> Floats:
    """(n, groups + classes): how probable each place is, by how far an item is from the middle of its other items.

    How much a distance counts is set such that free items fit their own groups as well as their confidence says.

    Args:
        points: (n, d).
        members: Items of each group.
        known: Known classes.
        confidence: (n,).
        held: Items that a person settled.
    """
    own = np.full(len(points), -1)
    for column, items in enumerate(members.values()):
        own[list(items)] = column
    away = np.concatenate([_away(points, own, len(members)), _away_from(points, known)], axis=1)
    sizes = np.bincount(own[own >= 0])
    if not away.size:
        return away
    typical = max(float(away.mean()), 1e-9)
    free = np.array([i for i, group in enumerate(own) if group >= 0 and sizes[group] > 1 and i not in held], np.int64)
    if not len(free):
        return np.asarray(softmax(-away / typical, axis=1))
    wanted = confidence[free].mean()

    def short(log_scale: float) -> float:
        fits = softmax(-np.exp(log_scale) * away[free], axis=1)[np.arange(len(free)), own[free]]
        return float(wanted - fits.mean())

    low, high = np.log(1e-3 / typical), np.log(1e3 / typical)
    scale = low if short(low) < 0 else high if short(high) > 0 else brentq(short, low, high, xtol=0.05)
    return np.asarray(softmax(-np.exp(scale) * away, axis=1))


def _away(points: Floats, own: np.ndarray, groups: int) -> Floats:
    """(n, groups): squared distance of each item to the middle of a group's other items, less where those are few.

    A group without others is as far as the middle of all.
    """
    inside = own >= 0
    at = np.flatnonzero(inside), own[inside]
    sums = np.zeros((groups, points.shape[1]))
    np.add.at(sums, own[inside], points[inside])
    lengths, products = np.square(points).sum(1), points @ sums.T
    count = np.tile(np.bincount(own[inside], minlength=groups).astype(np.float64), (len(points), 1))
    squares = np.tile(np.square(sums).sum(1), (len(points), 1))
    squares[at] += lengths[inside] - 2 * products[at]
    products[at] -= lengths[inside]
    count[at] -= 1
    others = np.maximum(count, 1)
    away = (lengths[:, None] - 2 * products / others + squares / others**2) * count / (count + 1)
    return np.asarray(np.where(count > 0, away, lengths[:, None]))


def _away_from(points: Floats, known: Anchors) -> Floats:
    """(n, classes): the same of known classes, by their means."""
    squares = np.square(points).sum(1)[:, None] - 2 * points @ known.means.T + np.square(known.means).sum(1)
    return np.asarray(squares * known.counts / (known.counts + 1))
