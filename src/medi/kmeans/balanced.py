"""Clusters of equal size: k-means when each class is known to have as many observations as the others.

With sizes fixed, the cost of a partition is the sum over clusters of (pairwise squared distances inside) / (size), so
after one table of distances per episode the dimension of the features no longer matters.

Alternating assignment and centres stops in poor optima, and restarts hardly help. Swaps of two points between two
clusters do; annealing the swaps (uphill ones allowed, less and less) does more in about the same time: on Gaussian
classes (20 x 5 points, 64 dimensions, 200 episodes, one seed) 84 % of the episodes end above the true grouping's cost
after descent by swaps from 10 starts, 15.5 % after the default search, and ACC rises from 81.0 to 88.5
(`benchmarks/clustering.py`, `results/clustering/cpu.json`).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn.functional import one_hot

from medi.kmeans.kmeans import Clusters, check_points, describe, episodes_at_once, plus_plus_seeds, squared_distances
from medi.kmeans.swaps import SwapSearch, rank_in_cluster

ALTERNATIONS = 10
"""Most alternations between centres and balanced assignment before the swaps. They move many points at once, which is
what large clusters need; small ones settle after one or two."""
ASSIGNMENT_TEMPERATURE = 0.1
"""Of the plan that assignments are read off, relative to the mean excess of a cost over the item's least cost."""


