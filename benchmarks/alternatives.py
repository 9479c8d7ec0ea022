"""What one would use instead of `medi discover`, each on the same features, for `glance.py`.

Labels are the engine's: groups from 0 on, `ALONE` for what is left out of every group, -2 - c for known class c.
Settings are documented defaults, or chosen on the known classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import DBSCAN, HDBSCAN, KMeans
from sklearn.metrics import pairwise_distances, silhouette_score

from medi.core.workplace import Workplace
from medi.data.items import Items
from medi.discover.candidates import WHITENED, Fitter
from medi.discover.choice import make_splits
from medi.discover.config import DiscoveryConfig
from medi.grouping.engine import ALONE
from medi.grouping.representation import Representation
from medi.grouping.ward import ward
from medi.metrics import acc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Cut = Callable[[int], Ints]
"""Labels of so many groups."""

NAME = f"{DiscoveryConfig().features}{WHITENED}"
"""Of the whitened features."""
STARTS, SCAN_STARTS = 10, 4
"""Starts of k-means, of which the best counts; at each number, where many are tried."""
TOOL_DISTANCE, TOOL_PHOTOS = 0.5, 3
"""Immich groups faces so: `maxDistance` and `minFaces` of its default configuration
(https://docs.immich.app/install/config-file, https://docs.immich.app/features/facial-recognition)."""
BAGS, BAG_CLASSES, BAG_ITEMS, DISTANCES = 6, 10, 5, 20
"""Bags of known classes that a distance is chosen on, most classes and items of each in them, and distances tried."""


@dataclass(frozen=True)
class Question:
    """What an approach may know.

    Attributes:
        known: Labelled items.
        pool: (n, d) what is to be grouped.
        number: How many classes the pool holds, one-offs and known classes counted; only some are told it.
        seed: Of whatever is random.
    """

    known: Items
    pool: Floats
    number: int
    seed: int

    @property
    def raw(self) -> Floats:
        """The features as they are, (n, d)."""
        return self.pool.astype(np.float64)

    @property
    def unit(self) -> Floats:
        """The features at length 1: their distances order pairs as the cosine does."""
        return unit(self.raw)

    def whitened(self) -> tuple[Floats, Floats]:
        """Known items and the pool in features where directions in which a known class varies count for less."""
        represent = fit_whitened(self.known, self.seed)
        return represent(self.known.values), represent(self.pool)


def fitter(seed: int) -> Fitter:
    """Fits representations to known classes, without any training."""
    return Fitter(DiscoveryConfig(), None, Workplace(seed=seed))


def fit_whitened(known: Items, seed: int) -> Representation:
    """Features where directions in which a known class varies count for less."""
    return fitter(seed).fit(NAME, known)


def kmeans(points: Floats, k: int, seed: int, starts: int = STARTS) -> Ints:
    """K-means, the best of some starts."""
    return KMeans(k, n_init=starts, random_state=seed).fit_predict(points).astype(np.int64)


def ward_cut(points: Floats) -> Cut:
    """Ward's method at any number of groups."""
    return ward(points).cut


def by_silhouette(points: Floats, cut: Cut) -> Ints:
    """The number of groups, from 2 to n - 1, whose silhouette is largest; fewer than three points are one group."""
    distances = pairwise_distances(points)
    best, found = -np.inf, np.zeros(len(points), dtype=np.int64)
    for k in range(2, len(points)):
        labels = cut(k)
        if 1 < labels.max() + 1 < len(points):
            score = silhouette_score(distances, labels, metric="precomputed")
            if score > best:
                best, found = score, labels
    return found


def hdbscan(points: Floats) -> Ints:
    """HDBSCAN with groups from two photos on; what it leaves out is alone."""
    if len(points) < 3:  # it has no density to compare
        return np.full(len(points), ALONE)
    return HDBSCAN(min_cluster_size=2, copy=True).fit_predict(points).astype(np.int64)


def photo_tool(points: Floats, distance: float = TOOL_DISTANCE, photos: int = TOOL_PHOTOS) -> Ints:
    """How a photo tool groups: DBSCAN on the cosine distance; what has too few neighbours is alone."""
    return DBSCAN(eps=distance, min_samples=photos, metric="cosine").fit_predict(points).astype(np.int64)


def tuned_photo_tool(question: Question) -> Ints:
    """The photo tool's rule with the distance and the number of neighbours that group bags of known classes best."""
    bags = list(known_bags(question.known, np.random.default_rng(question.seed)))
    pairs = np.concatenate([pairwise_distances(points, metric="cosine").ravel() for points, _ in bags])
    shares = np.geomspace(1e-3, 0.5, DISTANCES)  # of the pairs of a bag that a distance lets pass
    tried = [(distance, photos) for distance in np.quantile(pairs[pairs > 0], shares) for photos in (2, 3)]

    def score(setting: tuple[float, int]) -> float:
        return float(np.mean([acc(labels, apart(photo_tool(points, *setting))) for points, labels in bags]))

    return photo_tool(question.raw, *max(tried, key=score))


def known_bags(known: Items, generator: np.random.Generator) -> Iterable[tuple[Floats, Ints]]:
    """Bags of up to `BAG_CLASSES` known classes, 1 to `BAG_ITEMS` photos of each, and their classes."""
    values, labels = known.values.astype(np.float64), known.labels
    for _ in range(BAGS):
        classes = generator.permutation(known.n_classes)[:BAG_CLASSES]
        picked = [
            generator.permutation(np.flatnonzero(labels == c))[: generator.integers(1, BAG_ITEMS + 1)] for c in classes
        ]
        items = np.concatenate(picked)
        yield values[items], labels[items]


def classifier_first(question: Question) -> Ints:
    """Photos near the mean of a known class get its name; the others are grouped as by `whitened Ward`.

    How near is asked of known classes: some are held out, and the distance that best tells photos of the others from
    theirs is kept.
    """
    taught, points = question.whitened()
    nearest, distance = nearest_mean(taught, question.known.labels, points)
    labels = np.where(distance <= known_distance(question.known, question.seed), -2 - nearest, ALONE)
    novel = labels == ALONE
    if novel.any():
        labels[novel] = by_silhouette(points[novel], ward_cut(points[novel]))
    return labels


def known_distance(known: Items, seed: int) -> float:
    """The distance to the nearest mean below which a photo is called known."""
    belongs, away = [], []
    for split in make_splits(known, fitter(seed)):
        represent = split.candidates.all[NAME]
        taught = represent(split.learnt_from.values), split.learnt_from.labels
        for items, mine in ((split.kept_back, True), (split.held_out, False)):
            nearest, distance = nearest_mean(*taught, represent(items.values))
            away.append(distance)
            belongs.append((nearest == items.labels) & mine)
    return best_threshold(np.concatenate(away), np.concatenate(belongs))


def best_threshold(distance: Floats, belongs: NDArray[np.bool_]) -> float:
    """The distance (of those given) with the highest mean of the shares of both kinds that it puts on its side."""
    order = np.argsort(distance)
    inside = np.cumsum(belongs[order]) / max(belongs.sum(), 1)
    outside = 1 - np.cumsum(~belongs[order]) / max((~belongs).sum(), 1)
    return float(distance[order][np.argmax(inside + outside)])


def nearest_mean(points: Floats, labels: Ints, others: Floats) -> tuple[Ints, Floats]:
    """The class with the nearest mean to each of the others, and its distance."""
    means = np.stack([points[labels == c].mean(0) for c in range(labels.max() + 1)])
    away = pairwise_distances(others, means)
    return away.argmin(1), away.min(1)


def apart(labels: Ints) -> Ints:
    """Labels in which everything alone is a group of its own."""
    alone = labels == ALONE
    return np.where(alone, labels.max(initial=-1) + np.cumsum(alone), labels)


def unit(points: Floats) -> Floats:
    """Points at length 1."""
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)


