"""Make features fit for Euclidean clustering: power transform, centring, unit length.

A query must be prepared by statistics that were there before it, those of known data or of the observations. So the
centre is computed once and then handed to every later call:

    >>> prepare = Preparation(centre="observations", power=0.5, unit=True)
    >>> centre = prepare.fit(observations)
    >>> bag, later = prepare.apply(observations, centre), prepare.apply(queries, centre)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor
from torch.nn.functional import normalize

from medi.errors import InputError, unknown_name

Centre = Literal["none", "known", "observations"]


@dataclass(frozen=True)
class Preparation:
    """How features are prepared; the order is power, centre, unit.

    Attributes:
        centre: what is subtracted: nothing, the mean of the known features, or that of the observations in the bag.
        power: exponent on the absolute values, signs kept; 1 leaves them, 0.5 tames heavy-tailed non-negative features.
        unit: whether vectors are scaled to length 1.
    """

    centre: Centre = "none"
    power: float = 1.0
    unit: bool = False

    def __post_init__(self) -> None:
        if self.centre not in get_args(Centre):
            raise unknown_name("centre", self.centre, get_args(Centre))
        if not self.power > 0:
            raise InputError(f"power {self.power}: choose a number above 0, 1 for no transform.")

    def mean(self, features: Tensor) -> Tensor:
        """Mean of features (..., n, d) after the power transform, (..., 1, d): what to store of the known features."""
        return self._powered(features).mean(-2, keepdim=True)

    def fit(self, observations: Tensor, known_mean: Tensor | None = None) -> Tensor | None:
        """The centre that belongs to a bag of observations, for `apply` to the bag and to each later query.

        Args:
            observations: (episodes, n, d).
            known_mean: `mean` of the known features, (1, d) or broadcastable; needed for centre "known".

        Returns:
            (episodes, 1, d) or the known mean, None without centring.
        """
        if self.centre == "none":
            return None
        if self.centre == "observations":
            return self.mean(observations)
        if known_mean is None:
            raise InputError(
                "centre 'known' needs the mean of the known features: pass known_mean, or centre by observations."
            )
        return known_mean

    def apply(self, features: Tensor, centre: Tensor | None = None) -> Tensor:
        """Prepare features (..., n, d) with the centre that `fit` gave; same shape, each item by itself."""
        if centre is None and self.centre != "none":
            raise InputError(f"centre '{self.centre}' was asked for but none was passed: pass what fit() returned.")
        features = self._powered(features)
        if centre is not None:
            features = features - centre
        return normalize(features, dim=-1) if self.unit else features

    def _powered(self, features: Tensor) -> Tensor:
        return features if self.power == 1 else features.sign() * features.abs().pow(self.power)
