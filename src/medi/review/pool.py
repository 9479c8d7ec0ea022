"""What a review needs of the saved pool: to group it again under what a person said.

`medi.discovery.pool.SavedPool` is that; a review of a discovery without one works too, but learns nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from medi.discovery.links import Links
from medi.discovery.result import Kind

__all__ = ["Links", "Pool", "Regrouped", "load_pool"]

POOL = "pool.safetensors"


class Regrouped(Protocol):
    """A grouping of the pool under links, and samples of the posterior that it comes from."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Of each item."""

    @property
    def labels(self) -> tuple[int, ...]:
        """Group of each item; -1 where it is not novel."""

    @property
    def known(self) -> tuple[str, ...]:
        """The known class of each item; empty where it is none."""

    @property
    def confidence(self) -> tuple[float, ...]:
        """How probable it is that an item's place is right."""

    @property
    def samples(self) -> NDArray[np.int64]:
        """(s, n): in each sample, items with equal numbers are together."""


class Pool(Protocol):
    """A pool of n items that can be grouped again."""

    @property
    def names(self) -> tuple[str, ...]:
        """The known classes that it was grouped with."""

    def __len__(self) -> int: ...

    def regroup(self, links: Links, start: NDArray[np.int64] | None = None) -> Regrouped:
        """Group again under links; `start` has the labels that are on the screen, -1 for none."""

    def split(self, items: Sequence[int], parts: int) -> NDArray[np.int64]:
        """The part of each of some items, 0 to parts - 1."""

    def order(self) -> NDArray[np.int64]:
        """All items, so that neighbours are alike."""

    def positions(self) -> NDArray[np.float64]:
        """(n, 2): places on a map, from 0 to 1."""


def load_pool(model: Path) -> Pool | None:
    """The pool saved in a folder model/; None where there is none."""
    if not (model / POOL).is_file():
        return None
    from medi.discovery.pool import SavedPool  # takes seconds to import, and much of a review needs no pool

    return SavedPool.load(model)
