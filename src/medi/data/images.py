"""`ImageSet`: images of labelled classes as one uint8 tensor, wherever the work is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from medi.errors import InputError


@dataclass(frozen=True)
class ImageSet:
    """Images and the class of each.

    Attributes:
        images: (n, channels, height, width) uint8, or (n, features) float for plain vectors.
        labels: (n,) int64, an index into `class_names`; -1 marks an item whose class is not known.
        class_names: One name a class.
        attributes: Further facts of each item, (n,) each; only generated sets have them.
    """

    images: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    attributes: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.images) != len(self.labels):
            raise InputError(f"{len(self.images)} images but {len(self.labels)} labels: there must be one each.")
        if len(self.labels) and int(self.labels.max()) >= len(self.class_names):
            raise InputError(
                f"label {int(self.labels.max())} but only {len(self.class_names)} class names: "
                "labels are indices into class_names."
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """Number of classes, whether or not every one of them has images."""
        return len(self.class_names)

    def to(self, device: torch.device | str) -> ImageSet:
        """The same set on another device."""
        return replace(
            self,
            images=self.images.to(device),
            labels=self.labels.to(device),
            attributes={name: values.to(device) for name, values in self.attributes.items()},
        )

    def of_classes(self, classes: Sequence[int]) -> ImageSet:
        """The items of the given classes, renumbered 0, 1, … in the order given."""
        number = torch.full((self.n_classes,), -1, dtype=torch.int64, device=self.labels.device)
        number[list(classes)] = torch.arange(len(classes), device=self.labels.device)
        labels = number[self.labels]
        keep = labels >= 0
        return ImageSet(
            self.images[keep],
            labels[keep],
            tuple(self.class_names[c] for c in classes),
            {name: values[keep] for name, values in self.attributes.items()},
        )
