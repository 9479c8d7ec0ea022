"""Further classes made of known ones: with few known classes a network ignores most of what tells new ones apart."""

from __future__ import annotations

from itertools import permutations
from typing import Literal

import torch

from medi.core.errors import InputError
from medi.data.imageset import ImageSet

ExtraClasses = Literal["none", "turned", "spliced"]
MOST_SPLICED = 20
"""Splicing squares the number of classes, and multiplies the images by it."""


def with_extra_classes(known: ImageSet, extra: ExtraClasses) -> ImageSet:
    """The known classes and what is made of them as further classes.

    Turned: each by 90, 180 and 270 degrees. Spliced: the upper half of one class on the lower half of another, for
    every ordered pair, and all of them turned.
    """
    match extra:
        case "none":
            return known
        case "turned":
            return known.with_rotations()
        case "spliced":
            return _spliced(known).with_rotations()


def _spliced(known: ImageSet) -> ImageSet:
    """The classes and, for every ordered pair of them, upper halves of one on lower halves of the other."""
    if known.n_classes > MOST_SPLICED:
        raise InputError(
            f"{known.n_classes} known classes are too many to splice every two of them (at most {MOST_SPLICED}): "
            "use extra_classes='turned' or 'none'."
        )
    images, labels, names = [known.images], [known.labels], list(known.class_names)
    members = [(known.labels == c).nonzero().squeeze(1) for c in range(known.n_classes)]
    generator = torch.Generator().manual_seed(0)
    half = known.images.shape[-2] // 2
    for one, other in permutations(range(known.n_classes), 2):
        upper, lower = members[one], members[other]
        if len(upper) and len(lower):
            partners = lower[torch.randint(len(lower), (len(upper),), generator=generator).to(lower.device)]
            images.append(torch.cat([known.images[upper][:, :, :half], known.images[partners][:, :, half:]], dim=-2))
            labels.append(torch.full_like(upper, len(names)))
            names.append(f"{known.class_names[one]} on {known.class_names[other]}")
    return ImageSet(torch.cat(images), torch.cat(labels), tuple(names))
