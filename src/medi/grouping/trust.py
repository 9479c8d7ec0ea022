"""From what the posterior says to the probability that a line is right or a group pure, learnt in rehearsals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from medi.core.arrays import Floats, Ints
from medi.grouping.engine import GUESS

TEMPERATURES = np.array([0.1, 0.2, 0.35, 0.6, 1.0])
"""Powers of the evidence that are tried: the evidence of one item counts for less than the model thinks."""
SURE = 0.99
"""No line is surer: rehearsals are too few to tell 99 of 100 from all."""
TRUST_HELD, USUAL_TRUST = (8.0, 8.0, 8.0, 20.0, 20.0), (0.35, 0.35, 0.0, 0.2, -0.3)
"""How strongly weights are held to usual ones, which known classes of five sets suggested."""
USUAL_PLACES = 8
"""Groups and known classes of an average bag."""
USUAL_PURITY, PURITY_HELD = (1.6, -1.85, 1.5), (5.0, 5.0, 5.0)
"""Usual weights, which known classes of five sets suggested, and how strongly they are held to."""


@dataclass(frozen=True)
class Trust:
    """A logistic regression on clues about a line and about its pool.

    Attributes:
        temperature: Power of the evidence in the second clue, one of `TEMPERATURES`.
        weights: Of the share of groupings drawn from the posterior in which the line is right, of the probability
            of an item's own place given all others, both as log odds; of 1, of the mean of the first over the pool,
            and of the logarithm of how many groups and known classes there are, next to the usual number.
        most: Largest probability that is ever given.
    """

    temperature: float
    weights: tuple[float, ...]
    most: float = SURE

    def __call__(self, sampled: Floats, own: Floats, places: int) -> Floats:
        """Probability (n,) that each line of a pool with so many groups and known classes is right."""
        odds = clues(sampled, own, places)[:, : len(self.weights)] @ np.array(self.weights)
        return np.asarray(np.clip(expit(odds), 1 - SURE, self.most))


UNTESTED = Trust(0.2, (0.5, 0.0, 0.0), GUESS)
"""Where nothing could be rehearsed: half of the posterior's log odds, and never above a guess."""


@dataclass(frozen=True)
class RehearsedLines:
    """Lines of a bag: both clues, (n,) and (n, temperatures), the places in the bag, and whether each is right."""

    sampled: Floats
    own: Floats
    places: int
    right: NDArray[np.bool_]


def fit_trust(bags: Sequence[RehearsedLines]) -> Trust:
    """The weights under which rehearsed lines are likeliest."""
    right = np.concatenate([bag.right for bag in bags])
    fits = []
    for place, temperature in enumerate(TEMPERATURES):
        every = np.concatenate([clues(bag.sampled, bag.own[:, place], bag.places) for bag in bags])
        loss, weights = logistic(every, right, USUAL_TRUST, TRUST_HELD)
        fits.append((loss, temperature, weights))
    _, temperature, weights = min(fits, key=lambda fit: fit[0])
    return Trust(float(temperature), weights)


def logistic(
    clues: Floats, right: NDArray[np.bool_], usual: Sequence[float], penalty: Sequence[float]
) -> tuple[float, tuple[float, ...]]:
    """The loss and the weights (d,) of a logistic regression of clues (n, d), held to usual weights."""
    sign, start, strength = np.where(right, 1.0, -1.0), np.array(usual), np.array(penalty)

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = sign * (clues @ weights)
        away = weights - start
        value = np.logaddexp(0, -margin).sum() + strength @ (away * away)
        return float(value), clues.T @ (-sign * expit(-margin)) + 2 * strength * away

    found = minimize(loss, start, jac=True)
    return float(found.fun), tuple(found.x.tolist())


def clues(sampled: Floats, own: Floats, places: int) -> Floats:
    """What lines (n,) of a pool with so many places are judged by: one column for each weight."""
    first, ones = log_odds(sampled, 1e-4), np.ones(len(sampled))
    mean = first.mean() if len(first) else 0.0
    return np.stack([first, log_odds(own, 1e-3), ones, mean * ones, np.log((places + 1) / USUAL_PLACES) * ones], 1)


def log_odds(probability: Floats, least: float) -> Floats:
    """Log odds of probabilities, none of which counts as nearer than `least` to 0 or 1."""
    clipped = np.clip(probability, least, 1 - least)
    return np.asarray(np.log(clipped / (1 - clipped)))


@dataclass(frozen=True)
class Purity:
    """How probable it is that a group is pure, that all its items are of one class: a logistic regression.

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
