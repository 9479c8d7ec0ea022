"""Clusters of any size, well searched: the criterion of k-means where class sizes are not known.

Lloyd's rounds from random seeds stop in poor optima when classes are small. Ward's tree is a far better start, and
single points that move while the cost falls (Hartigan's rule, which also counts how a move shifts the two means) do
the rest. On Gaussian classes (20 x 5 points, 64 dimensions) every episode ends above the true grouping's cost after
ten starts of Lloyd, few after this search (`benchmarks/clustering.py`, `results/clustering/cpu.json`).
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist
from torch import Tensor
from torch.nn.functional import one_hot

from medi.grouping.ward import Tree
from medi.kmeans.kmeans import Clusters, check_points, describe, episodes_at_once, kmeans, squared_distances

MOST_POINTS = 2000
"""Points of a bag up to which all pairs are looked at; larger clusters need less search."""
LEAST_GAIN = 1e-6
"""Relative to the mean squared distance: below it a move is rounding."""


def free_kmeans(points: Tensor, k: int, *, generator: torch.Generator) -> Clusters:
    """Put points (episodes, n, d) into k clusters at the least within-cluster cost found.

    Random draws start k-means, for bags of more than `MOST_POINTS`; others need none.
    """
    check_points(points, k)
    n = points.shape[1]
    if n > MOST_POINTS:
        return kmeans(points, k, generator=generator)
    per_episode = points.element_size() * n * (n + 8 * k)
    labels = [_search(chunk, k) for chunk in torch.split(points, episodes_at_once(per_episode, points.device))]
    return describe(points, torch.cat(labels), k)


def improve_by_moves(distances: Tensor, labels: Tensor, k: int) -> Tensor:
    """Move the point that lowers an episode's cost most, again and again until none does; no cluster is emptied.

    Of squared distances (episodes, n, n) and labels (episodes, n).
    """
    labels = labels.clone()
    least_gain = LEAST_GAIN * distances.mean((1, 2))
    active = torch.arange(len(labels), device=labels.device)
    while len(active):
        change = _change_by_move(distances[active], labels[active], k)
        best, which = change.flatten(1).min(1)
        better = best < -least_gain[active]
        active, which = active[better], which[better]
        labels[active, which // k] = which % k
    return labels


def _search(points: Tensor, k: int) -> Tensor:
    """Labels (episodes, n): Ward's, improved."""
    start = np.stack([_ward_labels(bag, k) for bag in points.double().cpu().numpy()])
    distances = squared_distances(points, points)
    distances.diagonal(dim1=-2, dim2=-1).zero_()
    return improve_by_moves(distances, torch.from_numpy(start).to(points.device), k)


def _ward_labels(points: np.ndarray, k: int) -> np.ndarray:
    """Labels (n,) of Ward's k clusters of points (n, d)."""
    if len(points) == 1:
        return np.zeros(1, dtype=np.int64)
    merges = linkage(pdist(points), "ward")
    return Tree(merges[:, :2].astype(np.int64), merges[:, 2] ** 2 / 2).cut(k)


def _change_by_move(distances: Tensor, labels: Tensor, k: int) -> Tensor:
    """Change (episodes, n, k) of the within-cluster cost by moving one point to another cluster.

    A point at squared distance a from the mean of its s points takes away a * s / (s - 1) when it leaves, and one at
    squared distance b from the mean of t others adds b * t / (t + 1) when it joins them. The last point stays.
    """
    members = one_hot(labels, k).to(distances.dtype)
    sizes = members.sum(1, keepdim=True)
    weights = members / sizes
    to_members = distances @ weights
    to_means = to_members - (to_members * weights).sum(1, keepdim=True) / 2
    own = labels[:, :, None]
    own_size = sizes.expand_as(to_means).gather(2, own)
    leaves = to_means.gather(2, own) * own_size / (own_size - 1).clamp_min(1)
    change = to_means * sizes / (sizes + 1) - leaves
    return change.masked_fill(own_size == 1, torch.inf).scatter(2, own, torch.inf)
