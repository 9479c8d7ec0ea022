"""Group the points of a pool: how many groups, which, and what is known or alone.

Everything is read off one posterior over groupings (`medi.grouping.posterior`). How many items of the pool belong to
known classes, and how many are alone, is estimated from the pool itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.grouping.branches import Branches, Units
from medi.grouping.class_model import ClassModel, Terms
from medi.grouping.engine import Anchors, Ask
from medi.grouping.lines import right_places
from medi.grouping.moves import improve
from medi.grouping.numbers import EXACT, NumberError, median
from medi.grouping.posterior import Posterior
from medi.grouping.ward import ward

SHARE_ROUNDS = 3
"""Rounds in which the shares of known and lone items are estimated."""
USUAL_SIZE, GROWTH = 6.0, 0.85
"""Items up to which a class has its usual scatter, and the power of their number with which it grows after that."""
SIZE_ROUNDS = 7
"""Further rounds in which the size of classes is found."""
HALF_AN_ITEM = 0.5
"""Items that each share is estimated with beside those found: no share is ever zero."""
ALL_NUMBERS, PART = 400, 20
"""Up to so many items any number of groups is considered; of more, so many groups and one more for `PART` items."""


@dataclass(frozen=True)
class Odds:
    """Log odds of what an item is, beside its evidence and the number of such items in the pool.

    Attributes:
        known: Of a known class.
        alone: Alone.
    """

    known: float = -4.0
    alone: float = 0.0


@dataclass(frozen=True)
class Grouped:
    """The groups of n points.

    Attributes:
        labels: (n,) groups from 0 on, `ALONE`, or `known_label` of a class.
        posterior: Over all groupings of their tree.
        numbers: (k + 1,) probability of each number of groups, before its rehearsed error is added.
        terms: On which they are in their groups.
    """

    labels: Ints
    posterior: Posterior
    numbers: Floats
    terms: Terms

    @property
    def places(self) -> int:
        """How many groups and known classes there are."""
        return int(self.labels.max(initial=-1)) + 1 + len(self.terms.anchors)


def group_units(
    units: Units, anchors: Anchors, model: ClassModel, ask: Ask, odds: Odds, error: NumberError = EXACT
) -> Grouped:
    """Group points whose mean squared length is about 1; `error` is how far numbers were off in rehearsals."""
    if ask.only_novel:
        anchors = Anchors.none(units.points.shape[1])
    items = int(units.sizes.sum())
    branches, weighed = Branches.of(units, anchors), model
    found = estimate_rates(branches, anchors, weighed, ask, odds)
    for _ in range(SIZE_ROUNDS):
        numbers = found.posterior.numbers()[0]
        k = ask.k if ask.k is not None else median(found.posterior.possible(error.blur(numbers)))
        sized = _sized(model, (items - found.known) / max(k, 1))
        if sized == weighed or ask.k is not None:  # the size of classes matters for their number alone
            break
        weighed = sized
        found = estimate_rates(branches, anchors, weighed, ask, odds, found)
    posterior, terms = found.posterior, found.terms
    labels = improve(units, _cut(units, posterior, terms, ask, k), terms)
    return Grouped(labels, posterior, numbers, terms)


def _sized(model: ClassModel, size: float) -> ClassModel:
    """The model for classes of about so many items.

    No class is quite what the model says, so the more items a class has, the more parts it would fall into. The
    scatter that a class may have therefore grows with their number.
    """
    odds = model.share / (1 - model.share) * min(1.0, (USUAL_SIZE / max(size, 1.0)) ** GROWTH)
    return replace(model, share=odds / (1 + odds))


def sampled_places(grouped: Grouped, numbers: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """How often (n, k + c + 2) each item is at each place if the truth is drawn from the posterior, with so many draws.

    The last is a class that none of the groups stands for.
    """
    classes, lines = len(grouped.terms.anchors), np.arange(len(grouped.labels))
    seen = np.zeros((len(lines), grouped.places + 2))
    for truth in grouped.posterior.draws(generator.choice(len(numbers), draws, p=numbers), generator):
        seen[lines, right_places(truth, grouped.labels, classes)] += 1
    return (seen + HALF_AN_ITEM) / (draws + 2 * HALF_AN_ITEM)


@dataclass(frozen=True)
class Rates:
    """How many items are known and alone.

    Attributes:
        known: How many.
        alone: How many.
        terms: With their shares.
        posterior: Under these terms.
    """

    known: float
    alone: float
    terms: Terms
    posterior: Posterior


def estimate_rates(
    branches: Branches, anchors: Anchors, model: ClassModel, ask: Ask, odds: Odds, start: Rates | None = None
) -> Rates:
    """Shares of known and lone items that their posterior confirms; from those that nearly the same terms had."""
    n, classes = int(branches.items[-1]), len(anchors)
    most = max(n if n <= ALL_NUMBERS else ALL_NUMBERS + n // PART, ask.k or 0)
    known, alone = (start.known, start.alone) if start else (0.0, 0.0)
    for _ in range(1 if start or (ask.singles and not classes) else SHARE_ROUNDS):
        log_rate = float(np.log((known + HALF_AN_ITEM) / max(classes, 1)) + odds.known)
        model = replace(model, log_alone=float(np.log(alone + HALF_AN_ITEM) + odds.alone))
        posterior = Posterior.of(branches, model, log_rate, singles=ask.singles, most=most)
        numbers = posterior.numbers()[0]
        if ask.k is not None:
            numbers = _given(posterior, ask.k)
        if ask.singles and not classes:
            break  # nothing is known or alone
        probability = posterior.branch_probabilities(numbers)
        known = float((probability * branches.items)[branches.known == 1].sum())
        alone = float(probability[branches.single].sum()) if not ask.singles else 0.0
    return Rates(known, alone, Terms(anchors, model, log_rate, ask.singles), posterior)


def _given(posterior: Posterior, k: int) -> Floats:
    """All probability on the number given, or on the nearest that is possible (where most items look known)."""
    possible = np.flatnonzero(np.isfinite(posterior.ways[-1][0]))
    numbers = np.zeros(posterior.ways[-1].shape[1])
    numbers[possible[np.abs(possible - k).argmin()]] = 1
    return numbers


def _cut(units: Units, posterior: Posterior, terms: Terms, ask: Ask, k: int) -> Ints:
    """K groups by Ward's method of the points that are most probably neither known nor alone."""
    branches, most = posterior.branches, posterior.ways[-1].shape[1] - 1
    n = len(units.points)
    if ask.only_novel:
        labels = branches.tree.cut(max(1, min(k, n)))
        if not units.together(labels):
            return labels
    best = Posterior.of(branches, terms.model, terms.log_rate, singles=ask.singles, most=most, total=np.maximum)
    labels = best.best(int(_given(best, k).argmax()))
    novel = np.flatnonzero(labels >= 0)
    if k and len(novel) >= k and not ask.only_novel:
        place = {item: number for number, item in enumerate(novel.tolist())}
        apart = [(place[a], place[b]) for a, b in units.apart if a in place and b in place]
        points, weights = units.points[novel], units.sizes[novel].astype(np.float64)
        again = labels.copy()
        again[novel] = ward(points, weights, apart).cut(k)
        sizes = np.bincount(again[novel], weights)
        if (ask.singles or sizes.min() > 1) and not units.together(again):
            labels = again
    return labels
