"""What a person said about items of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Links:
    """What a person said about items of the pool, numbered as lines of clusters.csv.

    Attributes:
        together: Pairs that belong to one class.
        apart: Pairs that belong to different classes.
        known: The known class that an item is, by item.
        aside: Items that are in no group.
    """

    together: tuple[tuple[int, int], ...] = ()
    apart: tuple[tuple[int, int], ...] = ()
    known: Mapping[int, str] = field(default_factory=dict)
    aside: frozenset[int] = frozenset()
