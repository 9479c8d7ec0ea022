"""Items seen together: each moves towards those that are like it, or tells whether it is clustered as they are."""

from __future__ import annotations

import torch
from torch import Tensor

from medi.cluster.kmeans import episodes_at_once, squared_distances
from medi.errors import InputError


def towards_neighbours(points: Tensor, *, neighbours: int, pull: float, moves: int) -> Tensor:
    """Move every point part of the way to the mean of its nearest neighbours, again and again.

    Neighbours are those of the points as they came, so that a group cannot run away; nearer ones weigh more, as
    exp(-squared distance / mean squared distance to a neighbour in the episode). The result is an average of points:
    scale and centre stay.

    Args:
        points: (episodes, n, d).
        neighbours: How many; all others where there are fewer.
        pull: Part of the way, 0 to 1.
        moves: How often.

    Returns:
        (episodes, n, d).
    """
    if points.ndim != 3 or neighbours < 1 or not 0 <= pull <= 1:
        raise InputError(
            f"points of shape {tuple(points.shape)}, {neighbours} neighbours, pull {pull}: give (episodes, n, d), at "
            "least 1 neighbour and a pull from 0 to 1."
        )
    count = min(neighbours, points.shape[1] - 1)
    if count < 1:
        return points
    n, d = points.shape[1:]
    size = episodes_at_once(n * (3 * n + 2 * d) * points.element_size(), points.device)
    return torch.cat([_move(some, count, pull, moves) for some in torch.split(points, size)])


def _move(points: Tensor, neighbours: int, pull: float, moves: int) -> Tensor:
    distances = squared_distances(points, points)
    distances.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    nearest = distances.topk(neighbours, dim=2, largest=False)
    scale = nearest.values.mean((1, 2), keepdim=True).clamp(min=torch.finfo(points.dtype).tiny)
    weights = torch.zeros_like(distances).scatter_(2, nearest.indices, (-nearest.values / scale).softmax(2))
    for _ in range(moves):
        points = torch.lerp(points, weights @ points, pull)
    return points


def nearest(points: Tensor, count: int) -> Tensor:
    """Indices (n, count) of the other points (n, d) that lie nearest to each, the nearest first."""
    n = len(points)
    if not 1 <= count < n:
        raise InputError(f"{count} neighbours of {n} points: give 1 to {n - 1}.")
    found = torch.empty(n, count, dtype=torch.int64, device=points.device)  # parts to join would scatter memory
    size = episodes_at_once(4 * n * points.element_size(), points.device)
    for rows in torch.split(torch.arange(n, device=points.device), size):
        distances = squared_distances(points[None, rows], points[None])[0]
        distances.scatter_(1, rows[:, None], torch.inf)
        found[rows] = distances.topk(count, largest=False).indices
    return found


def agreement(labels: Tensor, neighbours: Tensor) -> float:
    """How much more often an item shares its cluster with its neighbours than with any item.

    It does not see that clusters have merged: that lets neighbours share more, and chance as well.

    Args:
        labels: (n,) int64, clusters.
        neighbours: (n, m), indices of each item's neighbours.

    Returns:
        1 where neighbours always share a cluster, 0 where they do as often as by chance, or where there is one only.
    """
    shared = float((labels[neighbours] == labels[:, None]).double().mean())
    chance = float((labels.bincount().double() / len(labels)).square().sum())
    return (shared - chance) / (1 - chance) if chance < 1 else 0.0
