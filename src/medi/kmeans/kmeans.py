"""Plain k-means on many small bags of points at once.

Everything in this room is batched over episodes: points are ``(episodes, n, d)``, and all restarts of all episodes move
in step, so that a device sees a few large operations instead of thousands of small ones.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from medi.core.errors import InputError
from medi.kmeans.order import take

MEMORY = {"cpu": 2**24, "cuda": 2**31}
"""Bytes of working memory a chunk of episodes may take: a CPU is fastest within its cache, a GPU when it is filled."""
MOST_ROUNDS = 100
"""Of Lloyd; an episode stops earlier, once no label changes."""


class Clusters(NamedTuple):
    """A grouping of every episode's points.

    Each point's cluster, (episodes, n) int64; means of clusters, (episodes, k, d), an empty one's on the episode's
    first point; and the sum of squared distances to them, (episodes,).
    """

    labels: Tensor
    centres: Tensor
    cost: Tensor


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """Squared Euclidean distances (..., n, k), never negative, from points (..., n, d) to points (..., k, d)."""
    # |a|² - 2ab + |b|² cancels badly far from the origin; distances do not mind moving both sets to b's mean. (Not to
    # a's: a query's distance to the centres must not depend, even in its last bit, on the other queries.)
    origin = b.mean(-2, keepdim=True)
    a, b = a - origin, b - origin
    with torch.autocast(a.device.type, enabled=False):  # bfloat16 products would cancel worse
        lengths = a.square().sum(-1, keepdim=True) + b.square().sum(-1).unsqueeze(-2)
        return (lengths - 2 * a @ b.mT).clamp_min(0)


def kmeans(points: Tensor, k: int, *, generator: torch.Generator, restarts: int = 10) -> Clusters:
    """Lloyd's k-means of points (episodes, n, d) from k-means++ seeds; the cheapest of several restarts is kept.

    A cluster that runs empty is refilled with the point farthest from its own centre, so a cluster can be empty at the
    end only where there are fewer distinct points than clusters.
    """
    check_points(points, k)
    n, d = points.shape[1:]
    per_episode = points.element_size() * restarts * k * (3 * n + 2 * d)
    chunks = torch.split(points, episodes_at_once(per_episode, points.device))
    labels = [_lloyd(chunk, k, generator=generator, restarts=restarts) for chunk in chunks]
    return describe(points, torch.cat(labels), k)


def plus_plus_seeds(points: Tensor, k: int, *, generator: torch.Generator, restarts: int) -> Tensor:
    """Draw k-means++ seeds: indices (episodes, restarts, k) of points (episodes, n, d).

    Each next seed has a chance in proportion to its squared distance to the nearest so far.
    """
    episodes, n, _ = points.shape
    chosen = torch.randint(n, (episodes, restarts), generator=generator, device=points.device)
    seeds = [chosen]
    nearest = points.new_full((episodes, restarts, n), torch.inf)
    while len(seeds) < k:
        nearest = torch.minimum(nearest, squared_distances(take(points, chosen), points))
        # Arrival times with rates `nearest`: the first to arrive is a draw in proportion to the rates, and unlike
        # `multinomial` it does not mind if all are zero.
        waiting = torch.empty_like(nearest).exponential_(generator=generator)
        chosen = (nearest / waiting).argmax(-1)
        seeds.append(chosen)
    return torch.stack(seeds, -1)


def describe(points: Tensor, labels: Tensor, k: int) -> Clusters:
    """Centres and cost that follow from given labels: points (episodes, n, d), labels (episodes, n)."""
    members = one_hot(labels, k).to(points.dtype).mT
    sizes = members.sum(-1, keepdim=True)
    centres = torch.where(sizes > 0, members @ points / sizes.clamp_min(1), points[:, :1])
    cost = (points - take(centres, labels)).square().sum((-1, -2))
    return Clusters(labels, centres, cost)


def group_means(points: Tensor, labels: Tensor, k: int) -> Tensor:
    """Mean (..., k, d) of the points (..., n, d) of each label (..., n); zero for a label without points.

    By a matrix product: adding row by row is slow on a GPU, and its last digits change from run to run.
    """
    members = one_hot(labels, k)
    return members.to(points.dtype).mT @ points / members.sum(-2).clamp(min=1)[..., None]


def check_points(points: Tensor, k: int) -> None:
    """Refuse points that cannot be put into k clusters, saying why."""
    if points.ndim != 3 or not points.is_floating_point():
        raise InputError(
            f"points must be floats of shape (episodes, n, d), not {points.dtype} of shape {tuple(points.shape)}: "
            "convert them, and add a leading dimension to a single bag."
        )
    if k < 1:
        raise InputError(f"{k} clusters were asked for: ask for at least 1.")
    if points.shape[1] < k:
        raise InputError(
            f"{points.shape[1]} points cannot fill {k} clusters: give more points or ask for fewer clusters."
        )
    if not points.isfinite().all():
        bad = int((~points.isfinite()).any(-1).sum())
        raise InputError(f"{bad} points hold NaN or infinite numbers: repair or drop them before clustering.")


def episodes_at_once(bytes_per_episode: int, device: torch.device) -> int:
    """How many episodes may be worked on together without leaving `MEMORY`."""
    return max(1, MEMORY.get(device.type, MEMORY["cpu"]) // max(1, bytes_per_episode))


def _lloyd(points: Tensor, k: int, *, generator: torch.Generator, restarts: int) -> Tensor:
    """Labels (episodes, n) of the best restart."""
    episodes, n, _ = points.shape
    seeds = plus_plus_seeds(points, k, generator=generator, restarts=restarts)
    centres = take(points, seeds.flatten(1))  # (episodes, restarts * k, d)
    labels = torch.full((episodes, n, restarts), -1, device=points.device)
    cost = points.new_zeros(episodes, restarts)
    active, bag = torch.arange(episodes, device=points.device), points
    for _ in range(MOST_ROUNDS):
        distances, nearest = squared_distances(bag, centres).view(-1, n, restarts, k).min(-1)
        moved = (nearest != labels[active]).flatten(1).any(1)
        labels[active], cost[active] = nearest, distances.sum(1)
        if not moved.all():  # an episode is done when none of its restarts changed a label
            active, bag, nearest, distances = active[moved], bag[moved], nearest[moved], distances[moved]
        if not len(active):
            break
        members = one_hot(nearest, k).to(points.dtype).flatten(2).mT  # (active, restarts * k, n)
        sizes = members.sum(-1, keepdim=True)
        centres = members @ bag / sizes.clamp_min(1)
        if (sizes == 0).any():
            centres = torch.where(sizes == 0, _farthest(bag, distances, sizes.view(-1, restarts, k, 1)), centres)
    best = cost.argmin(1)
    return labels[torch.arange(episodes, device=points.device), :, best]


def _farthest(points: Tensor, distances: Tensor, sizes: Tensor) -> Tensor:
    """For the j-th empty cluster of a restart the point that is j-th farthest from its own centre.

    Of points (episodes, n, d) at distances (episodes, n, restarts) in clusters of sizes (episodes, restarts, k, 1) it
    gives (episodes, restarts * k, d); rows of clusters that are not empty mean nothing.
    """
    farthest = distances.mT.topk(sizes.shape[2], dim=-1).indices  # (episodes, restarts, k)
    rank = ((sizes == 0).cumsum(2).squeeze(-1) - 1).clamp_min(0)
    return take(points, farthest.gather(-1, rank).flatten(1))
