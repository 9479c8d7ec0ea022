"""Further classes made of known ones: with few known classes a network ignores most of what tells new ones apart."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from medi.data.images import ImageSet
from medi.errors import InputError

Copies = Literal["none", "turned", "mirrored", "spliced"]
MOST_SPLICED = 20
"""Splicing squares the number of classes, and multiplies the images by it."""


def with_copies(known: ImageSet, copies: Copies) -> ImageSet:
    """The known classes and what is made of them as further classes.

    Args:
        known: The known classes.
        copies: none; turned: each by 90, 180 and 270 degrees; mirrored: those, and all of them mirrored; spliced: the
            upper half of one class on the lower half of another, for every ordered pair, and all of them turned.
    """
    match copies:
        case "none":
            return known
        case "turned":
            return known.with_rotations()
        case "mirrored":
            return _mirrored(known.with_rotations())
        case "spliced":
            return _spliced(known).with_rotations()


def _mirrored(known: ImageSet) -> ImageSet:
    """Every class and its mirror image."""
    labels = torch.where(known.labels >= 0, known.labels + known.n_classes, -1)
    names = tuple(f"{name} mirrored" for name in known.class_names)
    return ImageSet(
        torch.cat([known.images, known.images.flip(-1)]), torch.cat([known.labels, labels]), known.class_names + names
    )


def _spliced(known: ImageSet) -> ImageSet:
    """The classes and, for every ordered pair of them, the upper halves of one on lower halves of the other."""
    if known.n_classes > MOST_SPLICED:
        raise InputError(
            f"{known.n_classes} known classes are too many to splice every two of them (at most {MOST_SPLICED}): "
            "there are enough for other copies."
        )
    images, labels, names = [known.images], [known.labels], list(known.class_names)
    members = [(known.labels == c).nonzero().squeeze(1) for c in range(known.n_classes)]
    generator = torch.Generator().manual_seed(0)
    for above, upper in enumerate(members):
        for below, lower in enumerate(members):
            if above != below and len(upper) and len(lower):
                partners = lower[torch.randint(len(lower), (len(upper),), generator=generator).to(lower.device)]
                images.append(_stacked(known.images[upper], known.images[partners]))
                labels.append(torch.full_like(upper, len(names)))
                names.append(f"{known.class_names[above]} on {known.class_names[below]}")
    return ImageSet(torch.cat(images), torch.cat(labels), tuple(names))


def _stacked(upper: Tensor, lower: Tensor) -> Tensor:
    """The upper halves of some images (n, c, h, w) on the lower halves of others."""
    half = upper.shape[-2] // 2
    return torch.cat([upper[..., :half, :], lower[..., half:, :]], dim=-2)