def in_own_directions(points: Floats) -> Floats:
    """Points (n, d) with the same distances in n dimensions at most: that is faster where d is large."""
    left, lengths, _ = np.linalg.svd(points - points.mean(0), full_matrices=False)
    return left * lengths


def _kmeans_guessing(question: Question) -> Ints:
    points = in_own_directions(question.raw)
    return by_silhouette(points, partial(kmeans, points, seed=question.seed, starts=SCAN_STARTS))


def _whitened_ward_guessing(question: Question) -> Ints:
    _, points = question.whitened()
    return by_silhouette(points, ward_cut(points))


ALTERNATIVES: dict[str, Callable[[Question], Ints]] = {
    "k-means": _kmeans_guessing,
    "HDBSCAN": lambda question: hdbscan(question.unit),
    "Ward": lambda question: by_silhouette(question.raw, ward_cut(question.raw)),
    "whitened Ward": _whitened_ward_guessing,
    "photo tool": lambda question: photo_tool(question.raw),
    "photo tool, tuned": tuned_photo_tool,
    "classifier, then whitened Ward": classifier_first,
    "k-means, told": lambda question: kmeans(question.raw, question.number, question.seed),
    "Ward, told": lambda question: ward_cut(question.raw)(question.number),
    "whitened Ward, told": lambda question: ward_cut(question.whitened()[1])(question.number),
}
NAMING = frozenset({"classifier, then whitened Ward"})
"""Those that name photos of known classes."""
