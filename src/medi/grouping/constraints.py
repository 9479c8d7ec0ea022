"""What a person said about items of a pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from scipy.cluster.hierarchy import DisjointSet

from medi.core.arrays import Ints

Known = TypeVar("Known")


@dataclass(frozen=True)
class Constraints(Generic[Known]):
    """What a person said about items, by their numbers.

    Attributes:
        together: Pairs that belong to one class.
        apart: Pairs that belong to different classes.
        known: The known class that an item is, its number or name, by item.
        aside: Items that are in no group.

    >>> said = Constraints(together=((0, 1),), known={2: 5})
    >>> said.of(np.array([0, 0, 1])).known  # lines 0 and 1 are copies; line 2 is item 1
    {1: 5}
    """

    together: tuple[tuple[int, int], ...] = ()
    apart: tuple[tuple[int, int], ...] = ()
    known: Mapping[int, Known] = field(default_factory=dict)
    aside: frozenset[int] = frozenset()

    def of(self, place: Ints) -> Constraints[Known]:
        """The same about the places (m,) of items: what is said of one item is said of its copies."""
        at = place.tolist()
        pairs = ((at[a], at[b]) for a, b in self.apart)
        return Constraints(
            tuple((at[a], at[b]) for a, b in self.together),
            tuple((a, b) for a, b in pairs if a != b),
            {at[item]: c for item, c in self.known.items()},
            frozenset(at[item] for item in self.aside) - {at[item] for item in self.known},
        )


Links = Constraints[str]
"""What a person said about lines of clusters.csv: known classes are named."""


def components(items: Sequence[int], together: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
    """The component of each of some items under pairs that belong together, from 0, and how many items each has.

    >>> components([3, 4, 5, 6], [(3, 5)])
    (array([0, 1, 0, 2]), array([2, 1, 1]))
    """
    sets = DisjointSet(items)
    for a, b in together:
        if a in sets and b in sets:
            sets.merge(a, b)
    _, member, sizes = np.unique([sets[item] for item in items], return_inverse=True, return_counts=True)
    return member, sizes
