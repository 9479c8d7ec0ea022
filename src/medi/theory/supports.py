"""Definitions 1 and 2: the overlap tau of classes, estimated from samples as that of where nearly all of them lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from medi.core.arrays import Floats, Ints
from medi.core.draws import Draws
from medi.core.errors import InputError
from medi.core.progress import Reporter, Silent

HALVINGS = 5
"""Random halvings of the sample: the estimate is their mean, and the interval reflects how they differ."""
CONFIDENCE = 0.95
"""Of the interval."""
POINTS_AT_ONCE = 1024
"""Points whose distances are held at a time."""


@dataclass(frozen=True)
class Overlap:
    """An estimate of tau.

    Attributes:
        tau: Largest probability, over pairs of classes, that a point lies where nearly all of either class does.
        low: Lower end of its 95 % confidence interval.
        high: Upper end.
        pair: The two classes (values of y, the smaller first) that overlap most.

    >>> Overlap(tau=0.2, low=0.1, high=0.3, pair=(0, 1)).pair
    (0, 1)
    """

    tau: float
    low: float
    high: float
    pair: tuple[int, int]


def overlap(
    z: ArrayLike,
    y: ArrayLike,
    *,
    neighbours: int = 5,
    resamples: int = 200,
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
        resamples: Bootstrap samples that the interval is drawn from, divided among the halvings.
        seed: Of every random draw.
        reporter: Shows progress.

    Returns:
        The estimate, its interval and the pair of classes.

    >>> line = np.linspace(0, 1, 200)[:, None]
    >>> overlap(np.concatenate([line, line + 3]), np.repeat([0, 1], 200)).tau  # two classes that do not meet
    0.0
    """
    if resamples < HALVINGS:
        raise InputError(f"{resamples} resamples: give at least {HALVINGS}.")
    points, labels, classes = _checked(z, y, neighbours)
    draws = Draws(seed)
    pairs, largest = np.zeros((len(classes), len(classes))), []
    with (reporter or Silent()).track("overlap", HALVINGS) as tick:
        for split in range(HALVINGS):
            halves = _halve(points, labels, len(classes), neighbours, draws)
            pairs += halves.overlaps() / HALVINGS
            for _ in range(math.ceil(resamples / HALVINGS)):
                largest.append(halves.resampled_overlaps(draws).max())
            tick(split + 1)
    found, tail = float(pairs.max()), (1 - CONFIDENCE) / 2
    low, high = np.quantile(largest, [tail, 1 - tail]).tolist()
    # What 0 hits in n trials leave possible: a bootstrap of zeros would claim certainty.
    unseen = 1 - tail ** (1 / len(points))
    above = np.triu_indices(len(classes), 1)  # a class and itself are no pair, even where no two meet
    place = int(pairs[above].argmax())
    first, second = int(above[0][place]), int(above[1][place])
    tau = _probability(2 * found - float(np.mean(largest)))
    return Overlap(
        tau=tau,
        low=min(tau, _probability(2 * found - high)),
        high=max(tau, _probability(2 * found - low), unseen),
        pair=(int(classes[first]), int(classes[second])),
    )


class _Halves(NamedTuple):
    """One halving of the sample. A cell is the items of one class in one half.

    Each point's squared distance to its k-th nearest in the other half, class by class, (n, classes); its class and
    half, (n,); and the points of each cell, (2 classes, largest cell), those nearest to their own class first, with
    padding beyond its size.
    """

    distances: Floats
    labels: Ints
    half: Ints
    cells: Ints
    sizes: Ints

    def overlaps(self) -> Floats:
        """(classes, classes) fraction of points in both supports; 0 on the diagonal."""
        ranks = np.broadcast_to(np.arange(self.cells.shape[1]), self.cells.shape)
        return self._overlaps(ranks, np.ones(len(self.labels)))

    def resampled_overlaps(self, draws: Draws) -> Floats:
        """The same for a bootstrap sample: every cell drawn anew with replacement."""
        uniform = draws.uniform(self.cells.size).reshape(self.cells.shape)
        ranks = np.minimum((uniform * self.sizes[:, None]).astype(np.int64), self.sizes[:, None] - 1)
        drawn = np.take_along_axis(self.cells, ranks, 1)[self._present()]
        return self._overlaps(ranks, np.bincount(drawn, minlength=len(self.labels)).astype(np.float64))

    def _overlaps(self, ranks: Ints, weights: Floats) -> Floats:
        """Fractions of points with weights (n,), supports calibrated on the items of these ranks in each cell."""
        n, classes = self.distances.shape
        # The held-out points of a cell in order of distance: all but a fraction of them must be inside.
        inside = np.maximum(np.ceil(self.sizes * (1 - 0.5 / np.sqrt(self.sizes))).astype(np.int64), 1)
        ordered = np.sort(np.where(self._present(), ranks, self.cells.shape[1]), axis=1)
        last = self.cells[np.arange(2 * classes), np.take_along_axis(ordered, inside[:, None] - 1, 1)[:, 0]]
        own = np.repeat(np.arange(classes), 2)
        radii = self.distances[last, own].reshape(classes, 2).T  # (2, classes), of the supports seen from each half
        member = (self.distances <= radii[self.half]) | (self.labels[:, None] == np.arange(classes))
        inside_both = (member * weights[:, None]).T @ member
        np.fill_diagonal(inside_both, 0)
        return np.asarray(inside_both / n)

    def _present(self) -> NDArray[np.bool_]:
        return np.arange(self.cells.shape[1]) < self.sizes[:, None]


