"""How further items are recognised: probabilities of each group, each known class and none of these.

Rehearsals set two numbers: how much the evidence counts, and what "none of these" starts with. They also give the
trade-off: for every share of belonging items that may be called none, the lead over "none" that an item must have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from medi.cluster.class_model import Floats, log_total
from medi.cluster.posterior import Ints
from medi.discovery.trust import SURE

NONE_RATE = 0.05
"""Share of the items of groups and known classes that may be called none, unless another is asked for."""
POINTS = 101
"""Points of the curve of the trade-off."""


@dataclass(frozen=True)
class Recognition:
    """What rehearsals say of recognising.

    Attributes:
        power: Of the evidence.
        none: Log odds that "none of these" gets beside its evidence.
        leads: (`POINTS`,) quantiles of the lead of the best place over "none" among items that belong somewhere.
        strangers: The same among items that belong nowhere; empty where there were none.
        most: Largest probability that is ever given.
    """

    power: float
    none: float
    leads: Floats
    strangers: Floats
    most: float = SURE

    def probabilities(self, scores: Floats) -> Floats:
        """Probability (n, places + 1) of each place and, last, of none; scores as `Places.all_scores` gives them."""
        raised = self.power * scores
        raised[:, -1] += self.none
        return np.asarray(np.exp(raised - log_total(raised)))

    def is_none(self, scores: Floats, rate: float) -> np.ndarray:
        """Which items (n,) are called none where so large a share of belonging items may be."""
        return lead(scores) < self.threshold(rate)

    def threshold(self, rate: float) -> float:
        """The lead below which an item is called none; nothing is where no lead is known."""
        if rate <= 0 or not len(self.leads):
            return -np.inf
        return float(np.interp(rate, np.linspace(0, 1, len(self.leads)), self.leads))

    def found_out(self, rate: float) -> float | None:
        """Share of strangers that were called none in rehearsals under a rate."""
        return float((self.strangers < self.threshold(rate)).mean()) if len(self.strangers) else None


def lead(scores: Floats) -> Floats:
    """How far (n,) the best place is ahead of "none"."""
    if scores.shape[1] < 2:
        return np.full(len(scores), -np.inf)
    return np.asarray(scores[:, :-1].max(1) - scores[:, -1])


def fit_recognition(rehearsed: Iterable[tuple[Floats, Ints]]) -> Recognition:
    """The power and the odds of none under which the right places are likeliest.

    Args:
        rehearsed: Scores (f, places + 1) of the further items of a bag, none last, and the right place (f,) of each.
    """
    bags = [(scores, truth) for scores, truth in rehearsed if len(truth)]
    width = max(scores.shape[1] for scores, _ in bags)
    every = np.concatenate([_padded(scores, width) for scores, _ in bags])
    truth = np.concatenate([np.where(right == scores.shape[1] - 1, width - 1, right) for scores, right in bags])
    strange = truth == width - 1

    def loss(numbers: Floats) -> float:
        raised = np.exp(numbers[0]) * every
        raised[:, -1] += numbers[1]
        right = raised[np.arange(len(truth)), truth]
        return float((log_total(raised)[:, 0] - right).sum() + (numbers[0] - np.log(0.25)) ** 2 + 0.1 * numbers[1] ** 2)

    best = minimize(loss, np.array([np.log(0.25), 0.0]), method="Nelder-Mead", options={"maxiter": 120})
    return Recognition(
        float(np.exp(best.x[0])), float(best.x[1]), curve(lead(every[~strange])), curve(lead(every[strange]))
    )


def curve(leads: Floats) -> Floats:
    """`POINTS` quantiles, or nothing of nothing."""
    finite = leads[np.isfinite(leads)]
    return np.quantile(finite, np.linspace(0, 1, POINTS)) if len(finite) else np.zeros(0)


def _padded(scores: Floats, width: int) -> Floats:
    """Scores (n, width), with impossible places before the last column."""
    blank = np.full((len(scores), width - scores.shape[1]), -np.inf)
    return np.concatenate([scores[:, :-1], blank, scores[:, -1:]], 1)
