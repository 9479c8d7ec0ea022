"""Definitions 1 and 2: the overlap tau of classes, estimated from samples as that of where nearly all of them lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from medi.cluster.kmeans import MEMORY, squared_distances
from medi.errors import InputError
from medi.runtime.progress import Reporter, Silent

SPLITS = 5
"""Random halvings of the sample: the estimate is their mean, and the interval reflects how they differ."""


@dataclass(frozen=True)
class Overlap:
    """An estimate of tau.

    Attributes:
        tau: Largest probability, over pairs of classes, that a point lies where nearly all of either class does.
        low: Lower end of its confidence interval.
        high: Upper end.
        pair: The two classes (values of y, the smaller first) that overlap most.
    """

    tau: float
    low: float
    high: float
    pair: tuple[int, int]


def overlap(
    z: Tensor,
    y: Tensor,
    *,
    neighbours: int = 5,
    bootstrap: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    reporter: Reporter | None = None,
) -> Overlap:
    """Estimate Definition 1's tau(X, f(X)) = max over i != j of P_X(R_i and R_j), R_i the support of class i.

    Of features z = pi(x) it is Definition 2's tau(pi(X), f(X)): pi(X) is K-epsilon-separable with epsilon = tau.

    Every class is cut into two halves at random. A point belongs to the estimated support of a class if it is as near
    to that class's points in the *other* half (the distance to the `neighbours`-th nearest) as all but a fraction
    1 / (2 sqrt(m)) of the class's m held-out points are; a point always belongs to the support of its own class. tau is
    the fraction of points in both supports, averaged over both halves and several halvings.

    So what is estimated is the overlap of regions that hold all but this fraction of each class. Where classes end
    nowhere it is not Definition 1's: of two Gaussians tau is 1 however far apart they are, the estimate 0.98 at the
    same place, 0.66 at two standard deviations and 0 at six (1,000 held-out points). With n it creeps towards 1.

    The interval is a bootstrap over points, which calibrates the supports anew each time. The largest of many noisy
    fractions lies above the largest true one; the bootstrap estimates by how much, and estimate and interval are
    corrected for it. Neither accounts for the blur of a support estimated from few points in many dimensions, which
    makes touching classes overlap and vanishes only as n^(-1/dimension): compare values at equal n.

    Args:
        z: (n, d) float, points or features.
        y: (n,) int, the class of each; items with -1 are left out.
        neighbours: Which nearest neighbour measures nearness; a class needs 2 (neighbours + 1) items or more.
        bootstrap: Resamples, divided among the halvings.
        confidence: Of the interval.
        seed: Of every random draw.
        reporter: Shows progress.

    Returns:
        The estimate, its interval and the pair of classes.
    """
    points, labels, classes = _checked(z, y, neighbours, bootstrap, confidence)
    generator = torch.Generator(points.device).manual_seed(seed)
    pairs = torch.zeros(len(classes), len(classes), dtype=torch.float64, device=points.device)
    largest = []
    with (reporter or Silent()).track("overlap", SPLITS) as tick:
        for split in range(SPLITS):
            halves = _halve(points, labels, len(classes), neighbours, generator)
            pairs += halves.overlaps() / SPLITS
            for _ in range(math.ceil(bootstrap / SPLITS)):
                largest.append(halves.resampled_overlaps(generator).max())
            tick(split + 1)
    found, resampled = float(pairs.max()), torch.stack(largest)
    tail = (1 - confidence) / 2
    low, high = resampled.quantile(resampled.new_tensor([tail, 1 - tail])).tolist()
    # What 0 hits in n trials leave possible: a bootstrap of zeros would claim certainty.
    unseen = 1 - tail ** (1 / len(points))
    above = torch.triu_indices(len(classes), len(classes), 1)  # a class and itself are no pair, even where no two meet
    first, second = above[:, int(pairs[above[0], above[1]].argmax())].tolist()
    tau = _probability(2 * found - float(resampled.mean()))
    return Overlap(
        tau=tau,
        low=min(tau, _probability(2 * found - high)),
        high=max(tau, _probability(2 * found - low), unseen),
        pair=(int(classes[first]), int(classes[second])),
    )


class _Halves(NamedTuple):
    """One halving of the sample. A cell is the items of one class in one half.

    Attributes:
        distances: (n, classes), each point's squared distance to its k-th nearest in the other half, class by class.
        labels: (n,) class of each point.
        half: (n,) 0 or 1.
        cells: (2 classes, largest cell) int64, the points of each cell, those nearest to their own class first.
        sizes: (2 classes,) points in each cell; beyond its size a row of `cells` is padding.
    """

    distances: Tensor
    labels: Tensor
    half: Tensor
    cells: Tensor
    sizes: Tensor

    def overlaps(self) -> Tensor:
        """(classes, classes) fraction of points in both supports; 0 on the diagonal."""
        ranks = torch.arange(self.cells.shape[1], device=self.cells.device).expand(self.cells.shape)
        return self._overlaps(ranks, torch.ones(len(self.labels), device=self.labels.device))

    def resampled_overlaps(self, generator: torch.Generator) -> Tensor:
        """The same for a bootstrap sample: every cell drawn anew with replacement."""
        uniform = torch.rand(self.cells.shape, generator=generator, device=self.cells.device)
        ranks = (uniform * self.sizes[:, None]).long().clamp(max=self.sizes[:, None] - 1)
        drawn = self.cells.gather(1, ranks)[self._present()]
        return self._overlaps(ranks, torch.bincount(drawn, minlength=len(self.labels)))

    def _overlaps(self, ranks: Tensor, weights: Tensor) -> Tensor:
        """Fractions of points with weights (n,), supports calibrated on the items of these ranks in each cell."""
        n, classes = self.distances.shape
        # The held-out points of a cell in order of distance: all but a fraction of them must be inside.
        inside = torch.ceil(self.sizes * (1 - 0.5 / self.sizes.sqrt())).long().clamp(min=1)
        ordered = ranks.masked_fill(~self._present(), self.cells.shape[1]).sort(1).values
        last = self.cells.gather(1, ordered.gather(1, inside[:, None] - 1)).squeeze(1)  # (2 classes,) a point each
        own = torch.arange(classes, device=ranks.device).repeat_interleave(2)
        radii = self.distances[last, own].view(classes, 2).T  # (2, classes), of the supports seen from each half
        member = self.distances <= radii[self.half]
        member |= one_hot(self.labels, classes).bool()
        inside_both = (member * weights[:, None].to(self.distances.dtype)).T @ member.to(self.distances.dtype)
        return inside_both.double().fill_diagonal_(0) / n

    def _present(self) -> Tensor:
        return torch.arange(self.cells.shape[1], device=self.cells.device) < self.sizes[:, None]


def _halve(points: Tensor, labels: Tensor, classes: int, neighbours: int, generator: torch.Generator) -> _Halves:
    """Cut every class in two at random and measure each point against the other half."""
    n = len(points)
    shuffled = torch.rand(n, generator=generator, device=points.device).argsort()
    shuffled = shuffled[labels[shuffled].argsort(stable=True)]
    half = torch.empty_like(labels)
    half[shuffled] = _place_in_run(labels[shuffled]) % 2
    distances = points.new_empty(n, classes)
    for side in (0, 1):
        held_out, reference = (half == side).nonzero().squeeze(1), shuffled[half[shuffled] != side]
        counts = torch.bincount(labels[reference], minlength=classes).tolist()
        rows = max(1, MEMORY.get(points.device.type, MEMORY["cpu"]) // (points.element_size() * len(reference)))
        for chunk in torch.split(held_out, rows):
            apart = squared_distances(points[chunk], points[reference])
            for number, block in enumerate(torch.split(apart, counts, 1)):
                distances[chunk, number] = block.topk(neighbours, largest=False).values[:, -1]

    cell = 2 * labels + half
    own = distances.gather(1, labels[:, None]).squeeze(1)
    order = own.argsort()
    order = order[cell[order].argsort(stable=True)]
    sizes = torch.bincount(cell, minlength=2 * classes)
    cells = labels.new_zeros(2 * classes, int(sizes.max()))
    cells[cell[order], _place_in_run(cell[order])] = order
    return _Halves(distances, labels, half, cells, sizes)


def _place_in_run(values: Tensor) -> Tensor:
    """0, 1, 2, … along each run of equal values of a sorted (n,)."""
    counts = torch.bincount(values)
    return torch.arange(len(values), device=values.device) - (counts.cumsum(0) - counts)[values]


def _probability(value: float) -> float:
    return min(1.0, max(0.0, value))


def _checked(z: Tensor, y: Tensor, neighbours: int, bootstrap: int, confidence: float) -> tuple[Tensor, Tensor, Tensor]:
    """Points (n, d) of known class, their labels 0, 1, … (n,) and the classes these stand for; or what is wrong."""
    if z.ndim != 2 or not z.is_floating_point() or not z.shape[1]:
        raise InputError(f"z must be floats of shape (n, d), not {z.dtype} of shape {tuple(z.shape)}: convert it.")
    if y.shape != z.shape[:1] or y.is_floating_point() or y.is_complex():
        raise InputError(f"y must be {len(z)} integers, one a point, not {y.dtype} of shape {tuple(y.shape)}.")
    if neighbours < 1 or bootstrap < SPLITS or not 0 < confidence < 1:
        raise InputError(
            f"neighbours {neighbours}, bootstrap {bootstrap}, confidence {confidence}: give at least 1, at least "
            f"{SPLITS}, and a number between 0 and 1."
        )
    known = y >= 0
    points = z[known] if z.dtype in (torch.float32, torch.float64) else z[known].float()
    if not points.isfinite().all():
        bad = int((~points.isfinite()).any(1).sum())
        raise InputError(f"{bad} rows of z hold NaN or infinite numbers: repair or drop them.")
    classes, labels, counts = torch.unique(y[known].long(), return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"y has {len(classes)} class(es): overlap is between two or more.")
    if int(counts.min()) < 2 * (neighbours + 1):
        raise InputError(
            f"class {int(classes[counts.argmin()])} has {int(counts.min())} points but {neighbours} neighbours need "
            f"{2 * (neighbours + 1)}: add points, leave the class out, or ask for fewer neighbours."
        )
    return points, labels, classes
