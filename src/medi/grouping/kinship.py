"""How probable it is that two groups are of one class, learnt in rehearsals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from medi.core.arrays import Floats, Ints
from medi.grouping.engine import GUESS
from medi.grouping.trust import SURE, log_odds, logistic

COMPARED = 10
"""Most items of a group that are compared with those of another."""
USUAL_KINSHIP, KINSHIP_HELD = (0.3, -1.4, -0.65), (30.0, 20.0, 10.0)
"""Usual weights, which known classes of four sets suggested, and how strongly they are held to."""
SUREST = 1e-3
"""Probabilities nearer to 0 or 1 count as this near."""


@dataclass(frozen=True)
class Kinship:
    """A logistic regression: the posterior makes too much of two groups that may be one.

    Attributes:
        weights: Of the log odds of the mean probability that an item of the one and an item of the other are together,
            of the logarithm of the size of the smaller group, and of 1.
        most: Largest probability that is ever given.

    >>> Kinship()(np.array([[1.0, 0.5], [0.5, 0.9]]), sizes=np.array([5, 1])).round(2)
    array([[1.  , 0.34],
           [0.34, 1.  ]])
    """

    weights: tuple[float, float, float] = USUAL_KINSHIP
    most: float = SURE

    def __call__(self, between: Floats, sizes: Ints) -> Floats:
        """Probability (k, k) that two groups, of so many items (k,), are of one class.

        `between` (k, k) is the mean probability that items of two groups are together.
        """
        smaller = np.minimum(sizes[:, None], sizes)
        found = np.clip(expit(_clues(between, smaller) @ np.array(self.weights)), 0.0, self.most)
        np.fill_diagonal(found, 1.0)
        return np.asarray(found)


UNTESTED_KIN = Kinship(most=GUESS)
"""Where nothing could be rehearsed."""


def fit_kinship(between: Floats, smaller: Ints, one: NDArray[np.bool_]) -> Kinship:
    """The weights under which what rehearsals found of pairs of groups (p,) is likeliest.

    >>> between, smaller = np.full(400, 0.5), np.full(400, 5)
    >>> kinship = fit_kinship(between, smaller, np.arange(400) < 200)  # half of such pairs were one
    >>> kinship(np.array([[1.0, 0.5], [0.5, 1.0]]), sizes=np.array([5, 9])).round(1)
    array([[1. , 0.4],
           [0.4, 1. ]])
    """
    first, second, third = logistic(_clues(between, smaller), one, USUAL_KINSHIP, KINSHIP_HELD)[1]
    return Kinship((first, second, third))


def _clues(between: Floats, smaller: Ints) -> Floats:
    return np.stack([log_odds(between, SUREST), np.log(np.maximum(smaller, 1)), np.ones(between.shape)], -1)


def pairs_between(labels: Ints, pairs: Callable[[Ints], Floats]) -> Floats:
    """Mean probability (k, k) that an item of one group and an item of another, or of the same, are together.

    Args:
        labels: (n,) groups from 0 on; what is less is in none.
        pairs: Probability (s, s) that two of some items (s,) are together.

    >>> pairs_between(np.array([0, 0, 1]), lambda some: np.where(some[:, None] == some, 1.0, 0.2))
    array([[0.2, 0.2],
           [0.2, 1. ]])
    """
    members = [np.flatnonzero(labels == group)[:COMPARED] for group in range(int(labels.max(initial=-1)) + 1)]
    if not members:
        return np.zeros((0, 0))
    sizes = np.array([len(mine) for mine in members])
    inside = np.repeat(np.eye(len(members)), sizes, axis=0)
    total = inside.T @ pairs(np.concatenate(members)) @ inside
    itself = np.diag(sizes)
    count = sizes[:, None] * sizes - itself
    return np.where(count > 0, (total - itself) / np.maximum(count, 1), 1.0)


def kin_of(labels: Ints, kinship: Kinship, between: Floats, chances: Floats) -> Floats:
    """Probability (k, k) that two groups of labels (n,) are of one class.

    That a group of one item is of the class of another group is as probable as that place is for the item.

    >>> labels, between = np.array([0, 0, 1]), np.array([[0.9, 0.5], [0.5, 1.0]])
    >>> chances = np.array([[0.9, 0.1, 0.0], [0.9, 0.1, 0.0], [0.3, 0.6, 0.1]])  # of both groups, and alone
    >>> kin_of(labels, Kinship(), between, chances)
    array([[1. , 0.3],
           [0.3, 1. ]])
    """
    sizes = np.bincount(labels[labels >= 0], minlength=len(between))
    single, places = sizes == 1, np.zeros_like(between)
    for group in np.flatnonzero(single):
        places[group] = chances[np.flatnonzero(labels == group)[0], : len(sizes)]
    said = single[:, None].astype(np.float64) + single
    found = np.where(said > 0, (places + places.T) / np.maximum(said, 1), kinship(between, sizes))
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)
