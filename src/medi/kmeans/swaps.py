"""Swaps of points between clusters: the local search that finds what alternation and restarts do not.

Every two clusters meet once in a sweep, like teams in a tournament, and those that meet make their best swap. The pairs
of a round are disjoint, so their swaps do not disturb each other; all episodes and restarts run in step.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

HOTTEST, COLDEST = 1.0, 0.3
"""First and last annealing temperature, in standard deviations of an episode's squared distances over the cluster size.

Chosen among 0.5 to 3 and 0.1 to 0.7 by the share of draws that cost more than the true grouping (see balanced.py).
"""
MOST_SWEEPS = 100
"""Of a descent."""


class SwapSearch:
    """The search on (episode, restart) states, all in step.

    It starts from partitions (episodes, restarts, n) without an empty cluster. A state is a seating plan: `seats[s, c]`
    lists the points in cluster c, with the number n where a seat is empty because the cluster is smaller than the
    largest. An empty seat is a point without mass: to swap with it is to move. So sizes stay as they are, but may
    change hands. Distances (episodes, n, n) are squared and have a zero diagonal.
    """

    def __init__(self, distances: Tensor, labels: Tensor, k: int) -> None:
        episodes, self.restarts, self.n = labels.shape
        self.table = pad(distances, (0, 1, 0, 1)).flatten()  # a row and a column of zeros for the empty seat
        self.seats = _seat(labels.flatten(0, 1), k)
        self.rounds = _tournament(k, distances.device)
        rows = torch.arange(episodes, device=distances.device) * (self.n + 1)
        self.first_row = rows.repeat_interleave(self.restarts)[:, None, None]  # of each state's episode in the table
        mean, deviation = _mean_and_deviation(distances)
        # A swap changes the cost by sums of distances over the size of a cluster, n / k.
        self.spread = (deviation * k / self.n).repeat_interleave(self.restarts)[:, None]
        # Differences below this are rounding; a swap must gain more, or points could change places for ever.
        rounding = 100 * torch.finfo(distances.dtype).eps
        self.least_gain = (rounding * mean * k / self.n).repeat_interleave(self.restarts)[:, None]

    def labels(self) -> Tensor:
        """(episodes, restarts, n) int64."""
        clusters = torch.arange(self.seats.shape[1], device=self.seats.device)[:, None].expand(self.seats.shape[1:])
        flat = self.seats.flatten(1)
        labels = flat.new_empty(len(flat), self.n + 1).scatter_(1, flat, clusters.flatten().expand_as(flat))
        return labels[:, : self.n].reshape(-1, self.restarts, self.n)

    def anneal(self, sweeps: int, generator: torch.Generator) -> None:
        """Sweep with uphill swaps allowed up to a random height, which shrinks from sweep to sweep."""
        for sweep in range(sweeps):
            temperature = HOTTEST * (COLDEST / HOTTEST) ** (sweep / max(1, sweeps - 1))
            for pairs in self.rounds:
                height = self.spread.new_empty(len(self.seats), len(pairs)).exponential_(generator=generator)
                self.seats, _ = self._meet(self.seats, self.first_row, pairs, temperature * self.spread * height)

    def descend(self) -> None:
        """Sweep with improving swaps only, until a whole sweep changes nothing; finished states leave the batch."""
        active = torch.arange(len(self.seats), device=self.seats.device)
        for _ in range(MOST_SWEEPS):
            seats, first_row, limit = self.seats[active], self.first_row[active], -self.least_gain[active]
            improved = torch.zeros_like(active, dtype=torch.bool)
            for pairs in self.rounds:
                seats, swapped = self._meet(seats, first_row, pairs, limit)
                improved |= swapped.any(-1)
            self.seats[active] = seats
            active = active[improved]
            if not len(active):
                break

    def _meet(self, seats: Tensor, first_row: Tensor, pairs: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        """Make the best swap of each pair of clusters, where it changes the cost by less than `limit`.

        Of seats (states, k, m), where each cluster is in one of the pairs (pairs, 2); `limit` is (states, pairs) or
        (states, 1). Gives new seats, and (states, pairs) whether there was a swap.
        """
        m = seats.shape[-1]
        points = seats.index_select(1, pairs.flatten()).view(len(seats), len(pairs), 2 * m)
        index = ((first_row + points) * (self.n + 1)).unsqueeze(-1) + points.unsqueeze(-2)
        distances = self.table.index_select(0, index.flatten()).view_as(index)  # a third of the time of table[index]
        full = m * seats.shape[1] == self.n
        change = _change_by_swap(distances, None if full else points < self.n)
        best, which = change.flatten(2).min(-1)
        swapped = best < limit
        chosen = torch.stack((which // m, which % m + m), -1)
        source = torch.where(swapped.unsqueeze(-1), chosen.flip(-1), chosen)
        points = points.scatter(-1, chosen, points.gather(-1, source))
        return seats.index_copy(1, pairs.flatten(), points.view(len(seats), -1, m)), swapped


def _change_by_swap(distances: Tensor, real: Tensor | None) -> Tensor:
    """Change (..., m, m) of the within-cluster cost by each swap between two clusters of m seats.

    The cost of a cluster is the sum of the squared distances between its points (each pair once) over its size.
    Distances (..., 2m, 2m) are between the points of the one cluster and then the other; `real` (..., 2m) is False for
    empty seats, None where there are none. Infinite where a swap would alter the sizes other than by exchanging them.
    """
    m = distances.shape[-1] // 2
    sides = torch.eye(2, dtype=distances.dtype, device=distances.device).repeat_interleave(m, 0)
    across = distances[..., :m, m:]
    if real is None:
        farther = distances @ (sides[:, 1] - sides[:, 0])  # how much farther off the other cluster is than the one
        return (farther[..., :m, None] - farther[..., None, m:] - 2 * across) / m
    to_one, to_other = (distances @ sides).unbind(-1)  # each point's sum of distances to either cluster
    real = real.to(distances.dtype)
    size_one, size_other = real[..., :m].sum(-1)[..., None, None], real[..., m:].sum(-1)[..., None, None]
    sum_one, sum_other = to_one[..., :m].sum(-1)[..., None, None] / 2, to_other[..., m:].sum(-1)[..., None, None] / 2
    leaves, comes = real[..., :m, None], real[..., None, m:]
    new_one, new_other = size_one - leaves + comes, size_other - comes + leaves
    after_one = (sum_one - to_one[..., :m, None] + to_one[..., None, m:] - across) / new_one
    after_other = (sum_other - to_other[..., None, m:] + to_other[..., :m, None] - across) / new_other
    change = after_one + after_other - sum_one / size_one - sum_other / size_other
    allowed = (leaves + comes == 2) | ((leaves + comes == 1) & (new_one == size_other))
    return change.masked_fill(~allowed, torch.inf)


def _mean_and_deviation(distances: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (episodes,) of distances (episodes, n, n) off the diagonal."""
    n = distances.shape[-1]
    apart = ~torch.eye(n, dtype=torch.bool, device=distances.device)
    count = max(1, n * (n - 1))
    mean = distances.sum((-1, -2)) / count
    variance = ((distances - mean[:, None, None]) * apart).square().sum((-1, -2)) / count
    return mean, variance.sqrt()


