"""How many classes are in a bag: an estimate calibrated on bags of known classes, or the silhouette.

Calibration bags are drawn from known classes and have as many items as the bag in question. A ridge regression
predicts the logarithm of the number of classes from the costs of Ward's merges. Its errors, each on a bag that was left
out of the fit, give the interval and the curve. Classes need not be equally large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from medi.cluster.kmeans import squared_distances
from medi.cluster.ward import Tree, ward
from medi.discovery.result import ClassCount

Floats = NDArray[np.float64]

FEWEST_CLASSES = 4
"""Known classes below which nothing can be calibrated."""
PLACES, THRESHOLDS, CALIBRATION_BAGS = 14, 12, 200
"""Points of the cost curve, thresholds on costs, and bags that the regression is fitted to."""
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
LEVEL = 0.9
"""Fraction of calibration bags whose number lies in the interval."""


@dataclass(frozen=True)
class Pool:
    """Points of known classes that the representation was not fitted to.

    Attributes:
        points: (n, d).
        labels: (n,) int64.
    """

    points: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Clues:
    """What is read off a tree: the cost of late merges, and how many merges cost more than some thresholds.

    Attributes:
        places: Numbers of clusters at which the cost of a merge is read.
        thresholds: Costs above which merges are counted.
        fair_thresholds: The same for costs that depend less on the sizes of clusters (`_fair`).
    """

    places: Floats
    thresholds: Floats
    fair_thresholds: Floats

    @classmethod
    def fit(cls, trees: Sequence[Tree]) -> Clues:
        """Places and thresholds that suit some trees."""
        quantiles = np.linspace(0.5, 0.99, THRESHOLDS)
        return cls(
            np.unique(np.geomspace(1, min(tree.points for tree in trees) - 1, PLACES).round()),
            np.quantile(np.concatenate([tree.costs for tree in trees]), quantiles),
            np.quantile(np.concatenate([_fair(tree) for tree in trees]), quantiles),
        )

    def read(self, tree: Tree) -> Floats:
        """The clues of a tree, one vector."""
        costs = np.log(tree.costs[::-1] + 1e-12 * max(tree.costs.sum(), 1e-300))
        late = np.interp(np.log(self.places), np.log(np.arange(1, len(costs) + 1)), costs)
        drops = costs[:-1] - costs[1:]
        steepest = int(drops[: max(2, len(costs) // 2)].argmax())
        above = np.log1p((tree.costs[:, None] > self.thresholds).sum(0))
        fairly_above = np.log1p((_fair(tree)[:, None] > self.fair_thresholds).sum(0))
        return np.concatenate([late, [np.log(steepest + 2)], above, fairly_above])


@dataclass(frozen=True)
class Calibration:
    """A regression from clues to the logarithm of the number of classes.

    Attributes:
        clues: What is read off a tree.
        mean: Of each clue in the calibration bags.
        scale: Standard deviation of each.
        weights: One for each clue, and the constant.
        errors: Of predictions for each calibration bag, fitted to the others, in logarithms.
        most: Largest number among the calibration bags.
        items: Items in a calibration bag.
    """

    clues: Clues
    mean: Floats
    scale: Floats
    weights: Floats
    errors: Floats
    most: int
    items: int

    def predict(self, tree: Tree) -> float:
        """The logarithm of the number of classes."""
        seen = (self.clues.read(tree) - self.mean) / self.scale
        return float(np.append(seen, 1.0) @ self.weights)


def calibrate(
    pools: Sequence[Pool], items: int, generator: torch.Generator, *, bags: int = CALIBRATION_BAGS
) -> Calibration | None:
    """Fit the regression on bags of known classes.

    Args:
        pools: Each bag is drawn from one of these.
        items: Size of the bag in question; calibration bags are smaller where there are not that many.
        generator: Source of the draws.
        bags: How many to draw.

    Returns:
        None where there are too few classes or items to learn from.
    """
    pools = [pool for pool in pools if len(torch.unique(pool.labels)) >= FEWEST_CLASSES]
    if not pools or items < FEWEST_CLASSES:
        return None
    items = min(items, min(len(pool.labels) for pool in pools))
    trees, numbers = [], []
    for bag in range(bags):
        pool = pools[bag % len(pools)]
        chosen = _draw(pool, items, generator)
        trees.append(ward(pool.points[chosen]))
        numbers.append(len(torch.unique(pool.labels[chosen])))
    clues = Clues.fit(trees)
    x, y = np.array([clues.read(tree) for tree in trees]), np.log(numbers)
    mean, scale = x.mean(0), x.std(0)
    scale[scale == 0] = 1.0
    weights, errors = _ridge(np.hstack([(x - mean) / scale, np.ones((bags, 1))]), y)
    return Calibration(clues, mean, scale, weights, errors, max(numbers), items)


def estimate(tree: Tree, calibration: Calibration) -> ClassCount:
    """The number of classes in a bag whose tree is given."""
    centre = calibration.predict(tree)
    errors = calibration.errors
    tail = (1 - LEVEL) / 2
    low, high = np.exp(centre + np.quantile(errors, [tail, 1 - tail]))
    low, high = (int(np.clip(round(end), 1, tree.points)) for end in (low, high))
    candidates = np.arange(1, min(tree.points, max(2 * high, 10)) + 1)
    scores = _density(np.log(candidates) - centre, errors)
    k = int(candidates[scores.argmax()])
    low, high = min(low, k), max(high, k)
    within = k <= calibration.most and tree.points <= 2 * calibration.items
    certain = high <= 2 * low and within
    how = (
        f"{k} groups ({low} to {high} in {100 * LEVEL:.0f} % of tries), by how the cost of merging groups grows, "
        f"calibrated on {len(errors)} heaps of {calibration.items} known items whose number of classes is known"
    )
    if not within:
        how += f"; the known classes are too few to check a number like this (at most {calibration.most} in a heap)"
    return ClassCount(
        k, low, high, tuple(candidates.tolist()), tuple((scores / scores.max()).tolist()), certain, how + "."
    )


def by_silhouette(points: Tensor, tree: Tree, most: int = 50, why: str = "") -> ClassCount:
    """The number of clusters with the largest mean silhouette, for want of known classes to calibrate on.

    Args:
        points: (n, d).
        tree: Ward's tree of them.
        most: Largest number tried.
        why: Added to the sentence that explains the number.
    """
    n = tree.points
    spread = float(tree.costs.sum())
    if n < 3 or spread <= 1e-12 * max(1.0, float(points.square().sum())):
        reason = "the items are all alike" if n > 1 else "there is only one item"
        reason = reason if n != 2 or spread == 0 else "two items cannot tell"
        return ClassCount(1, 1, min(n, 2) if n == 2 and spread else 1, (), (), n != 2, f"1 group: {reason}.")
    distances = squared_distances(points, points).sqrt()
    candidates = range(2, min(n - 1, most) + 1)
    scores = [silhouette(distances, torch.from_numpy(tree.cut(k))) for k in candidates]
    best = int(np.argmax(scores))
    near = [k for k, score in zip(candidates, scores, strict=True) if score >= scores[best] - 0.05]
    how = f"{candidates[best]} groups, by the largest silhouette, which often finds too few{why}."
    return ClassCount(candidates[best], min(near), max(near), tuple(candidates), tuple(scores), False, how)


def silhouette(distances: Tensor, labels: Tensor) -> float:
    """Mean silhouette of a grouping (n,) under distances (n, n), as scikit-learn defines it; 0 for single items."""
    members = one_hot(labels).to(distances.dtype)  # (n, k)
    sizes = members.sum(0)
    to_cluster = distances @ members
    own_size = sizes[labels]
    own = to_cluster.gather(1, labels[:, None]).squeeze(1) / (own_size - 1).clamp(min=1)
    other = (to_cluster / sizes).masked_fill(members.bool(), torch.inf).amin(1)
    widths = (other - own) / torch.maximum(own, other).clamp(min=torch.finfo(distances.dtype).tiny)
    return float(torch.where(own_size > 1, widths, 0).mean())


def _draw(pool: Pool, items: int, generator: torch.Generator) -> Tensor:
    """Indices of a bag: a random number of classes, equally large or not, about `items` items in all.

    The number of classes goes down to half of what is needed for `items` items, and then the bag is smaller. Otherwise
    the smallest number that known classes allow would lie at the edge of what the regression is fitted to.
    """

    def random(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, device=generator.device).cpu()

    classes = torch.unique(pool.labels)
    counts = torch.bincount(pool.labels)[classes]
    holding = int((counts.sort(descending=True).values.cumsum(0) < items).sum()) + 1
    most = max(2, min(len(classes), items // 2))  # most classes should have company
    fewest = max(2, min(holding // 2, most))
    number = round(float(np.exp(np.log(fewest) + np.log((most + 0.49) / fewest) * random().item())))
    chosen = random(len(classes)).argsort()[:number]
    unequal = random().item()
    weights = 1 + unequal * (4 * random(number) - 1).clamp(min=-0.8)
    sizes = (1 + (items - number) * weights / weights.sum()).round().long().minimum(counts[chosen])
    parts = []
    for place, size in zip(chosen, sizes.tolist(), strict=True):
        members = (pool.labels == classes[place]).nonzero().squeeze(1)
        parts.append(members[random(len(members)).argsort()[:size]])
    return torch.cat(parts)


def _fair(tree: Tree) -> Floats:
    """Costs of merges over the square root of the clusters' harmonic size, halfway to squared distances of means."""
    return np.asarray(tree.costs / np.sqrt(tree.sizes.prod(1) / tree.sizes.sum(1)))


def _ridge(design: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Weights under the penalty with the least error on left-out rows, and those errors; the constant is free."""
    best: tuple[float, Floats, Floats] | None = None
    for penalty in PENALTIES:
        ridge = penalty * np.eye(design.shape[1])
        ridge[-1, -1] = 0
        solve = np.linalg.solve(design.T @ design + ridge, design.T)
        leverage = (design * solve.T).sum(1)
        errors = (y - design @ (solve @ y)) / (1 - leverage)
        score = float(np.square(errors).mean())
        if best is None or score < best[0]:
            best = score, solve @ y, errors
    assert best is not None
    return best[1], best[2]


def _density(at: Floats, sample: Floats) -> Floats:
    """Smoothed density of a sample at some points, with Silverman's width."""
    width = max(1e-3, 1.06 * float(sample.std()) * len(sample) ** -0.2)
    return np.asarray(np.exp(-0.5 * np.square((at[:, None] - sample) / width)).mean(1))
