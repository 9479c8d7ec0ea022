"""Ward's tree: every grouping of one bag at once, from each item by itself to all together, without class sizes.

The chain of nearest neighbours finds it with memory that grows with the points, not with their pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from medi.cluster.kmeans import check_points
from medi.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Tree:
    """The order in which Ward's method merges n points, cheapest first.

    Attributes:
        pairs: (n - 1, 2) int, the clusters that a merge joins: below n a point, otherwise n + number of a merge.
        costs: (n - 1,) float, what each merge adds to the sum of squared distances to the own mean; never falling.
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

    def leaf_order(self) -> Ints:
        """Points (n,) in an order in which every cluster of the tree is one run."""
        n, order, stack = self.points, [], [2 * self.points - 2]
        while stack:
            node = stack.pop()
            if node < n:
                order.append(node)
            else:
                stack.extend(self.pairs[node - n][::-1].tolist())
        return np.array(order, dtype=np.int64)


def ward(points: Tensor) -> Tree:
    """Ward's tree of points (n, d)."""
    check_points(points[None], 1)
    return weighted_ward(points.detach().double().cpu().numpy(), np.ones(len(points)))


def weighted_ward(points: Floats, weights: Floats) -> Tree:
    """Ward's tree of points (n, d), each of which stands for `weights` (n,) points in the same place."""
    n = len(points)
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
    parent = list(range(2 * n - 1))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    pairs = np.zeros((len(merges), 2), dtype=np.int64)
    for place, number in enumerate(order):
        _, a, b = merges[number]
        pairs[place] = sorted((root(a), root(b)))
        parent[root(a)] = parent[root(b)] = n + place
    return Tree(pairs, np.maximum.accumulate(np.array([merges[number][0] for number in order], dtype=np.float64)))


def by_size(labels: Ints) -> Ints:
    """The same grouping (n,) numbered from 0, the largest group first; of equal ones that with the earliest item."""
    _, first, dense, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[dense].astype(np.int64)
