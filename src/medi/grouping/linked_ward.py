"""Ward's tree where some points belong apart: their clusters are merged only when nothing else is left to merge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from medi.core.arrays import Floats
from medi.grouping.ward import Tree


def linked_ward(points: Floats, weights: Floats, apart: Sequence[tuple[int, int]]) -> Tree:
    """The tree of points (n, d), each standing for `weights` (n,) points, under pairs that belong apart.

    Costs are kept for all pairs, so it is for pools that a person reviews, not for the largest.
    """
    n = len(points)
    centres, mass, names = points.copy(), weights.astype(np.float64), np.arange(n)
    squares = np.square(centres).sum(1)
    costs = np.maximum(squares[:, None] + squares - 2 * centres @ centres.T, 0)
    costs *= mass[:, None] * mass / (mass[:, None] + mass)  # what a merge adds to the sum of squared distances
    barred = np.zeros((n, n), bool)
    for a, b in apart:
        barred[a, b] = barred[b, a] = True
    np.fill_diagonal(costs, np.inf)
    alive = np.ones(n, bool)
    pairs, found = np.zeros((n - 1, 2), np.int64), np.zeros(n - 1)
    shown = np.where(barred, np.inf, costs)
    least, nearest = shown.min(1), shown.argmin(1)
    for number in range(n - 1):
        a = int(least.argmin())
        if least[a] == np.inf:  # only what belongs apart is left
            barred[:] = False
            shown = costs.copy()
            least, nearest = shown.min(1), shown.argmin(1)
            a = int(least.argmin())
        a, b = sorted((a, int(nearest[a])))
        pairs[number], found[number] = sorted((names[a], names[b])), costs[a, b]
        total = mass[a] + mass[b]
        centres[a] = (mass[a] * centres[a] + mass[b] * centres[b]) / total
        mass[a], alive[b], names[a] = total, False, n + number
        squares[a] = centres[a] @ centres[a]
        distance = np.maximum(squares + squares[a] - 2 * (centres @ centres[a]), 0)
        row = np.where(alive, distance * mass * total / (mass + total), np.inf)
        row[a] = np.inf
        barred[a] |= barred[b]
        barred[:, a] = barred[a]
        costs[a], costs[:, a], costs[b], costs[:, b] = row, row, np.inf, np.inf
        hidden = np.where(barred[a], np.inf, row)
        shown[a], shown[:, a], shown[b], shown[:, b] = hidden, hidden, np.inf, np.inf
        stale = np.flatnonzero(alive & ((nearest == a) | (nearest == b) | (np.arange(n) == a)))
        least[stale], nearest[stale] = shown[stale].min(1), shown[stale].argmin(1)
        closer = alive & (hidden < least)
        least[closer], nearest[closer] = hidden[closer], a
        least[b] = np.inf
    return Tree(pairs, np.maximum.accumulate(found))
