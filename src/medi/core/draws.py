"""Random draws that follow from a seed alone: the same numbers as torch draws on a CPU, without torch.

Both use the Mersenne Twister. So a choice that a seed decided before stays what it was, and a torch room and a room
without torch can draw the same items.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Draws:
    """A stream of random numbers."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.MT19937()
        self._bits._legacy_seeding(seed % 2**32)  # as torch seeds it, and numpy.random.seed

    def permutation(self, n: int) -> NDArray[np.int64]:
        """The numbers 0 to n - 1 in random order, as `torch.randperm` gives them."""
        order = np.arange(n)
        places = self._bits.random_raw(max(n - 1, 0)) % np.arange(n, 1, -1, dtype=np.uint64)
        for i, ahead in enumerate(places.tolist()):
            order[i], order[i + ahead] = order[i + ahead], order[i]
        return order

    def uniform(self, n: int) -> NDArray[np.float64]:
        """So many numbers from 0 to 1, as `torch.rand` gives them."""
        return np.asarray((self._bits.random_raw(n) & np.uint64(2**24 - 1)) / 2.0**24)
