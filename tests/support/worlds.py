"""Small worlds of vectors and images in which the classes are known."""

import torch

from medi.data.imageset import ImageSet


def gaussian_classes(
    classes: int, items: int, *, width: int = 16, apart: float = 3.0, nuisance: float = 0.0, seed: int = 0
) -> ImageSet:
    """Round classes whose means differ in the first half of the directions; the other half is noise."""
    g = torch.Generator().manual_seed(seed)
    means = torch.zeros(classes, width)
    means[:, : width // 2] = apart * torch.randn(classes, width // 2, generator=g)
    labels = torch.arange(classes).repeat_interleave(items)
    noise = torch.randn(len(labels), width, generator=g)
    noise[:, width // 2 :] *= 1 + nuisance
    return ImageSet(means[labels] + noise, labels, tuple(f"class {c}" for c in range(classes)))


def split(world: ImageSet, known: int) -> tuple[ImageSet, ImageSet]:
    return world.of_classes(range(known)), world.of_classes(range(known, world.n_classes))


def none_known(width: int = 16) -> ImageSet:
    return ImageSet(torch.zeros(0, width), torch.zeros(0, dtype=torch.int64), ())
