"""Where an item may be if its line is wrong: what is left of the probability, shared out among all other places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from medi.core.arrays import Floats, Ints
from medi.grouping.class_model import log_total
from medi.grouping.engine import place_numbers

USUAL_SHARES, SHARES_HELD = (0.25, 0.75, -2.0), (20.0, 20.0, 5.0)
"""Usual weights, which known classes of three sets suggested, and how strongly they are held to."""
FAINTEST = -12.0
"""Least logarithm of a clue that counts."""


@dataclass(frozen=True)
class RehearsedPlaces:
    """Wrong lines of a bag: what each was judged by (w, places + 1, 3), its own place (w,), and the right one (w,).

    >>> RehearsedPlaces(np.zeros((1, 3, 3)), own=np.array([0]), right=np.array([2])).right
    array([2])
    """

    clues: Floats
    own: Ints
    right: Ints


@dataclass(frozen=True)
class Elsewhere:
    """A conditional logit over the places that a wrong line leaves.

    Attributes:
        weights: Of the share of groupings drawn from the posterior in which an item is at a place and of how well it
            fits there, as logarithms; and of a class that has no group.

    >>> seen, fits = np.array([[0.7, 0.2, 0.1]] * 2), np.log([[0.8, 0.2]] * 2)
    >>> Elsewhere()(np.array([0, 1]), np.array([0.6, 0.1]), place_clues(seen, fits)).round(2)
    array([[0.6 , 0.29],
           [0.46, 0.46]])
    """

    weights: tuple[float, float, float] = USUAL_SHARES

    def __call__(self, own: Ints, confidence: Floats, clues: Floats) -> Floats:
        """Probability (n, places) of every place; what is missing to 1 is a class that has no group.

        No place is likelier than an item's own. Where the clues say otherwise, its own and those that seem likelier get
        their mean: these are the nearest probabilities, and on known classes that play novel such a line is right more
        often than was thought, such a place less often.

        Args:
            own: (n,) the place of each line.
            confidence: (n,) how probable it was found that the line is right.
            clues: (n, places + 1, 3) as `place_clues` gives them.
        """
        share = np.exp(log_shares(own, clues, np.array(self.weights)))[:, :-1]
        others = (1 - confidence)[:, None] * share
        level = levelled(confidence, others)
        found = np.minimum(others, level[:, None])
        found[np.arange(len(own)), own] = level
        return np.asarray(found)


USUAL_ELSEWHERE = Elsewhere()


def levelled(mine: Floats, others: Floats) -> Floats:
    """How probable (n,) an own place (n,) is when no other (n, places) may be likelier: the mean of it and of those.

    >>> levelled(np.array([0.5, 0.1]), np.array([[0.2, 0.3], [0.3, 0.6]])).round(2)
    array([0.5 , 0.35])
    """
    summed = np.cumsum(np.sort(others, axis=1)[:, ::-1], axis=1) + mine[:, None]
    means = summed / np.arange(2, others.shape[1] + 2)
    return np.asarray(np.maximum(mine, means.max(1, initial=0.0)))


def certain(labels: Ints, classes: int) -> Floats:
    """Chances (n, groups + classes + 1) where each label (n,) is certain.

    >>> certain(np.array([0, -2, -1]), classes=1)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    found = np.zeros((len(labels), int(labels.max(initial=-1)) + 2 + classes))
    found[np.arange(len(labels)), place_numbers(labels, classes)] = 1.0
    return found


def place_clues(seen: Floats, fits: Floats) -> Floats:
    """What places are judged by (n, places + 1, 3): one clue for each weight; the last place is a class without group.

    Args:
        seen: (n, places + 1) as `sampled_places` gives them.
        fits: (n, places) logarithm of how well each item fits every place.

    >>> place_clues(seen=np.ones((4, 3)), fits=np.zeros((4, 2))).shape
    (4, 3, 3)
    """
    clues = np.zeros((*seen.shape, 3))
    clues[:, :, 0] = np.log(seen)
    clues[:, :-1, 1] = np.maximum(fits, FAINTEST)
    clues[:, -1, 2] = 1.0
    return clues


def log_shares(own: Ints, clues: Floats, weights: Floats) -> Floats:
    """Logarithm (n, places + 1) of the share of each place but the own in what a wrong line leaves.

    >>> clues = place_clues(seen=np.ones((1, 3)), fits=np.zeros((1, 2)))
    >>> np.exp(log_shares(np.array([0]), clues, np.array([1.0, 1.0, 0.0])))
    array([[0. , 0.5, 0.5]])
    """
    raised = clues @ weights
    raised[np.arange(len(own)), own] = -np.inf
    return np.asarray(raised - log_total(raised))


def fit_elsewhere(bags: Sequence[RehearsedPlaces]) -> Elsewhere:
    """The weights under which the right places of wrong lines are likeliest.

    >>> fit_elsewhere([]) == USUAL_ELSEWHERE
    True
    """
    usual, held = np.array(USUAL_SHARES), np.array(SHARES_HELD)

    def loss(weights: Floats) -> tuple[float, Floats]:
        away = weights - usual
        value, slope = float(held @ np.square(away)), 2 * held * away
        for bag in bags:
            logs, lines = log_shares(bag.own, bag.clues, weights), np.arange(len(bag.own))
            value -= float(logs[lines, bag.right].sum())
            slope += np.einsum("wp,wpk->k", np.exp(logs), bag.clues) - bag.clues[lines, bag.right].sum(0)
        return value, slope

    first, second, third = minimize(loss, usual, jac=True).x.tolist()
    return Elsewhere((first, second, third))
