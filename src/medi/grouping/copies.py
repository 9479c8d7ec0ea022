"""Put items into an order that depends on their content alone, and find copies."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Floats, Ints
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
        at = _find(self.digests, items)
        return np.where(at >= 0, np.append(self.classes, -1)[at], -1)


@dataclass(frozen=True)
class Remembered:
    """What was said of items that were there already, labelled or in the pool, to say the same of copies of them.

    Attributes:
        digests: (m,) of different items, in order.
        places: (m, 2) the likeliest place and the next one: groups first, then known classes, then none.
        chances: (m, 2) how probable they are.

    >>> labelled = LabelledItems.of(Items(np.array([[1.0]]), np.array([0]), ("a",)))
    >>> chances = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])  # one group, one known class, none
    >>> remembered = Remembered.of(labelled, 1, np.array([[1.0], [5.0]]), np.array([2, 0]), chances)
    >>> at = remembered.find(np.array([[5.0], [1.0], [9.0]]))
    >>> remembered.places[at[:2]].tolist(), remembered.chances[at[:2]].tolist(), int(at[2])
    ([[0, 1], [1, 2]], [[0.6, 0.3], [1.0, 0.0]], -1)
    """

    digests: NDArray[np.bytes_]
    places: Ints
    chances: Floats

    @classmethod
    def of(cls, labelled: LabelledItems, classes: int, pool: NDArray[Any], places: Ints, chances: Floats) -> Remembered:
        """Labelled items are known for certain; of items of the pool is said what was said of them.

        Args:
            labelled: Items of known classes.
            classes: How many of these there are.
            pool: (n, …) all different.
            places: (n,) of each of them.
            chances: (n, groups + known classes + 1) of every place.
        """
        none, lines, certain = chances.shape[1] - 1, np.arange(len(pool)), labelled.classes >= 0
        others = chances.copy()
        others[lines, places] = -1.0
        both = np.stack([places, others.argmax(1)], 1)
        known = labelled.classes[certain] + none - classes
        digests = np.concatenate([labelled.digests[certain], _digests(pool)])
        digests, first = np.unique(digests, return_index=True)  # labelled items come first
        return cls(
            digests,
            np.concatenate([np.stack([known, np.full(len(known), none)], 1), both])[first],
            np.concatenate([np.tile([1.0, 0.0], (len(known), 1)), chances[lines[:, None], both]])[first],
        )

    def find(self, items: NDArray[Any]) -> Ints:
        """Which of the items (n,) is a copy of each item; -1 for none."""
        return _find(self.digests, items)


NOTHING_REMEMBERED = Remembered(np.zeros(0, f"S{DIGEST}"), np.zeros((0, 2), np.int64), np.zeros((0, 2)))


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


def _find(digests: NDArray[np.bytes_], items: NDArray[Any]) -> Ints:
    """The place (n,) of the digest of each item among digests that are in order; -1 where it is not there."""
    if not len(digests):
        return np.full(len(items), -1)
    wanted = _digests(items)
    at = np.minimum(np.searchsorted(digests, wanted), len(digests) - 1)
    return np.where(digests[at] == wanted, at, -1)


def _digests(items: NDArray[Any]) -> NDArray[np.bytes_]:
    """A digest (m,) of the bytes of each item."""
    return np.array([blake2b(item.tobytes(), digest_size=DIGEST).digest() for item in items], f"S{DIGEST}")
