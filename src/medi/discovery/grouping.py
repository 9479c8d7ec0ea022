"""Group the points of a pool: how many groups, which, and what is known or alone.

Everything is read off one posterior over groupings (`medi.cluster.posterior`). How many items of the pool belong to
known classes, and how many are alone, is estimated from the pool itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from medi.cluster.class_model import Anchors, ClassModel, Floats
from medi.cluster.moves import improve
from medi.cluster.posterior import ALONE, Branches, Ints, Posterior
from medi.cluster.ward import weighted_ward

KNOWN_PENALTY = -4.0
"""Log odds against an item being of a known class, beside its evidence and the share of such items in the pool."""
ALONE_ODDS = 0.0
"""Log odds for an item being alone, beside its evidence and the number of such items in the pool."""
SHARE_ROUNDS = 3
"""Rounds in which the shares of known and lone items are estimated."""
MARGIN, DOUBT = 1.25, 0.02
"""A pool holds nothing known where at most so many times the items that rehearsals mistook look known, and so many."""
USUAL_SIZE, GROWTH = 6.0, 0.85
"""Items up to which a class has its usual scatter, and the power of their number with which it grows after that."""
SIZE_ROUNDS = 8
"""Rounds in which the size of classes is found."""
HALF = 0.5
"""Items that each share is estimated with beside those found: no share is ever zero."""
ALL_NUMBERS, PART = 400, 20
"""Up to so many items any number of groups is considered; of more, so many groups and one more for `PART` items."""


@dataclass(frozen=True)
class Rates:
    """How common items of known classes and lone items are in a pool, as the model weighs them."""

    known: float
    alone: float


@dataclass(frozen=True)
class Grouped:
    """The groups of n points.

    Attributes:
        labels: (n,) groups from 0 on, `ALONE`, or `known_label` of a class.
        posterior: Over all groupings of their tree.
        numbers: (k + 1,) probability of each number of groups, before its rehearsed error is added.
        rates: Of known and lone items.
        model: What a class is, with the rate of lone items in it.
        anchors: The known classes that items may belong to; none where the pool holds nothing known.
    """

    labels: Ints
    posterior: Posterior
    numbers: Floats
    rates: Rates
    model: ClassModel
    anchors: Anchors


@dataclass(frozen=True)
class Wanted:
    """What is asked of a grouping.

    Attributes:
        k: The number of groups; None where it is to be found.
        only_novel: Whether the pool holds nothing known and nothing alone; single items then count as groups.
    """

    k: int | None = None
    only_novel: bool = True

    @property
    def singles(self) -> bool:
        """Whether a single item counts as a group: where nothing is alone, or the number of groups was given."""
        return self.only_novel or self.k is not None


def group_points(
    points: Floats,
    anchors: Anchors,
    model: ClassModel,
    wanted: Wanted,
    *,
    spread: float = 0.0,
    mistaken: float = 0.0,
    copies: Ints | None = None,
) -> Grouped:
    """Group points (n, d) whose mean squared length is about 1.

    Args:
        points: The pool.
        anchors: Known classes; not used where the pool is only novel.
        model: What a class is.
        wanted: Number and kind of groups.
        spread: How far the number of groups was off in rehearsals, in logarithms.
        mistaken: Share of novel items that rehearsals took for known. Where hardly more of the pool look known, it
            is taken to hold nothing known.
        copies: (n,) how many copies of each point there are.
    """
    if wanted.only_novel:
        anchors = Anchors.none(points.shape[1])
    branches = Branches.of(points, anchors, copies)
    weighed = model
    for _ in range(SIZE_ROUNDS):
        fitted, posterior, rates, known = estimate_rates(branches, anchors, weighed, wanted)
        if len(anchors) and holds_nothing_known(known, len(points), mistaken):
            anchors = Anchors.none(points.shape[1])
            branches = Branches.of(points, anchors, copies)
            fitted, posterior, rates, known = estimate_rates(branches, anchors, weighed, wanted)
        numbers = posterior.numbers()[0]
        k = wanted.k if wanted.k is not None else median(blurred(numbers, spread))
        sized = _sized(model, (len(points) - known) / max(k, 1))
        if sized == weighed or wanted.k is not None:  # the size of classes matters for their number alone
            break
        weighed = sized
    labels = _cut(points, branches, posterior, fitted, rates, wanted, k)
    labels = improve(points, labels, anchors, fitted, rates.known, singles=wanted.singles, copies=copies)
    return Grouped(labels, posterior, numbers, rates, fitted, anchors)


def holds_nothing_known(known: float, items: int, mistaken: float) -> bool:
    """Whether hardly more of a pool look known than novel items in rehearsals did."""
    return mistaken > 0 and known <= items * (MARGIN * mistaken + DOUBT)


def _sized(model: ClassModel, size: float) -> ClassModel:
    """The model for classes of about so many items.

    No class is quite what the model says, so the more items a class has, the more parts it would fall into. The
    scatter that a class may have therefore grows with their number.
    """
    odds = model.share / (1 - model.share) * min(1.0, (USUAL_SIZE / max(size, 1.0)) ** GROWTH)
    return replace(model, share=odds / (1 + odds))


def blurred(numbers: Floats, spread: float) -> Floats:
    """Probabilities (k + 1,) of the number of groups, made as wide as rehearsals say; 0 groups stay 0 groups."""
    if spread <= 0 or len(numbers) < 3:
        return numbers
    log = np.log(np.arange(1, len(numbers)) + 0.0)
    # Large numbers lie closer together in logarithms: without `- log` the middle would move up.
    kernel = np.exp(-0.5 * np.square((log[None] - log[:, None]) / spread) - log[None])
    kernel /= kernel.sum(1, keepdims=True)
    return np.concatenate([numbers[:1], numbers[1:] @ kernel])


def median(numbers: Floats) -> int:
    """The smallest number that is at least as probable to be enough as not."""
    return quantile(numbers, 0.5)


def quantile(numbers: Floats, level: float) -> int:
    """The smallest number of groups such that so much probability lies at it or below."""
    return int(np.searchsorted(np.cumsum(numbers) / numbers.sum(), level - 1e-12))


def right_lines(truth: Ints, labels: Ints) -> np.ndarray:
    """Which of n labels are right if `truth` (n,) is: the same known class, alone, or a group that is that class.

    Groups and classes are matched one to one so that as many items as possible are right. Alone is right of an item
    that is alone in truth, or the only one of its class.
    """
    found = np.where(labels <= -2, truth == labels, False)
    sizes = np.bincount(truth[truth >= 0], minlength=1)
    alone = labels == ALONE
    found[alone] = (truth[alone] == ALONE) | ((truth[alone] >= 0) & (sizes[np.maximum(truth[alone], 0)] == 1))
    both = (labels >= 0) & (truth >= 0)
    if both.any():
        table = np.zeros((labels.max() + 1, truth.max() + 1))
        np.add.at(table, (labels[both], truth[both]), 1)
        groups, classes = linear_sum_assignment(-table)
        class_of = np.full(len(table), ALONE - 1)
        class_of[groups] = classes
        found[both] = class_of[labels[both]] == truth[both]
    return found


def sampled_confidence(grouped: Grouped, numbers: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """How often (n,) each label is right if the truth is drawn from the posterior, with so many draws."""
    possible = np.isfinite(grouped.posterior.ways[-1][0])
    chances = np.where(possible, numbers[: len(possible)], 0.0)
    chances /= chances.sum()
    right = np.zeros(len(grouped.labels))
    for truth in grouped.posterior.draws(generator.choice(len(chances), draws, p=chances), generator):
        right += right_lines(truth, grouped.labels)
    return (right + HALF) / (draws + 2 * HALF)


def estimate_rates(
    branches: Branches, anchors: Anchors, model: ClassModel, wanted: Wanted
) -> tuple[ClassModel, Posterior, Rates, float]:
    """The posterior with shares of known and lone items that it confirms itself, and how many items look known."""
    n, classes = int(branches.items[-1]), len(anchors)
    most = n if n <= ALL_NUMBERS else ALL_NUMBERS + n // PART
    known, alone = 0.0, 0.0  # items found so far
    for _ in range(1 if wanted.singles and not classes else SHARE_ROUNDS):
        log_rate = float(np.log((known + HALF) / max(classes, 1)) + KNOWN_PENALTY)
        model = replace(model, log_alone=float(np.log(alone + HALF) + ALONE_ODDS))
        posterior = Posterior.of(branches, model, log_rate, singles=wanted.singles, most=max(most, wanted.k or 0))
        numbers = posterior.numbers()[0]
        if wanted.k is not None:
            numbers = _given(posterior, wanted.k)
        probability = posterior.branch_probabilities(numbers)
        known = float((probability * branches.items)[branches.known == 1].sum())
        alone = float(probability[branches.single].sum()) if not wanted.singles else 0.0
    return model, posterior, Rates(log_rate, model.log_alone), known


def _given(posterior: Posterior, k: int) -> Floats:
    """All probability on the number given, or on the nearest that is possible (where most items look known)."""
    possible = np.flatnonzero(np.isfinite(posterior.ways[-1][0]))
    numbers = np.zeros(posterior.ways[-1].shape[1])
    numbers[possible[np.abs(possible - k).argmin()]] = 1
    return numbers


def _cut(
    points: Floats, branches: Branches, posterior: Posterior, model: ClassModel, rates: Rates, wanted: Wanted, k: int
) -> Ints:
    """K groups by Ward's method of the items that are most probably neither known nor alone."""
    if wanted.only_novel:
        return branches.tree.cut(max(1, min(k, len(points))))
    best = Posterior.of(
        branches, model, rates.known, singles=wanted.singles, most=posterior.ways[-1].shape[1] - 1, total=np.maximum
    )
    labels = best.best(int(_given(best, k).argmax()))
    novel = np.flatnonzero(labels >= 0)
    if k and len(novel) >= k:
        again = weighted_ward(points[novel], np.ones(len(novel))).cut(k)
        sizes = np.bincount(again)
        if wanted.singles or sizes.min() > 1:
            labels[novel] = again
    return labels
