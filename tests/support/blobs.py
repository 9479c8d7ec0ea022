"""Classes that are plainly there: tight clouds of points in directions of their own."""

import numpy as np
import torch

from medi.data.imageset import ImageSet

DIMENSIONS = 24


def blobs(classes: range, each: int, seed: int = 0, scatter: float = 0.02) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, `DIMENSIONS`) float32 about one axis for each class, and their classes."""
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.array(classes), each)
    points = np.eye(DIMENSIONS)[labels] + scatter * generator.standard_normal((len(labels), DIMENSIONS))
    return points.astype(np.float32), labels


def known_blobs(classes: int, each: int = 10) -> ImageSet:
    """The first classes, labelled."""
    points, labels = blobs(range(classes), each)
    return ImageSet(torch.from_numpy(points), torch.from_numpy(labels), tuple(map(str, range(classes))))
