"""How well clusters match classes: ACC, NMI and ARI, one partition or many episodes at once.

Labels may be any integers, and there may be more or fewer clusters than classes. NumPy arrays, sequences and torch
tensors are all fine; torch itself is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from medi.core.arrays import Floats, Ints
from medi.core.errors import InputError


class Scores(NamedTuple):
    """Scores of each episode.

    Attributes:
        acc: (episodes,) share of items whose cluster maps to their class under the best one-to-one map.
        nmi: (episodes,) mutual information over the mean of the two entropies.
        ari: (episodes,) Rand index corrected for chance.

    >>> score_episodes([[0, 0, 1]], [[1, 1, 0]])
    Scores(acc=array([1.]), nmi=array([1.]), ari=array([1.]))
    """

    acc: Floats
    nmi: Floats
    ari: Floats


def acc(labels: ArrayLike, clusters: ArrayLike) -> float:
    """Share of items whose cluster maps to their class under the best one-to-one map (Hungarian method); both (n,).

    >>> acc([0, 0, 1, 1], [7, 7, 7, 3])  # cluster 7 is class 0, cluster 3 is class 1
    0.75
    """
    return float(_acc(_tables(*_one_episode(labels, clusters)))[0])


def nmi(labels: ArrayLike, clusters: ArrayLike) -> float:
    """Mutual information over the arithmetic mean of the entropies of labels and clusters; both (n,).

    >>> nmi([0, 0, 1, 1], [7, 7, 3, 3]), nmi([0, 0, 1, 1], [0, 1, 0, 1])
    (1.0, 0.0)
    """
    return float(_nmi(_tables(*_one_episode(labels, clusters)))[0])


def ari(labels: ArrayLike, clusters: ArrayLike) -> float:
    """Share of pairs on which labels and clusters agree, corrected for chance: 0 at random, 1 if equal; both (n,).

    >>> ari([0, 0, 1, 1], [7, 7, 3, 3]), round(ari([0, 0, 1, 1], [0, 1, 0, 1]), 2)
    (1.0, -0.5)
    """
    return float(_ari(_tables(*_one_episode(labels, clusters)))[0])


def score_episodes(labels: ArrayLike, clusters: ArrayLike) -> Scores:
    """ACC, NMI and ARI of every episode; labels and clusters (episodes, n), each with a best map of its own.

    >>> score_episodes([[0, 0, 1], [0, 1, 1]], [[5, 5, 5], [2, 9, 9]]).acc.round(2)
    array([0.67, 1.  ])
    """
    tables = _tables(*_checked(labels, clusters, ndim=2))
    return Scores(_acc(tables), _nmi(tables), _ari(tables))


def rightly_assigned(labels: ArrayLike, clusters: ArrayLike) -> NDArray[np.bool_]:
    """Which items (episodes, n) are in the cluster that ACC's map gives their class; their share is ACC.

    >>> rightly_assigned([[0, 0, 1, 1]], [[1, 1, 0, 1]])
    array([[ True,  True,  True, False]])
    """
    true, found = _checked(labels, clusters, ndim=2)
    rows, columns = _dense(true), _dense(found)
    right = np.zeros(rows.shape, dtype=np.bool_)
    for table, of_rows, of_columns, of_right in zip(_tables(true, found), rows, columns, right, strict=True):
        classes, matched = linear_sum_assignment(table, maximize=True)
        partner = np.full(table.shape[0], -1)
        partner[classes] = matched
        of_right[:] = partner[of_rows] == of_columns
    return right


def calibration_error(confidence: ArrayLike, right: ArrayLike, *, bins: int = 10) -> float:
    """Expected calibration error: how far stated confidence is from what came true, on average over items.

    Args:
        confidence: (n,) 0 to 1, how probable it was said to be that an answer is right.
        right: (n,) whether it was.
        bins: Of equal width; items of a bin are compared by their means.

    >>> calibration_error([0.5, 0.5, 1, 1], [True, False, True, True])  # as sure as right
    0.0
    >>> calibration_error([0.9, 0.9], [True, False])
    0.4
    """
    stated, true = np.asarray(confidence, dtype=np.float64).ravel(), np.asarray(right, dtype=np.float64).ravel()
    if stated.shape != true.shape or not stated.size:
        raise InputError(f"{stated.size} confidences and {true.size} answers: give one confidence for each answer.")
    if (bad := np.flatnonzero(~((stated >= 0) & (stated <= 1)))).size:
        raise InputError(f"confidence {bad[0] + 1} of {stated.size} is {stated[bad[0]]:g}: give a number from 0 to 1.")
    which = np.minimum((stated * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(which, stated - true, minlength=bins)
    return float(np.abs(gaps).sum() / stated.size)


def chance(class_sizes: Sequence[int], n_clusters: int, *, draws: int = 2000, seed: int = 0) -> float:
    """Expected ACC of clusters drawn uniformly at random: the best map makes it higher than one in `n_clusters`.

    Args:
        class_sizes: number of items in each class.
        n_clusters: number of clusters that items are thrown into.
        draws: simulated partitions; 2000 give about 0.1 points of standard error for 5 classes of 15.
        seed: of the simulation. Results are cached.

    >>> round(chance([15] * 5, n_clusters=5), 2)  # not 1 in 5
    0.31
    """
    sizes = tuple(int(size) for size in class_sizes)
    if n_clusters < 1 or draws < 1 or not sizes or min(sizes) < 1:
        raise InputError(
            f"chance of {sizes} items in {n_clusters} clusters over {draws} draws: all must be at least 1."
        )
    return _simulated_chance(sizes, int(n_clusters), draws, seed)


@lru_cache(maxsize=256)
def _simulated_chance(sizes: tuple[int, ...], n_clusters: int, draws: int, seed: int) -> float:
    # Only the contingency table matters, and its rows are independent multinomials: no need to draw items.
    uniform = np.full(n_clusters, 1 / n_clusters)
    tables = np.random.default_rng(seed).multinomial(sizes, uniform, size=(draws, len(sizes)))
    return float(_acc(tables).mean())


def _acc(tables: Ints) -> Floats:
    """(episodes,) from tables (episodes, classes, clusters)."""
    matched = [table[linear_sum_assignment(table, maximize=True)].sum() for table in tables]
    return np.asarray(np.array(matched) / tables.sum((1, 2)))


def _nmi(tables: Ints) -> Floats:
    """(episodes,) from tables (episodes, classes, clusters)."""
    joint = tables / tables.sum((1, 2), keepdims=True)
    of_classes, of_clusters = joint.sum(2), joint.sum(1)
    independent = of_classes[:, :, None] * of_clusters[:, None, :]
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=joint > 0)
    information = (joint * np.log(ratio)).sum((1, 2))
    entropy = (_entropy(of_classes) + _entropy(of_clusters)) / 2
    # As in scikit-learn: two partitions without any split agree, and information that is mere rounding is none.
    trivial = (np.count_nonzero(of_classes, axis=1) == 1) & (np.count_nonzero(of_clusters, axis=1) == 1)
    known = information > np.finfo(np.float64).eps
    shared = np.divide(information, entropy, out=np.zeros_like(entropy), where=known & ~trivial)
    return np.where(trivial, 1.0, shared)


def _entropy(shares: Floats) -> Floats:
    """(episodes,) from shares (episodes, groups)."""
    logarithms = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logarithms).sum(1))


def _ari(tables: Ints) -> Floats:
    """(episodes,) from tables (episodes, classes, clusters)."""
    counts = tables.astype(np.float64)
    n = counts.sum((1, 2))
    both = _pairs(counts).sum((1, 2))
    of_classes, of_clusters = _pairs(counts.sum(2)).sum(1), _pairs(counts.sum(1)).sum(1)
    same = (of_classes == both) & (of_clusters == both)  # also covers a single item, which has no pairs
    expected = of_classes * of_clusters / np.maximum(_pairs(n), 1)
    scale = (of_classes + of_clusters) / 2 - expected
    index = np.divide(both - expected, scale, out=np.ones_like(scale), where=~same & (scale != 0))
    return np.where(same, 1.0, index)


def _pairs(count: Floats) -> Floats:
    return count * (count - 1) / 2


def _tables(labels: NDArray[Any], clusters: NDArray[Any]) -> Ints:
    """Contingency tables (episodes, classes, clusters): how many items of each class are in each cluster."""
    rows, columns = _dense(labels), _dense(clusters)
    shape = len(rows), int(rows.max()) + 1, int(columns.max()) + 1
    cells = np.ravel_multi_index((np.arange(len(rows))[:, None], rows, columns), shape)
    return np.bincount(cells.ravel(), minlength=int(np.prod(shape))).reshape(shape)


def _dense(labels: NDArray[Any]) -> Ints:
    """Number each episode's labels (episodes, n) from 0 in their order, so that tables have no needless rows."""
    order = labels.argsort(axis=1, kind="stable")
    ordered = np.take_along_axis(labels, order, axis=1)
    rank = np.zeros(labels.shape, dtype=np.int64)
    rank[:, 1:] = np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1)
    dense = np.empty_like(rank)
    np.put_along_axis(dense, order, rank, axis=1)
    return dense


def _one_episode(labels: ArrayLike, clusters: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    one_labels, one_clusters = _checked(labels, clusters, ndim=1)
    return one_labels[None], one_clusters[None]


def _checked(labels: ArrayLike, clusters: ArrayLike, *, ndim: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both as arrays, or an error that names the shapes."""
    true, found = (np.asarray(each.cpu() if hasattr(each, "cpu") else each) for each in (labels, clusters))
    if true.shape != found.shape:
        raise InputError(
            f"labels {true.shape} and clusters {found.shape} differ in shape: give one cluster for each label."
        )
    if true.ndim != ndim:
        want = (
            "(n,); use score_episodes for many episodes" if ndim == 1 else "(episodes, n); use acc, nmi or ari for one"
        )
        raise InputError(f"labels and clusters of shape {true.shape} do not fit: give {want}.")
    if true.size == 0:
        raise InputError(f"labels and clusters of shape {true.shape} hold nothing to score: give at least one item.")
    return true, found
