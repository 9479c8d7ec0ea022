"""Put items into an order that depends on their content alone, and find copies."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Ints
from medi.data.items import Items

DIGEST = 16
"""Bytes of a digest; items with the same digest are the same."""


@dataclass(frozen=True)
class LabelledItems:
    """Labelled items by their content, to know copies of them.

    Attributes:
        digests: (m,) of different items, in order.
        classes: (m,) their classes; -1 where copies are in several.

    >>> labelled = LabelledItems.of(Items(np.array([[1.0], [2.0], [2.0]]), np.array([0, 0, 1]), ("a", "b")))
    >>> labelled.find(np.array([[3.0], [1.0], [2.0]]))
    array([-1,  0, -1])
    """

    digests: NDArray[np.bytes_]
    classes: Ints

    @classmethod
    def of(cls, known: Items) -> LabelledItems:
        """The items of known classes."""
        digests, first, place = np.unique(_digests(known.values), return_index=True, return_inverse=True)
        classes = known.labels[first]
        classes[place[known.labels != classes[place]]] = -1
        return cls(digests, classes)

    def find(self, items: NDArray[Any]) -> Ints:
        """The class (n,) of the labelled item that each item is a copy of; -1 for none."""
        if not len(self.digests):
            return np.full(len(items), -1)
        digests = _digests(items)
        at = np.minimum(np.searchsorted(self.digests, digests), len(self.digests) - 1)
        return np.where(self.digests[at] == digests, self.classes[at], -1)


NO_LABELLED = LabelledItems(np.zeros(0, f"S{DIGEST}"), np.zeros(0, np.int64))


def unique_items(items: NDArray[Any]) -> tuple[NDArray[Any], Ints, Ints]:
    """Items (m, …) without copies, in an order that depends on their content alone.

    Returns:
        The n different items, how many copies (n,) there are of each, and the place (m,) of every item among them.

    >>> items, copies, place = unique_items(np.array([[1.0], [2.0], [1.0]]))
    >>> len(items), sorted(copies.tolist()), bool(place[0] == place[2])
    (2, [1, 2], True)
    """
    _, first, place, copies = np.unique(_digests(items), return_index=True, return_inverse=True, return_counts=True)
    return items[first], copies, place


def in_order(known: Items) -> Items:
    """Known items class by class, inside a class in an order that depends on their content alone.

    >>> in_order(Items(np.array([[1.0], [2.0], [3.0]]), np.array([1, 0, 1]), ("a", "b"))).labels
    array([0, 1, 1])
    """
    return known.where(np.lexsort((_digests(known.values), known.labels)))


def _digests(items: NDArray[Any]) -> NDArray[np.bytes_]:
    """A digest (m,) of the bytes of each item."""
    return np.array([blake2b(item.tobytes(), digest_size=DIGEST).digest() for item in items], f"S{DIGEST}")
