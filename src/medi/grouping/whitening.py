"""Matrices that make distances between features suit the known classes: whitening, and weights of directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from medi.core.arrays import Floats, Ints

NO_VARIANCE = 1e-9
"""Part of the variance inside classes below which a variance is taken for rounding."""

ROWS = 8192
"""Features that are held as float64 at a time."""


def whitening(features: NDArray[Any], labels: Ints, shrinkage: float) -> Floats:
    """The symmetric matrix (d, d) after which classes (n,) of features (n, d) are round.

    It is the inverse root of their covariance inside classes, of which the part `shrinkage`, 0 to 1, is replaced by a
    multiple of the identity with the same trace; the identity where classes have no extent.

    >>> features = np.array([[0.0, 0], [0, 2], [5, 0], [5, 2]])  # classes differ in one feature, items in the other
    >>> whitening(features, np.array([0, 0, 1, 1]), shrinkage=0.5).diagonal().round(2)
    array([1.41, 0.82])
    """
    inside, _ = covariances(features, labels)
    size = inside.diagonal().mean()
    if not size > 0:
        return np.eye(len(inside))
    values, vectors = np.linalg.eigh(inside / size)
    values = (1 - shrinkage) * np.maximum(values, 0) + shrinkage
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def weighing(features: NDArray[Any], labels: Ints, shrinkage: float) -> Floats:
    """The symmetric matrix (d, d) that scales directions of whitened features by the root of b / (b + w).

    b is the variance between classes along a direction. w is the variance inside them, averaged over directions, which
    whitening has made alike. A direction in which classes do not differ only adds chance to distances. The result is
    the identity where classes differ in no direction, as a single class does, or have no extent. The part `shrinkage`
    of b, 0 to 1, is replaced by its mean over directions.

    >>> features = np.array([[0.0, 0], [0, 2], [5, 0], [5, 2]])
    >>> weighing(features, np.array([0, 0, 1, 1]), shrinkage=0).diagonal().round(2)
    array([0.96, 0.  ])
    """
    inside, between = covariances(features, labels)
    size = inside.diagonal().mean()
    values, vectors = np.linalg.eigh(between)
    values = np.where(values > NO_VARIANCE * size, values, 0.0)
    if not size > 0 or not values.any():
        return np.eye(len(values))
    values = (1 - shrinkage) * values + shrinkage * values.mean()
    return np.asarray((vectors * np.sqrt(values / (values + size))) @ vectors.T)


def whitening_factor(features: NDArray[Any], labels: Ints, shrinkage: float) -> Floats | None:
    """A matrix (d, d) after which distances are those under the inverse of the shrunk covariance in classes.

    It is the Cholesky factor of that inverse; None where every class is a single point. `whitening` gives the same
    distances up to their unit and is symmetric, but takes far longer. `shrinkage` has to be above 0.

    >>> features = np.array([[0.0, 0], [0, 2], [5, 0], [5, 2]])
    >>> whitening_factor(features, np.array([0, 0, 1, 1]), shrinkage=0.5).round(2)
    array([[1.41, 0.  ],
           [0.  , 0.82]])
    """
    inside, _ = covariances(features, labels)
    size = inside.diagonal().mean()
    if not size > 0:
        return None
    identity = np.eye(len(inside))
    lower = cholesky((1 - shrinkage) * inside + shrinkage * size * identity, lower=True)
    return np.ascontiguousarray(solve_triangular(lower, identity, lower=True).T)


def covariances(features: NDArray[Any], labels: Ints) -> tuple[Floats, Floats]:
    """Covariances (d, d) inside the classes (n,) of features (n, d) and between them, both without bias.

    The covariance between classes is that of their means, less the part that is due to each mean having few items.
    With one item per class nothing is known of the inside: it is zero, and nothing is subtracted.

    >>> inside, between = covariances(np.array([[0.0], [2.0], [5.0], [7.0]]), np.array([0, 0, 1, 1]))
    >>> inside, between
    (array([[2.]]), array([[11.5]]))
    """
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    parts = [slice(start, start + ROWS) for start in range(0, len(features), ROWS)]
    means = sum(class_sums(features[part], place[part], len(counts)) for part in parts) / counts[:, None]
    inside = np.zeros((features.shape[1], features.shape[1]))
    for part in parts:
        deviations = features[part].astype(np.float64) - means[place[part]]
        inside += deviations.T @ deviations
    inside /= max(1, len(features) - len(counts))
    apart = means - means.mean(0)
    between = apart.T @ apart / max(1, len(counts) - 1) - inside * (1 / counts).mean()
    return inside, between


def class_sums(points: NDArray[Any], labels: Ints, classes: int) -> Floats:
    """Sum (classes, d) of the points (n, d) of each label (n,); zero for a label without points.

    >>> class_sums(np.array([[1.0], [2.0], [4.0]]), np.array([0, 0, 2]), classes=3)
    array([[3.],
           [0.],
           [4.]])
    """
    indicator = (labels == np.arange(classes)[:, None]).astype(np.float64)
    return np.asarray(indicator @ points.astype(np.float64))
