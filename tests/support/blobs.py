"""Classes that are plainly there: tight clouds of points in directions of their own."""

import numpy as np

from medi.data.items import Items

DIMENSIONS = 24


def blobs(classes: range, each: int, seed: int = 0, scatter: float = 0.02) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, `DIMENSIONS`) float32 about one axis for each class, and their classes."""
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.array(classes), each)
    points = np.eye(DIMENSIONS)[labels] + scatter * generator.standard_normal((len(labels), DIMENSIONS))
    return points.astype(np.float32), labels


def known_blobs(classes: int, each: int = 10) -> Items:
    """The first classes, labelled."""
    return Items(*blobs(range(classes), each), tuple(map(str, range(classes))))
