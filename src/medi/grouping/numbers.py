"""Probabilities of the number of groups: their middle, their interval, and how far rehearsals say that they are off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medi.core.arrays import Floats

LEVEL = 0.9
"""Probability of the interval for the number of groups."""
LEAST_SPREAD = 1e-3
"""A smaller spread is none: whole numbers lie further apart."""


@dataclass(frozen=True)
class NumberError:
    """How far the number of groups is off, in logarithms.

    Attributes:
        shift: How much larger the true number is in the middle.
        spread: How far it is from there.
    """

    shift: float = 0.0
    spread: float = 0.0

    def blur(self, numbers: Floats) -> Floats:
        """Probabilities (k + 1,) of the number of groups with this error added; 0 groups stay 0 groups."""
        if self.spread < LEAST_SPREAD or len(numbers) < 3:
            return numbers
        log = np.log(np.arange(1, len(numbers)) + 0.0)
        # Large numbers lie closer together in logarithms: without `- log` the middle would move up.
        kernel = -0.5 * np.square((log[None] - log[:, None] - self.shift) / self.spread) - log[None]
        kernel = np.exp(kernel - kernel.max(1, keepdims=True))
        kernel /= kernel.sum(1, keepdims=True)
        return np.concatenate([numbers[:1], numbers[1:] @ kernel])


EXACT = NumberError()
"""Where nothing says how far the number is off."""


def median(numbers: Floats) -> int:
    """The smallest number that is at least as probable to be enough as not."""
    return quantile(numbers, 0.5)


def interval(numbers: Floats) -> tuple[int, int]:
    """The ends of the interval that holds the number with probability `LEVEL`."""
    return quantile(numbers, (1 - LEVEL) / 2), quantile(numbers, (1 + LEVEL) / 2)


def quantile(numbers: Floats, level: float) -> int:
    """The smallest number of groups such that so much probability lies at it or below."""
    return int(np.searchsorted(np.cumsum(numbers) / numbers.sum(), level - 1e-12))