def _seat(labels: Tensor, k: int) -> Tensor:
    """Seating plan (states, k, size of the largest cluster) of labels (states, n); n marks an empty seat."""
    states, n = labels.shape
    order = labels.argsort(dim=-1, stable=True)
    clusters = labels.gather(-1, order)
    rank = rank_in_cluster(clusters, k)
    m = int(rank.max()) + 1
    seats = labels.new_full((states, k * m), n)
    return seats.scatter_(1, clusters * m + rank, order).view(states, k, m)


def rank_in_cluster(sorted_labels: Tensor, k: int) -> Tensor:
    """Position (states, n) of each entry among those of its cluster, for labels (states, n) that are sorted."""
    sizes = one_hot(sorted_labels, k).sum(1)
    starts = sizes.cumsum(-1) - sizes
    return torch.arange(sorted_labels.shape[1], device=sorted_labels.device) - starts.gather(-1, sorted_labels)


def _tournament(k: int, device: torch.device) -> Tensor:
    """Rounds (rounds, pairs, 2) in which every two of k clusters meet once: the circle method for tournaments."""
    ring = list(range(k + k % 2))
    rounds = []
    for _ in range(len(ring) - 1 if k > 1 else 0):
        meetings = [(ring[i], ring[-1 - i]) for i in range(len(ring) // 2)]
        rounds.append([pair for pair in meetings if max(pair) < k])  # with odd k one cluster rests
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return torch.tensor(rounds, dtype=torch.int64, device=device).reshape(len(rounds), k // 2, 2)
