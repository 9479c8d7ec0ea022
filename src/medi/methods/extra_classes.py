"""Further classes made of known ones: with few known classes a network ignores most of what tells new ones apart."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Literal

import torch
from torch import Tensor

from medi.data.imageset import ImageSet
from medi.errors import InputError

Copies = Literal["none", "turned", "spliced", "crossed"]
MOST_SPLICED = 20
"""Splicing squares the number of classes, and multiplies the images by it."""


def with_copies(known: ImageSet, copies: Copies) -> ImageSet:
    """The known classes and what is made of them as further classes.

    Args:
        known: The known classes.
        copies: none; turned: each by 90, 180 and 270 degrees; spliced: the upper half of one class on the lower half of
            another, for every ordered pair, and all of them turned; crossed: as spliced, and left halves beside right
            halves too.
    """
    match copies:
        case "none":
            return known
        case "turned":
            return known.with_rotations()
        case "spliced":
            return _spliced(known, {"on": -2}).with_rotations()
        case "crossed":
            return _spliced(known, {"on": -2, "beside": -1}).with_rotations()


def _spliced(known: ImageSet, ways: Mapping[str, int]) -> ImageSet:
    """The classes and, for every ordered pair of them, first halves of one joined to second halves of the other.

    Args:
        known: The known classes.
        ways: The dimension along which halves are joined, by the word that says so.
    """
    if known.n_classes > MOST_SPLICED:
        raise InputError(
            f"{known.n_classes} known classes are too many to splice every two of them (at most {MOST_SPLICED}): "
            "there are enough for other copies."
        )
    images, labels, names = [known.images], [known.labels], list(known.class_names)
    members = [(known.labels == c).nonzero().squeeze(1) for c in range(known.n_classes)]
    generator = torch.Generator().manual_seed(0)
    for (word, along), one, other in product(ways.items(), range(known.n_classes), range(known.n_classes)):
        first, second = members[one], members[other]
        if one != other and len(first) and len(second):
            partners = second[torch.randint(len(second), (len(first),), generator=generator).to(second.device)]
            images.append(_joined(known.images[first], known.images[partners], along))
            labels.append(torch.full_like(first, len(names)))
            names.append(f"{known.class_names[one]} {word} {known.class_names[other]}")
    return ImageSet(torch.cat(images), torch.cat(labels), tuple(names))


def _joined(first: Tensor, second: Tensor, along: int) -> Tensor:
    """The first halves of some images (n, c, h, w) and the second halves of others, along a dimension."""
    half = first.shape[along] // 2
    return torch.cat([first.narrow(along, 0, half), second.narrow(along, half, second.shape[along] - half)], dim=along)
