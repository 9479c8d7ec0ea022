"""What a class is: a place, and items scattered about it equally in all directions.

Points are centred and scaled so that their mean squared length is 1. The places of classes have the part `share` of
that, the scatter inside a class the rest. The evidence of a group says how much better its items fit one common place
of their own than the middle of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from medi.core.arrays import Floats
from medi.grouping.engine import Anchors


@dataclass(frozen=True)
class ClassModel:
    """How items of one class relate; each field may be an array, to try many settings at once.

    Attributes:
        share: Mean inner product of two items of one class, 0 to 1.
        dimensions: How many independent directions the points have: how much each inner product counts.
        log_new: Logarithm of the prior odds of one group more.
        evenness: Above 0; the larger, the less a large group attracts further items.
    """

    share: Any
    dimensions: Any
    log_new: Any = -4.0
    log_alone: Any = -4.0
    evenness: float = 3.0

    def facts(self) -> dict[str, float]:
        """What makes it again."""
        return {name: float(getattr(self, name)) for name in ("share", "dimensions", "evenness")}

    def evidence(self, n: Any, squares: Any) -> Any:
        """Logarithm of the evidence that n items with a vector sum of that squared length are of one class."""
        odds = self.share / (1 - self.share)
        fit = squares * odds / ((1 - self.share) * (1 + n * odds))
        return self.dimensions / 2 * (fit - np.log1p(n * odds))

    def log_prior(self, n: Any) -> Any:
        """Of a group of n items: `log_new`, and the ways in which the items may have come together."""
        return self.log_new + gammaln(n + self.evenness) - gammaln(1 + self.evenness)


def log_total(weights: Floats) -> Floats:
    """Logarithm of the sum along the last axis, which stays; scipy's takes ten times as long on small arrays."""
    top = weights.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(weights - top).sum(-1, keepdims=True)))


@dataclass(frozen=True)
class Terms:
    """On what terms items go to places.

    Attributes:
        anchors: The known classes that they may belong to, as far from the middle as the mean of items that nothing
            was fitted to would be; none where the pool holds nothing known.
        model: What a class is, with the rate of lone items in it.
        log_rate: Of an item in a known class, beside the evidence.
        singles: Whether a single item counts as a group; otherwise groups keep two items, and items may be alone.
    """

    anchors: Anchors
    model: ClassModel
    log_rate: float
    singles: bool
