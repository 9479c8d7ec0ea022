"""Items seen together: each moves towards those that are like it."""

from __future__ import annotations

import torch
from torch import Tensor

from medi.core.errors import InputError
from medi.kmeans.kmeans import episodes_at_once, squared_distances

PULL, MOVES = 0.5, 3
"""Part of the way that a point moves at a time, and how often."""


def towards_neighbours(points: Tensor, *, neighbours: int) -> Tensor:
    """Move every point (episodes, n, d) part of the way to the mean of its nearest neighbours, again and again.

    Neighbours are those of the points as they came, so that a group cannot run away; nearer ones weigh more, as
    exp(-squared distance / mean squared distance to a neighbour in the episode). The result is an average of points:
    scale and centre stay.
    """
    if points.ndim != 3 or neighbours < 1:
        raise InputError(
            f"points of shape {tuple(points.shape)}, {neighbours} neighbours: give (episodes, n, d), and at least 1."
        )
    count = min(neighbours, points.shape[1] - 1)
    if count < 1:
        return points
    n, d = points.shape[1:]
    size = episodes_at_once(n * (3 * n + 2 * d) * points.element_size(), points.device)
    return torch.cat([_move(some, count) for some in torch.split(points, size)])


def _move(points: Tensor, neighbours: int) -> Tensor:
    distances = squared_distances(points, points)
    distances.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    nearest = distances.topk(neighbours, dim=2, largest=False)
    scale = nearest.values.mean((1, 2), keepdim=True).clamp(min=torch.finfo(points.dtype).tiny)
    weights = torch.zeros_like(distances).scatter_(2, nearest.indices, (-nearest.values / scale).softmax(2))
    for _ in range(MOVES):
        points = torch.lerp(points, weights @ points, PULL)
    return points
