"""Draw items where there are too many to work with all of them, and points in as few dimensions as they need."""

from __future__ import annotations

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.core.draws import Draws

MOST_KNOWN = 4000
"""Known items that choices and calibrations are made with; of more, so many are drawn."""


def compact(points: Floats) -> Floats:
    """The same distances between points (n, d) in at most n dimensions."""
    if points.shape[1] <= len(points):
        return points
    centred = points - points.mean(0)
    values, vectors = np.linalg.eigh(centred @ centred.T)  # inner products determine all distances
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def thin(labels: Ints, most: int, seed: int) -> Ints:
    """Indices of items, drawn at random where there are more than `most`: equally many of each class, at least ten."""
    if len(labels) <= most:
        return np.arange(len(labels))
    counts = np.bincount(labels)
    each = max(10, most // int((counts > 0).sum()))
    shuffled = Draws(seed).permutation(len(labels))
    in_order = shuffled[labels[shuffled].argsort(kind="stable")]
    place = np.arange(len(labels)) - (counts.cumsum() - counts)[labels[in_order]]
    return np.sort(in_order[place < each])
