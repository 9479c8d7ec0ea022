"""Representations that known classes are enough for: no method learns anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Floats
from medi.data.items import CHUNK, Items, chunks
from medi.grouping.representation import Representation
from medi.grouping.whitening import class_sums, whitening_factor

FEW = 500
"""Items up to which principal directions are found exactly."""
SHRINKAGE = 0.5
"""Part of the within-class covariance that is replaced by a round one of the same size."""
DIRECTIONS = 256
"""Directions in which features differ most that whitening works in; with more it takes longer and groups no better."""
ROUNDING = 1e-9
"""Part of the largest variance below which a variance is taken for rounding: its direction is nobody's."""


def class_means(known: Items, represent: Callable[[NDArray[Any]], Floats]) -> Floats:
    """Mean (c, e) of the points of each known class, every one of which must have items.

    >>> known = Items(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1]), ("a", "b"))
    >>> class_means(known, as_they_are(known.values, "as they are"))
    array([[1.],
           [5.]])
    """
    parts = zip(chunks(known.values), chunks(known.labels), strict=True)
    sums = [class_sums(represent(items), labels, known.n_classes) for items, labels in parts]
    return np.asarray(np.sum(sums, axis=0) / known.counts()[:, None])


def as_they_are(items: NDArray[Any], name: str) -> Representation:
    """Features, or pixels, unchanged.

    >>> items = np.array([[1.0, 2.0]])
    >>> as_they_are(items, "as they are")(items)
    array([[1., 2.]])
    """
    return Representation(name, items.shape[1:])


def unit_length(known: Items, name: str) -> Representation:
    """The mean of the known features subtracted, then length 1: only angles count.

    >>> known = Items(np.array([[1.0, 1.0], [3.0, 1.0]]), np.array([0, 1]), ("a", "b"))
    >>> unit_length(known, "angles")(np.array([[2.0, 9.0]]))  # the mean is (2, 1)
    array([[0., 1.]])
    """
    mean = np.sum([part.astype(np.float64).sum(0) for part in chunks(known.values)], axis=0) / len(known)
    return Representation(name, known.values.shape[1:], shift=mean, unit=True)


def principal(features: NDArray[Any], width: int, seed: int = 0) -> Representation:
    """The mean of known features (n, d) subtracted, the `width` directions in which they differ most, length 1.

    Of many items a part is drawn at random: it shows the same directions.

    >>> features = np.array([[0.0, 0.0, 1.0], [4.0, 0.0, 1.0], [8.0, 0.0, 1.0]])
    >>> principal(features, width=2).matrix.shape  # they differ in one direction
    (3, 1)
    """
    generator = np.random.default_rng(seed)
    if len(features) > 2 * CHUNK:
        features = features[np.sort(generator.permutation(len(features))[: 2 * CHUNK])]
    points = features.astype(np.float64)
    centred = points - points.mean(0)
    width = min(width, *points.shape)
    if len(centred) <= FEW:  # their inner products are fewer than those of the features
        values, vectors = np.linalg.eigh(centred @ centred.T)
        spanned = int((values > ROUNDING * values.max()).sum())
        directions = centred.T @ vectors[:, ::-1][:, : min(width, spanned)]
        directions = np.linalg.qr(directions)[0] if spanned else np.eye(centred.shape[1])[:, :width]
    else:
        directions = _leading(centred, width, generator)
    return Representation("principal", points.shape[1:], points.mean(0), np.ascontiguousarray(directions), unit=True)


def _leading(centred: Floats, width: int, generator: np.random.Generator) -> Floats:
    """About the leading directions (d, width) of points (n, d): Halko, Martinsson and Tropp 2009, one power step."""
    size = min(width + 10, *centred.shape)
    basis = np.linalg.qr(centred @ generator.standard_normal((centred.shape[1], size)))[0]
    basis = np.linalg.qr(centred @ np.linalg.qr(centred.T @ basis)[0])[0]
    return np.linalg.svd(basis.T @ centred, full_matrices=False)[2][:width].T


def whitened(known: Items, name: str, *, root: bool = False, shrinkage: float = SHRINKAGE) -> Representation:
    """Length 1 after whitening: directions in which items of one known class differ count for less.

    Args:
        known: Vectors (n, d).
        name: What to call it.
        root: Whether square roots of the features are taken first.
        shrinkage: Above 0, so that the covariance can be inverted, to 1, where nothing is whitened.

    >>> values = np.array([[0.0, 0], [0, 8], [1, 0], [1, 8]])  # the second feature differs inside classes
    >>> points = whitened(Items(values, np.array([0, 0, 1, 1]), ("a", "b")), "whitened")(values)
    >>> bool(np.linalg.norm(points[0] - points[1]) < 8 * np.linalg.norm(points[0] - points[2]))
    True
    """
    rooted = replace(as_they_are(known.values, name), root=root)
    features = known.values
    if root:
        features = np.concatenate([rooted.prepare(part).astype(np.float32) for part in chunks(features)])
    base = principal(features, DIRECTIONS)
    assert base.matrix is not None
    assert base.shift is not None
    points = np.concatenate([(part.astype(np.float64) - base.shift) @ base.matrix for part in chunks(features)])
    factor = whitening_factor(points, known.labels, shrinkage)
    matrix = base.matrix if factor is None else base.matrix @ factor
    return replace(rooted, shift=base.shift, matrix=matrix, unit=True)