def _halve(points: Floats, labels: Ints, classes: int, neighbours: int, draws: Draws) -> _Halves:
    """Cut every class in two at random and measure each point against the other half."""
    n = len(points)
    shuffled = draws.uniform(n).argsort(kind="stable")
    shuffled = shuffled[labels[shuffled].argsort(kind="stable")]
    half = np.empty_like(labels)
    half[shuffled] = _place_in_run(labels[shuffled]) % 2
    distances = np.empty((n, classes))
    for side in (0, 1):
        held_out, reference = np.flatnonzero(half == side), shuffled[half[shuffled] != side]
        ends = np.cumsum(np.bincount(labels[reference], minlength=classes))[:-1]
        for start in range(0, len(held_out), POINTS_AT_ONCE):
            chunk = held_out[start : start + POINTS_AT_ONCE]
            apart = cdist(points[chunk], points[reference], "sqeuclidean")
            for number, block in enumerate(np.split(apart, ends, axis=1)):
                distances[chunk, number] = np.partition(block, neighbours - 1, axis=1)[:, neighbours - 1]
    cell = 2 * labels + half
    order = distances[np.arange(n), labels].argsort(kind="stable")
    order = order[cell[order].argsort(kind="stable")]
    sizes = np.bincount(cell, minlength=2 * classes)
    cells = np.zeros((2 * classes, int(sizes.max())), np.int64)
    cells[cell[order], _place_in_run(cell[order])] = order
    return _Halves(distances, labels, half, cells, sizes)


def _place_in_run(values: Ints) -> Ints:
    """0, 1, 2, … along each run of equal values of a sorted (n,)."""
    counts = np.bincount(values)
    return np.arange(len(values)) - (counts.cumsum() - counts)[values]


def _probability(value: float) -> float:
    return min(1.0, max(0.0, value))


def _checked(z: ArrayLike, y: ArrayLike, neighbours: int) -> tuple[Floats, Ints, Ints]:
    """Points (n, d) of known class, their labels 0, 1, … (n,) and the classes these stand for; or what is wrong."""
    given, values = np.asarray(z), np.asarray(y)
    if given.ndim != 2 or given.dtype.kind != "f" or not given.shape[1]:
        raise InputError(f"z must be floats of shape (n, d), not {given.dtype} of shape {given.shape}: convert it.")
    if values.shape != given.shape[:1] or values.dtype.kind not in "iu":
        raise InputError(f"y must be {len(given)} integers, one a point, not {values.dtype} of shape {values.shape}.")
    if neighbours < 1:
        raise InputError(f"neighbours {neighbours}: give at least 1.")
    known = values >= 0
    points = given[known].astype(np.float64)
    if not np.isfinite(points).all():
        bad = int((~np.isfinite(points)).any(1).sum())
        raise InputError(f"{bad} rows of z hold NaN or infinite numbers: repair or drop them.")
    classes, labels, counts = np.unique(values[known].astype(np.int64), return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"y has {len(classes)} class(es): overlap is between two or more.")
    if int(counts.min()) < 2 * (neighbours + 1):
        raise InputError(
            f"class {int(classes[counts.argmin()])} has {int(counts.min())} points but {neighbours} neighbours need "
            f"{2 * (neighbours + 1)}: add points, leave the class out, or ask for fewer neighbours."
        )
    return points, labels, classes
