"""`ImageSet`: images of labelled classes as one uint8 tensor, wherever the work is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

import torch
from torch import Tensor

from medi.data.items import check_labels


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
        check_labels(len(self.images), self.labels, self.class_names)

    @classmethod
    def unlabelled(cls, images: Tensor, class_names: Sequence[str] = ()) -> ImageSet:
        """Images of which nothing is known."""
        return cls(images, torch.full((len(images),), -1, device=images.device), tuple(class_names))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """Number of classes, whether or not every one of them has images."""
        return len(self.class_names)

    def labelled(self) -> Tensor:
        """Indices of the items whose class is known."""
        return (self.labels >= 0).nonzero().squeeze(1)

    def fingerprint(self) -> str:
        """A short digest of images, labels and names: the same on every device, cheap for large sets."""
        digest = sha256("\n".join(self.class_names).encode())
        items = self.images.flatten(1)
        if items.is_floating_point():
            items = items.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[items.element_size()])
        # Every place has a weight of its own, so that turned or shuffled pixels are another image.
        weights = torch.randint(1, 2**31, (items.shape[1],), generator=torch.Generator().manual_seed(0))
        weights = weights.to(items.device)
        sums = [(part.long() * weights).sum(1) for part in torch.split(items, 1024)]  # whole numbers are exact
        for part in (torch.cat(sums), self.labels):
            digest.update(part.cpu().numpy().tobytes())
        return digest.hexdigest()[:16]

    def to(self, device: torch.device | str) -> ImageSet:
        """The same set on another device."""
        return replace(
            self,
            images=self.images.to(device),
            labels=self.labels.to(device),
            attributes={name: values.to(device) for name, values in self.attributes.items()},
        )

    def with_rotations(self) -> ImageSet:
        """Four times the classes: each turned by 90, 180 and 270 degrees counts as three more.

        The copies of class c are c + n_classes, c + 2 n_classes and c + 3 n_classes.
        """
        turned = [torch.rot90(self.images, turns, (-2, -1)) for turns in range(4)]
        labels = [torch.where(self.labels >= 0, self.labels + turns * self.n_classes, -1) for turns in range(4)]
        names = [f"{name} turned {90 * turns}°" if turns else name for turns in range(4) for name in self.class_names]
        attributes = {name: values.repeat(4) for name, values in self.attributes.items()}
        return ImageSet(torch.cat(turned), torch.cat(labels), tuple(names), attributes)

    def where(self, keep: Tensor) -> ImageSet:
        """The items that are kept (n,), with the same classes."""
        attributes = {name: values[keep] for name, values in self.attributes.items()}
        return ImageSet(self.images[keep], self.labels[keep], self.class_names, attributes)

    def of_classes(self, classes: Sequence[int]) -> ImageSet:
        """The items of the given classes, renumbered 0, 1, … in the order given; nothing is copied if that is all."""
        if list(classes) == list(range(self.n_classes)) and bool((self.labels >= 0).all()):
            return self
        number = torch.full((self.n_classes,), -1, dtype=torch.int64, device=self.labels.device)
        number[list(classes)] = torch.arange(len(classes), device=self.labels.device)
        labels = torch.where(self.labels >= 0, number[self.labels], -1)
        names = tuple(self.class_names[c] for c in classes)
        return replace(self, labels=labels, class_names=names).where(labels >= 0)
