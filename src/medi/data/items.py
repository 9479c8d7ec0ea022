"""`Items`: labelled vectors or images as arrays, on the way of a photo, where there is no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.core.errors import InputError

CHUNK = 4096
"""Items that are worked on at a time: what is made of them often takes more memory than they do."""


@dataclass(frozen=True)
class Items:
    """Items and the class of each."""

    values: NDArray[Any]  # (n, features) floats, or (n, channels, height, width) uint8
    labels: NDArray[np.int64]  # (n,) int64, an index into `class_names`; -1 marks an item whose class is not known
    class_names: tuple[str, ...]  # one name a class

    def __post_init__(self) -> None:
        check_labels(len(self.values), self.labels, self.class_names)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """Number of classes, whether or not every one of them has items."""
        return len(self.class_names)

    @property
    def are_images(self) -> bool:
        """Whether they are images; otherwise they are vectors."""
        return self.values.ndim == 4

    def counts(self) -> NDArray[np.int64]:
        """(classes,) items of each class."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.n_classes)

    def where(self, keep: NDArray[Any]) -> Items:
        """The items that are kept, by a mask (n,) or by indices, with the same classes."""
        return Items(self.values[keep], self.labels[keep], self.class_names)

    def of_classes(self, classes: Sequence[int]) -> Items:
        """The items of the given classes, renumbered 0, 1, … in the order given; nothing is copied if that is all."""
        if list(classes) == list(range(self.n_classes)) and bool((self.labels >= 0).all()):
            return self
        number = np.full(self.n_classes + 1, -1)  # the last place is that of the label -1
        number[list(classes)] = np.arange(len(classes))
        labels = number[self.labels]
        keep = labels >= 0
        return Items(self.values[keep], labels[keep], tuple(self.class_names[c] for c in classes))


def check_labels(count: int, labels: Any, class_names: Sequence[str]) -> None:
    """Refuse labels, an array or a tensor, that are not one for each of so many items, or of a class without a name."""
    if count != len(labels):
        raise InputError(f"{count} items but {len(labels)} labels: there must be one each.")
    if len(labels) and int(labels.max()) >= len(class_names):
        raise InputError(
            f"label {int(labels.max())} but only {len(class_names)} class names: labels are indices into class_names."
        )


def chunks(items: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Items (n, …), `CHUNK` at a time; of none, one empty part."""
    for start in range(0, max(1, len(items)), CHUNK):
        yield items[start : start + CHUNK]
