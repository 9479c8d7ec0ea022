"""Ward's tree: every grouping of one bag at once, from each item by itself to all together, without class sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from torch import Tensor

from medi.cluster.kmeans import check_points, squared_distances
from medi.errors import InputError


@dataclass(frozen=True)
class Tree:
    """The order in which Ward's method merges n points, cheapest first.

    Attributes:
        pairs: (n - 1, 2) int, the clusters that a merge joins: below n a point, otherwise n + number of a merge.
        costs: (n - 1,) float, what each merge adds to the sum of squared distances to the own mean; never falling.
        sizes: (n - 1, 2) int, points in the two clusters.
    """

    pairs: NDArray[np.int64]
    costs: NDArray[np.float64]
    sizes: NDArray[np.int64]

    @property
    def points(self) -> int:
        """Number of points."""
        return len(self.costs) + 1

    def cut(self, k: int) -> NDArray[np.int64]:
        """Labels (n,) of exactly k clusters, the largest numbered 0."""
        n = self.points
        if not 1 <= k <= n:
            raise InputError(f"{n} points cannot be cut into {k} clusters: ask for 1 to {n}.")
        labels = np.arange(n)
        members: dict[int, NDArray[np.int64]] = {point: np.array([point]) for point in range(n)}
        for number, (a, b) in enumerate(self.pairs[: n - k]):
            members[n + number] = np.concatenate([members.pop(int(a)), members.pop(int(b))])
        for cluster, items in members.items():
            labels[items] = cluster
        return by_size(labels)


def ward(points: Tensor) -> Tree:
    """Ward's tree of points (n, d)."""
    check_points(points[None], 1)
    n = len(points)
    if n == 1:
        return Tree(np.zeros((0, 2), np.int64), np.zeros(0), np.zeros((0, 2), np.int64))
    points = points.detach().double().cpu()
    distances = squared_distances(points, points).sqrt().numpy()
    np.fill_diagonal(distances, 0)
    merged = linkage(squareform(distances, checks=False), "ward")
    pairs = merged[:, :2].astype(np.int64)
    size_of = np.concatenate([np.ones(n, np.int64), merged[:, 3].astype(np.int64)])
    # scipy's height is the square root of twice what the sum of squares grows by
    return Tree(pairs, np.maximum.accumulate(merged[:, 2] ** 2 / 2), size_of[pairs])


def by_size(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same grouping (n,) numbered from 0, the largest group first; of equal ones that with the earliest item."""
    _, first, dense, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[dense].astype(np.int64)
