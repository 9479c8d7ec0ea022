"""Refine clusters with every unlabelled item in sight, observations and queries alike (the `transductive` regime)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from medi.core.errors import InputError
from medi.kmeans.balanced import sinkhorn
from medi.kmeans.kmeans import episodes_at_once, squared_distances


class Refined(NamedTuple):
    """Centres (episodes, k, d), and the probability of each cluster for each item, (episodes, n, k)."""

    centres: Tensor
    plan: Tensor


SHARING_TEMPERATURE = 0.2
"""How softly items are shared, as a multiple of the episode's mean gap between an item's squared distances to its two
nearest centres under the starting centres. Features may thus have any scale and dimension."""
CENTRE_STEP, CENTRE_MOVES = 0.4, 10
"""Part of the way that a centre moves at a time, and how often."""
SINKHORN_ITERATIONS = 5
"""Of Sinkhorn in a round; the balance need not be exact before the centres rest."""


def refine(centres: Tensor, points: Tensor, *, balanced: bool) -> Refined:
    """Share items (episodes, n, d) out among centres and move each part-way to the mean of its share, again and again.

    Balanced: shared out by Sinkhorn so that every cluster gets n / k items. That helps where it is true and costs
    dearly where it is not; otherwise each item has a softmax of its own. The plan belongs to the final centres.
    """
    n, d = points.shape[1:]
    size = episodes_at_once(n * (d + 8 * centres.shape[1]) * points.element_size(), points.device)
    split = zip(torch.split(centres, size), torch.split(points, size), strict=True)
    chunks = [_refine(some, among, balanced) for some, among in split]
    return Refined(*(torch.cat(parts) for parts in zip(*chunks, strict=True)))


def _refine(centres: Tensor, points: Tensor, balanced: bool) -> Refined:
    """`refine` for as many episodes as fit into memory."""
    distances = squared_distances(points, centres)
    scale = SHARING_TEMPERATURE * _mean_gap(distances)
    plan = _share(distances, scale, balanced)
    for _ in range(CENTRE_MOVES):
        # A cluster that nothing wants keeps its centre.
        mass = plan.sum(1).unsqueeze(-1)
        means = torch.where(mass > 0, plan.mT @ points / mass.clamp_min(torch.finfo(mass.dtype).tiny), centres)
        centres = centres + CENTRE_STEP * (means - centres)
        plan = _share(squared_distances(points, centres), scale, balanced)
    return Refined(centres, plan)


def _mean_gap(distances: Tensor) -> Tensor:
    """Mean difference between the two least of distances (episodes, n, k), as (episodes, 1, 1) and above zero."""
    if distances.shape[-1] == 1:
        return torch.ones_like(distances[:, :1, :1])
    nearest = distances.topk(2, dim=-1, largest=False).values
    gap = (nearest[..., 1] - nearest[..., 0]).mean(-1)[:, None, None]
    return torch.where(gap > 0, gap, torch.ones_like(gap))  # all distances equal: any scale gives equal shares


def _share(distances: Tensor, scale: Tensor, balanced: bool) -> Tensor:
    """Plan (episodes, n, k) for squared distances (episodes, n, k) at a temperature of `scale` (episodes, 1, 1)."""
    if balanced:
        return sinkhorn(distances, temperature=scale, iterations=SINKHORN_ITERATIONS)
    return (-distances / scale).softmax(-1)


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
