"""What is known of each line of a grouping before its probability is said: of a bag in a rehearsal, and of a pool."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.grouping.elsewhere import Elsewhere, place_clues
from medi.grouping.engine import Ask, place_numbers
from medi.grouping.kinship import pairs_between
from medi.grouping.moves import log_fits, place_scores
from medi.grouping.numbers import NumberError
from medi.grouping.search import Grouped, sampled_places
from medi.grouping.trust import Trust


@dataclass(frozen=True)
class Judged:
    """The lines of n items.

    Attributes:
        places: How many groups and known classes there are.
        own: (n,) the place of each line: groups first, then known classes, then alone.
        seen: (n, places + 2) how often an item is at each place; the last is a class without a group.
        scores: (n, places + 1) log weight of every place, given where all others are.
        between: (k, k) mean probability that items of two groups, or of one, are together.

    >>> seen, scores = np.array([[0.8, 0.1, 0.1]] * 2), np.zeros((2, 2))
    >>> judged = Judged(1, np.array([0, 1]), seen, scores, np.ones((1, 1)))
    >>> judged.sampled, judged.fits(np.array([1.0])).ravel()
    (array([0.8, 0.1]), array([0.5, 0.5]))
    """

    places: int
    own: Ints
    seen: Floats
    scores: Floats
    between: Floats

    @classmethod
    def of(
        cls,
        grouped: Grouped,
        points: Floats,
        ask: Ask,
        error: NumberError,
        draws: int,
        generator: np.random.Generator,
    ) -> Judged:
        """Judge a grouping of points (n, d) by so many groupings drawn from the posterior."""
        own = place_numbers(grouped.labels, len(grouped.terms.anchors))
        numbers = grouped.posterior.possible(_numbers(grouped, ask, error))
        numbers = numbers / numbers.sum()
        seen = sampled_places(grouped, numbers, draws, generator)
        between = pairs_between(grouped.labels, partial(grouped.posterior.pairs, numbers))
        return cls(grouped.places, own, seen, place_scores(points, grouped.labels, grouped.terms), between)

    @property
    def sampled(self) -> Floats:
        """How often (n,) each line is right."""
        return self.seen[np.arange(len(self.own)), self.own]

    def fits(self, powers: Floats) -> Floats:
        """How likely (n, powers) the own place of each item is, with the evidence raised to each of the powers.

        An item alone, or the only one of its group, has a place of its own.
        """
        lines = np.arange(len(self.own))
        own = np.where(np.isfinite(self.scores[lines, self.own]), self.own, self.scores.shape[1] - 1)
        return np.exp(np.stack([log_fits(self.scores, power)[lines, own] for power in powers], 1))

    def sure(self, trust: Trust) -> Floats:
        """How probable (n,) each line is."""
        return trust(self.sampled, self.fits(np.array([trust.temperature]))[:, 0], self.places)

    def clues(self, trust: Trust) -> Floats:
        """By what it is judged where wrong lines belong."""
        return place_clues(self.seen, log_fits(self.scores, trust.temperature))

    def chances(self, trust: Trust, elsewhere: Elsewhere) -> Floats:
        """Probability (n, places + 1) of every place."""
        return elsewhere(self.own, self.sure(trust), self.clues(trust))


def _numbers(grouped: Grouped, ask: Ask, error: NumberError) -> Floats:
    """The probability of each number of groups, its error included, or the number that was asked for."""
    if ask.k is None:
        return error.blur(grouped.numbers)
    numbers = np.zeros(len(grouped.numbers))
    numbers[min(ask.k, len(numbers) - 1)] = 1
    possible = np.isfinite(grouped.posterior.ways[-1][0][numbers.argmax()])
    return numbers if possible else grouped.numbers