def balanced_kmeans(
    points: Tensor, k: int, *, generator: torch.Generator, restarts: int = 4, swaps: int = 30
) -> Clusters:
    """Put points (episodes, n, d) into k clusters, their sizes at most one apart, at the least cost found.

    Of some restarts the cheapest end is kept. Swaps: annealed sweeps over all pairs of clusters; a descent to where no
    swap improves always follows.
    """
    check_points(points, k)
    n = points.shape[1]
    if n == k:
        return describe(points, torch.arange(n, device=points.device).repeat(len(points), 1), k)
    seats = -(-n // k)
    # A round of swaps looks at the pairs among 2 * seats points, k / 2 times: an int64 index and a few floats for each.
    per_episode = restarts * n * (2 * seats * 32 + k * 4 * points.element_size()) + 2 * n * n * points.element_size()
    labels = [
        _search(chunk, k, generator, restarts, swaps)
        for chunk in torch.split(points, episodes_at_once(per_episode, points.device))
    ]
    return describe(points, torch.cat(labels), k)


def assign_balanced(cost: Tensor) -> Tensor:
    """Assign items to clusters at the least total cost (episodes, n, k), with cluster sizes that differ by at most one.

    The Hungarian method with a column for each seat, one episode after the other, on the CPU.
    """
    _, n, k = cost.shape
    floor = n // k
    # Seats that must be filled come first and are cheaper than any saving elsewhere could make up for.
    must = cost - (cost.amax((-1, -2), keepdim=True) - cost.amin((-1, -2), keepdim=True) + 1) * n
    seats = torch.cat((must.repeat(1, 1, floor), cost), -1) if n % k else cost.repeat(1, 1, floor)
    chosen = [linear_sum_assignment(table)[1] % k for table in seats.double().cpu().numpy()]
    return torch.as_tensor(np.array(chosen, dtype=np.int64).reshape(-1, n), device=cost.device)


def assign_nearly(cost: Tensor) -> Tensor:
    """The same within a few percent of the least cost, for all episodes at once: an entropic plan is rounded."""
    n, k = cost.shape[1:]
    cost = cost - cost.amin(-1, keepdim=True)
    scale = (ASSIGNMENT_TEMPERATURE * cost.mean((-1, -2), keepdim=True)).clamp_min(torch.finfo(cost.dtype).tiny)
    # Where n is no multiple of k, the clusters that items want most get the larger sizes.
    wanted = (-cost / scale).softmax(-1).sum(1).argsort(dim=-1, descending=True)
    capacity = torch.full_like(wanted, n // k).scatter_add(1, wanted[:, : n % k], torch.ones_like(wanted[:, : n % k]))
    plan = sinkhorn(cost, temperature=scale, columns=capacity.to(cost.dtype), iterations=10)
    return _round_to_capacity(plan.log(), capacity)


def sinkhorn(cost: Tensor, *, temperature: float | Tensor, columns: Tensor | None = None, iterations: int) -> Tensor:
    """Entropic transport plan (..., n, k) between items and clusters, computed on logarithms; its rows sum to 1.

    Infinite cost forbids a pair. The temperature, a number or (..., 1, 1), is the entropy's weight in units of cost:
    the colder, the harder the plan. The mass of each cluster, (..., k), is equal by default, and met exactly only in
    the limit.
    """
    scores = -cost / temperature
    of_rows, of_columns = _potentials(scores, columns, iterations)
    return (scores + of_rows + of_columns).exp()


def equal_share_offsets(logits: Tensor, *, iterations: int = 200) -> Tensor:
    """What to add to logits (episodes, n, k) so that all clusters have the same share of the items' probability.

    (episodes, 1, k), with a mean of zero.
    """
    scores = logits.double()  # outputs of a network that is sure of itself differ by hundreds
    _, offsets = _potentials(scores, None, iterations)
    return (offsets - offsets.mean(-1, keepdim=True)).to(logits.dtype)


def _potentials(scores: Tensor, columns: Tensor | None, iterations: int) -> tuple[Tensor, Tensor]:
    """What to add to the rows and columns of scores (..., n, k) so that their exponentials have these sums.

    A row's is 1; a column's is in proportion to `columns` (..., k), or the same for all.
    """
    columns = scores.new_ones(scores[..., 0, :].shape) if columns is None else columns
    log_columns = (columns * scores.shape[-2] / columns.sum(-1, keepdim=True)).log().unsqueeze(-2)
    of_rows = -scores.logsumexp(-1, keepdim=True)
    of_columns = torch.zeros_like(log_columns)
    for _ in range(iterations):
        of_columns = log_columns - (scores + of_rows).logsumexp(-2, keepdim=True)
        of_rows = -(scores + of_columns).logsumexp(-1, keepdim=True)
    return of_rows, of_columns


def _search(points: Tensor, k: int, generator: torch.Generator, restarts: int, swaps: int) -> Tensor:
    """Labels (episodes, n) of the cheapest restart."""
    distances = squared_distances(points, points)
    distances.diagonal(dim1=-2, dim2=-1).zero_()
    n = points.shape[1]
    seeds = plus_plus_seeds(points, k, generator=generator, restarts=restarts).flatten(1)
    to_seeds = distances.gather(1, seeds.unsqueeze(-1).expand(-1, -1, n)).view(-1, k, n).mT
    labels = assign_nearly(to_seeds).view(-1, restarts, n)
    episodes = active = torch.arange(len(points), device=points.device)
    for _ in range(ALTERNATIONS):
        to_centres = _distances_to_centres(distances[active], labels[active], k)
        new = assign_nearly(to_centres.flatten(0, 1)).view(-1, restarts, n)
        moved = (new != labels[active]).flatten(1).any(1)
        labels[active] = new
        active = active[moved]
        if not len(active):
            break
    search = SwapSearch(distances, labels, k)
    search.anneal(swaps, generator)
    search.descend()
    labels = search.labels()
    cost = _distances_to_centres(distances, labels, k).gather(-1, labels.unsqueeze(-1)).sum((-1, -2))
    return labels[episodes, cost.argmin(1)]


def _distances_to_centres(distances: Tensor, labels: Tensor, k: int) -> Tensor:
    """Squared distances (episodes, restarts, n, k) to the means of clusters, from those (episodes, n, n) of points.

    That is the mean distance to a cluster's points less half the mean distance among them.
    """
    members = one_hot(labels, k).to(distances.dtype)
    weights = members / members.sum(-2, keepdim=True)
    to_members = distances @ weights.transpose(1, 2).flatten(2)  # all restarts side by side in one product
    to_members = to_members.view(weights.transpose(1, 2).shape).transpose(1, 2)
    return (to_members - (to_members * weights).sum(-2, keepdim=True) / 2).clamp_min(0)


def _round_to_capacity(scores: Tensor, capacity: Tensor) -> Tensor:
    """Greedy assignment by descending score, as a market: items ask, full clusters keep whom they like best.

    Both sides go by the same scores (episodes, n, k), so the outcome is that of giving out the best free pair again and
    again, in a few rounds instead of n. The capacities (episodes, k) sum to n.
    """
    labels = torch.empty(scores.shape[:2], dtype=torch.int64, device=scores.device)
    active = torch.arange(len(scores), device=scores.device)
    # -inf is kept for refusals: a plan that has underflowed must still be an offer.
    scores = scores.clamp_min(torch.finfo(scores.dtype).min)
    while len(active):
        score, wish = scores.max(-1)
        order = score.argsort(dim=-1, descending=True, stable=True)
        order = order.gather(-1, wish.gather(-1, order).argsort(dim=-1, stable=True))
        asked = wish.gather(-1, order)
        refused = rank_in_cluster(asked, scores.shape[-1]) >= capacity.gather(-1, asked)
        labels[active] = wish
        scores = scores.scatter(
            -1,
            wish.unsqueeze(-1),
            torch.where(torch.zeros_like(refused).scatter(-1, order, refused), -math.inf, score).unsqueeze(-1),
        )
        unsettled = refused.any(-1)
        active, scores, capacity = active[unsettled], scores[unsettled], capacity[unsettled]
    return labels
