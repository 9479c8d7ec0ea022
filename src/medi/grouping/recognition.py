"""How further items are recognised: probabilities of each group, each known class and none of these.

Rehearsals set how much the evidence counts, and the odds that places start with: groups that are probably right more
than others, known classes, and none of these. They also give the trade-off: for every share of belonging items that
may be called none, what "none" has to be given for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from medi.core.arrays import Floats, Ints
from medi.grouping.class_model import log_total
from medi.grouping.trust import SURE, log_odds

STRANGERS = 0.3
"""Share of further items that is taken to belong nowhere; rehearsals cannot know it. Of 0.2 to 0.4 the first with which
three in five strangers are found out, on known classes of flowers."""
POINTS = 101
"""Points of the curve of the trade-off."""
USUAL_NUMBERS = np.array([np.log(0.25), 0.3, 0.0, 0.0])
"""Usual power (its logarithm), weight of a group's confidence, log odds of known classes and of none."""
HELD_NUMBERS = np.array([1.0, 4.0, 0.5, 0.1])
"""How strongly those are held to."""


@dataclass(frozen=True)
class RehearsedItems:
    """Further items of a bag.

    Attributes:
        scores: (f, k + c + 1) as `Places.all_scores` gives them.
        confidence: (k,) of the groups of the bag.
        right: (f,) the right place of each.
    """

    scores: Floats
    confidence: Floats
    right: Ints


@dataclass(frozen=True)
class Recognition:
    """What rehearsals say of recognising.

    Attributes:
        power: Of the evidence.
        trust: How much the confidence of a group counts.
        known: Log odds that known classes start with.
        none: Log odds that "none of these" starts with.
        leads: (`POINTS`,) quantiles of the lead of the best place over "none" among items that belong somewhere.
        most: Largest probability that is ever given.
    """

    power: float
    trust: float
    known: float
    none: float
    leads: Floats
    most: float = SURE

    def start(self, confidence: Floats, classes: int) -> Floats:
        """Log odds (k + c + 1,) that groups of so much confidence (k,), so many known classes and none start with."""
        groups = self.trust * log_odds(confidence, 1e-2)
        return np.concatenate([groups, np.full(classes, self.known), [self.none]])

    def probabilities(self, scores: Floats, start: Floats, rate: float | None = None) -> Floats:
        """Probability (n, places + 1) of each place and, last, of none.

        Args:
            scores: As `Places.all_scores` gives them.
            start: (places + 1,) what `start` gives.
            rate: Share of the belonging items that may be called none; None for what rehearsals found likeliest.
        """
        raised = self.power * scores + start
        if rate is not None:
            raised[:, -1] += self.threshold(rate)
        return np.asarray(np.exp(raised - log_total(raised)))

    def threshold(self, rate: float) -> float:
        """The lead below which an item is called none; nothing is where no lead is known."""
        if rate <= 0 or not len(self.leads):
            return -np.inf
        return float(np.interp(rate, np.linspace(0, 1, len(self.leads)), self.leads))

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, float]]:
        """Arrays and JSON-able facts from which `unpack` makes it again."""
        facts = {name: float(getattr(self, name)) for name in ("power", "trust", "known", "none", "most")}
        return {"leads": self.leads}, facts

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Self:
        """What `pack` took apart."""
        power, none, most = (float(facts[name]) for name in ("power", "none", "most"))
        leads = arrays["leads"].astype(np.float64)
        if "trust" not in facts:  # an earlier version, whose leads were those of the scores
            return cls(power, 0.0, 0.0, none, power * leads - none, most)
        return cls(power, float(facts["trust"]), float(facts["known"]), none, leads, most)


def lead(raised: Floats) -> Floats:
    """How far (n,) the best place is ahead of "none"."""
    return np.asarray(raised[:, :-1].max(1) - raised[:, -1])


def fit_recognition(rehearsed: Sequence[RehearsedItems]) -> Recognition:
    """The numbers under which the right places of further items are likeliest."""
    bags = [bag for bag in rehearsed if len(bag.right)]
    width = max(bag.scores.shape[1] for bag in bags)
    laid_out = [_laid_out(bag, width) for bag in bags]
    scores, sure, known = (np.concatenate([parts[i] for parts in laid_out]) for i in range(3))
    right = np.concatenate([parts[3] for parts in laid_out])
    lines, weights = np.arange(len(right)), _weights(right == width - 1)

    def raised(numbers: Floats) -> Floats:
        found = np.exp(numbers[0]) * scores + numbers[1] * sure + numbers[2] * known
        found[:, -1] += numbers[3]
        return np.asarray(found)

    def loss(numbers: Floats) -> float:
        laid = raised(numbers)
        return float(
            weights @ (log_total(laid)[:, 0] - laid[lines, right]) + HELD_NUMBERS @ np.square(numbers - USUAL_NUMBERS)
        )

    best = minimize(loss, USUAL_NUMBERS, method="BFGS", options={"maxiter": 40}).x
    trust, of_known, none = best[1:].tolist()
    return Recognition(float(np.exp(best[0])), trust, of_known, none, curve(lead(raised(best)[right < width - 1])))


def _weights(strangers: NDArray[np.bool_]) -> Floats:
    """How much each of further items (f,) counts: as if `STRANGERS` of them belonged nowhere."""
    share = strangers.mean()
    if not 0 < share < 1:
        return np.ones(len(strangers))
    return np.asarray(np.where(strangers, STRANGERS / share, (1 - STRANGERS) / (1 - share)))


def _laid_out(bag: RehearsedItems, width: int) -> tuple[Floats, Floats, Floats, Ints]:
    """Scores (f, width) with impossible places before the last column, groups' log odds, known places, right places."""
    places, k = bag.scores.shape[1] - 1, len(bag.confidence)
    scores = np.full((len(bag.right), width), -1e9)
    scores[:, :places], scores[:, -1] = bag.scores[:, :places], bag.scores[:, -1]
    sure, known = np.zeros_like(scores), np.zeros_like(scores)
    sure[:, :k], known[:, k:places] = log_odds(bag.confidence, 1e-2), 1.0
    return scores, sure, known, np.where(bag.right == places, width - 1, bag.right)


def curve(leads: Floats) -> Floats:
    """`POINTS` quantiles, or nothing of nothing."""
    finite = leads[np.isfinite(leads)]
    return np.quantile(finite, np.linspace(0, 1, POINTS)) if len(finite) else np.zeros(0)
