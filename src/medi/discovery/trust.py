"""From what the posterior says of a line to the probability that the line is right, learnt in rehearsals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from medi.cluster.class_model import Floats

TEMPERATURES = np.array([0.1, 0.2, 0.35, 0.6, 1.0])
"""Powers of the evidence that are tried: the evidence of one item counts for less than the model thinks."""
SURE = 0.99
"""No line is surer: rehearsals are too few to tell 99 of 100 from all."""
GUESS = 0.5
"""Without rehearsals no line is surer."""
PENALTY, USUAL = 8.0, (0.35, 0.35, 0.0)
"""How strongly weights are held to usual ones, which known classes of four sets suggested."""


@dataclass(frozen=True)
class Trust:
    """A logistic regression on two clues and a constant.

    Attributes:
        temperature: Power of the evidence in the second clue, one of `TEMPERATURES`.
        weights: Of the share of groupings drawn from the posterior in which the line is right, of the probability
            of an item's own place given all others, both as log odds, and of 1.
        most: Largest probability that is ever given.
    """

    temperature: float
    weights: tuple[float, float, float]
    most: float = SURE

    def __call__(self, sampled: Floats, own: Floats) -> Floats:
        """Probability (n,) that each line is right."""
        odds = _clues(sampled, own) @ np.array(self.weights)
        return np.asarray(np.clip(1 / (1 + np.exp(-odds)), 1 - SURE, self.most))


def untested() -> Trust:
    """Where nothing could be rehearsed: half of the posterior's log odds, and never above a guess."""
    return Trust(0.2, (0.5, 0.0, 0.0), GUESS)


def fit_trust(sampled: Floats, own: Floats, right: np.ndarray) -> Trust:
    """The weights under which rehearsed lines are likeliest.

    Args:
        sampled: (n,) the first clue.
        own: (n, temperatures) the second.
        right: (n,) whether each line was right.
    """
    fits = []
    for place, temperature in enumerate(TEMPERATURES):
        loss, weights = _fit(_clues(sampled, own[:, place]), right)
        fits.append((loss, temperature, weights))
    _, temperature, weights = min(fits, key=lambda fit: fit[0])
    return Trust(float(temperature), weights)


def _fit(clues: Floats, right: np.ndarray) -> tuple[float, tuple[float, float, float]]:
    sign, start = np.where(right, 1.0, -1.0), np.array(USUAL)

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = sign * (clues @ weights)
        away = weights - start
        value = np.logaddexp(0, -margin).sum() + PENALTY * (away @ away)
        return float(value), clues.T @ (-sign / (1 + np.exp(margin))) + 2 * PENALTY * away

    found = minimize(loss, start, jac=True)
    a, b, c = found.x.tolist()
    return float(found.fun), (a, b, c)


def _clues(sampled: Floats, own: Floats) -> Floats:
    return np.stack([_log_odds(sampled, 1e-4), _log_odds(own, 1e-3), np.ones(len(sampled))], 1)


def _log_odds(probability: Floats, least: float) -> Floats:
    clipped = np.clip(probability, least, 1 - least)
    return np.asarray(np.log(clipped / (1 - clipped)))
