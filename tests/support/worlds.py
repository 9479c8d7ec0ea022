"""Small worlds of vectors in which the classes are known."""

import numpy as np

from medi.data.items import Items


def gaussian_classes(
    classes: int, items: int, *, width: int = 16, apart: float = 3.0, nuisance: float = 0.0, seed: int = 0
) -> Items:
    """Round classes whose means differ in the first half of the directions; the other half is noise."""
    generator, half = np.random.default_rng(seed), width // 2
    means = apart * generator.standard_normal((classes, half), np.float32)
    labels = np.repeat(np.arange(classes), items)
    values = generator.standard_normal((len(labels), width), np.float32)
    values[:, half:] *= 1 + nuisance
    values[:, :half] += means[labels]
    return Items(values, labels, tuple(f"class {c}" for c in range(classes)))


def split(world: Items, known: int) -> tuple[Items, Items]:
    """The first classes, and the others."""
    return world.of_classes(range(known)), world.of_classes(range(known, world.n_classes))


def none_known(width: int = 16) -> Items:
    """No item of no class."""
    return Items(np.zeros((0, width), np.float32), np.zeros(0, np.int64), ())
