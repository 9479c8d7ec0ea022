"""Ward's tree: every grouping of one bag at once, from each item by itself to all together, without class sizes.

The chain of nearest neighbours finds it with memory that grows with the points, not with their pairs. Scipy is faster
where points are few, but its points all weigh the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import DisjointSet, linkage
from scipy.spatial.distance import pdist

from medi.core.arrays import Floats, Ints
from medi.core.errors import InputError

MOST_FOR_SCIPY = 1000
"""Points up to which scipy finds the tree, in less time."""


@dataclass(frozen=True)
class Tree:
    """The order in which Ward's method merges n points, cheapest first.

    Attributes:
        pairs: (n - 1, 2) int, the clusters that a merge joins: below n a point, otherwise n + number of a merge.
        costs: (n - 1,) float, what each merge adds to the sum of squared distances to the own mean; never falling.

    >>> Tree(pairs=np.array([[0, 1], [2, 3]]), costs=np.array([0.5, 8.0])).cut(2)
    array([0, 0, 1])
    """

    pairs: Ints
    costs: Floats

    @property
    def points(self) -> int:
        """Number of points."""
        return len(self.costs) + 1

    def cut(self, k: int) -> Ints:
        """Labels (n,) of exactly k clusters, the largest numbered 0."""
        n = self.points
        if not 1 <= k <= n:
            raise InputError(f"{n} points cannot be cut into {k} clusters: ask for 1 to {n}.")
        above = np.arange(2 * n - 1)  # the cluster that each node ends in
        for number in range(n - k - 1, -1, -1):
            above[self.pairs[number]] = above[n + number]
        return by_size(above[:n])

    def spans(self) -> Ints:
        """Where each cluster (2n - 1, 2) begins and ends in an order of the points in which every one is one run."""
        n = self.points
        size, start = np.ones(2 * n - 1, np.int64), np.zeros(2 * n - 1, np.int64)
        for number, (a, b) in enumerate(self.pairs.tolist()):
            size[n + number] = size[a] + size[b]
        for number, (a, b) in reversed(list(enumerate(self.pairs.tolist()))):
            start[a], start[b] = start[n + number], start[n + number] + size[a]
        return np.stack([start, start + size], 1)

    def leaf_order(self) -> Ints:
        """Points (n,) in that order."""
        return self.spans()[: self.points, 0].argsort()


def ward(points: Floats, weights: Floats | None = None, apart: Sequence[tuple[int, int]] = ()) -> Tree:
    """Ward's tree of points (n, d), each of which stands for `weights` (n,) points in the same place, or for one.

    Clusters with points that belong `apart` are merged only when nothing else is left to merge. That takes memory that
    grows with the pairs of points: it is for pools that a person reviews, not for the largest.

    >>> ward(np.array([[0.0], [1.0], [9.0]])).cut(2)
    array([0, 0, 1])
    """
    n = len(points)
    if not n or not np.isfinite(points).all():
        raise InputError(f"{n} points, or some that hold NaN or infinite numbers: Ward's tree needs finite ones.")
    weights = np.ones(n) if weights is None else weights
    if apart:
        return _linked(points, weights, apart)
    if 1 < n <= MOST_FOR_SCIPY and (weights == 1).all():
        found = linkage(pdist(points), "ward")
        return Tree(found[:, :2].astype(np.int64), np.square(found[:, 2]) / 2)
    centres, mass, names = points.copy(), weights.astype(np.float64), np.arange(n)
    squares = np.square(centres).sum(1)
    merges: list[tuple[float, int, int]] = []  # cost and names of the two clusters; a merge takes the first's name
    chain: list[int] = []
    alive = n
    while alive > 1:
        if alive < len(mass) // 2:  # drop what was merged away; the order stays, and with it how ties are broken
            keep = mass > 0
            place = np.cumsum(keep) - 1
            centres, squares, mass, names = centres[keep], squares[keep], mass[keep], names[keep]
            chain = [int(place[member]) for member in chain]
        if not chain:
            chain.append(int(np.argmax(mass > 0)))
        while True:
            top = chain[-1]
            distance = np.maximum(squares + squares[top] - 2 * (centres @ centres[top]), 0)
            cost = distance * (mass * mass[top] / np.maximum(mass + mass[top], 1e-300))
            cost[mass == 0] = np.inf
            cost[top] = np.inf
            nearest = int(cost.argmin())
            if len(chain) > 1 and cost[chain[-2]] <= cost[nearest]:
                break
            chain.append(nearest)
        a, b = sorted((chain.pop(), chain.pop()))
        merges.append((float(cost[a] if b == top else cost[b]), int(names[a]), int(names[b])))
        total = mass[a] + mass[b]
        centres[a] = (mass[a] * centres[a] + mass[b] * centres[b]) / total
        squares[a] = centres[a] @ centres[a]
        mass[a], mass[b] = total, 0
        alive -= 1
    return _in_order(merges, n)


def _in_order(merges: list[tuple[float, int, int]], n: int) -> Tree:
    """The tree of merges that were found in any order, each named by points inside its two clusters."""
    order = sorted(range(len(merges)), key=lambda number: merges[number][0])
    sets, name = DisjointSet(range(n)), list(range(n))  # the cluster that each set is, by its representative
    pairs = np.zeros((len(merges), 2), dtype=np.int64)
    for place, number in enumerate(order):
        _, a, b = merges[number]
        pairs[place] = sorted((name[sets[a]], name[sets[b]]))
        sets.merge(a, b)
        name[sets[a]] = n + place
    return Tree(pairs, np.maximum.accumulate(np.array([merges[number][0] for number in order], dtype=np.float64)))


def _linked(points: Floats, weights: Floats, apart: Sequence[tuple[int, int]]) -> Tree:
    """The tree under pairs that belong apart; costs are kept for all pairs of points."""
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


def by_size(labels: Ints) -> Ints:
    """The same grouping (n,) numbered from 0, the largest group first; of equal ones that with the earliest item.

    >>> by_size(np.array([7, 3, 3, 5, 3, 5]))
    array([2, 0, 0, 1, 0, 1])
    """
    _, first, dense, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[dense].astype(np.int64)
