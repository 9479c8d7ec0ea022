"""How probable it is that a group is pure: that all its items are of one class. Rehearsals set it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from medi.core.arrays import Floats, Ints
from medi.grouping.engine import GUESS
from medi.grouping.trust import SURE, log_odds, logistic

USUAL_PURITY, PURITY_HELD = (1.6, -1.85, 1.5), (5.0, 5.0, 5.0)
"""Usual weights, which known classes of five sets suggested, and how strongly they are held to."""


@dataclass(frozen=True)
class Purity:
    """A logistic regression.

    Attributes:
        weights: Of the log odds of a group's mean confidence, of the logarithm of its size, and of 1.
        most: Largest probability that is ever given.

    >>> Purity()(confidence=np.array([0.95, 0.95, 0.6]), sizes=np.array([4, 40, 1])).round(2)
    array([0.97, 0.35, 1.  ])
    """

    weights: tuple[float, ...] = USUAL_PURITY
    most: float = SURE

    def __call__(self, confidence: Floats, sizes: Ints) -> Floats:
        """Probability (k,) that groups are pure; a single item is."""
        odds = _clues(confidence, sizes) @ np.array(self.weights)
        return np.where(sizes > 1, np.clip(expit(odds), 1 - SURE, self.most), 1.0)


NO_REHEARSAL = Purity(most=GUESS)
"""Where nothing could be rehearsed."""


def fit_purity(confidence: Floats, sizes: Ints, pure: NDArray[np.bool_]) -> Purity:
    """The weights under which what rehearsals found of groups (k,) is likeliest.

    >>> purity = fit_purity(np.full(50, 0.9), sizes=np.full(50, 4), pure=np.arange(50) < 25)
    >>> purity(np.array([0.9]), np.array([4])).round(1)  # half of such groups were pure
    array([0.6])
    """
    several = sizes > 1
    return Purity(logistic(_clues(confidence, sizes)[several], pure[several], USUAL_PURITY, PURITY_HELD)[1])


def _clues(confidence: Floats, sizes: Ints) -> Floats:
    return np.stack([log_odds(confidence, 1e-2), np.log(np.maximum(sizes, 1)), np.ones(len(sizes))], 1)
