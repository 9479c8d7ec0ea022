"""Rehearsals: known classes play novel, are grouped like the pool, and set what cannot be known otherwise.

Splits of the known classes are the independent trials (`medi.discover.choice`). In each, bags are drawn that look
like pools: items of held-out classes, items of learnt classes that were kept back, as known or as further novel
classes, and one-offs. They set how alike items of a class are, how far the number of groups is off, how probable it is
that a line is right, and what a new item of a group looks like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Floats, Ints
from medi.grouping.bags import Bag, draw_bag, sizes_of, some_classes
from medi.grouping.branches import Branches, Units
from medi.grouping.class_model import ClassModel
from medi.grouping.elsewhere import USUAL_ELSEWHERE, Elsewhere, RehearsedPlaces, fit_elsewhere
from medi.grouping.engine import Anchors, Ask, Stage
from medi.grouping.judged import Judged
from medi.grouping.kinship import UNTESTED_KIN, Kinship, fit_kinship
from medi.grouping.lines import group_means, matched, right_lines, right_places
from medi.grouping.moves import Places, place_of
from medi.grouping.naming import BY_PLACE, Naming, choose_naming
from medi.grouping.numbers import EXACT, NumberError, interval, median
from medi.grouping.partition import Partition, repartition
from medi.grouping.posterior import Posterior
from medi.grouping.recognition import Recognition, RehearsedItems, fit_recognition
from medi.grouping.search import Grouped, Odds, group_units
from medi.grouping.trust import NO_REHEARSAL, TEMPERATURES, Purity, RehearsedLines, Trust, fit_purity, fit_trust

USUAL_SCALE = 0.8
"""What the measured likeness of a class is multiplied with, unless rehearsals prefer another scale."""
SCALES = np.array([0.65, 0.725, 0.8, 0.875, 0.95, 1.05, 1.15, 1.25])
SHARPNESS = 2.0
"""Times that the measured number of dimensions counts. Chosen, as the usual scale, on known classes of four sets."""
SPREADS = (0.12, 0.15, 0.18, 0.21, 0.25, 0.3, 0.35, 0.4, 0.5)
USUAL_SHIFT, SHIFTS = 0.15, 0.2
"""How much larger, in logarithms, the true number is in bags where it is right in pools: bags hold more small classes.
How far sets of classes differ in that."""
TOLERANCE = 0.2
"""Errors of the number of groups below this, in logarithms, count little where a scale is chosen."""
SCALE_BAGS, BAGS = 24, 30
"""Bags that choose the scale, and bags that rehearse everything else."""
USUAL_ODDS, KNOWN_ODDS, ALONE_ODDS = Odds(), (-5.0, -4.0, -3.0, -2.0, -1.0, 0.0), (-1.5, -0.75, 0.0, 0.75)
"""Usual odds of being known and alone, and those that rehearsals may prefer."""
HELD = 12.0
"""Wrong lines that a difference of 1 from the usual odds has to save, over the number of known classes."""
COVERED = 0.85
"""Share of bags whose interval has to hold the truth: whole numbers make intervals wider than their level."""
BAG_DRAWS = 16
"""Groupings drawn from the posterior of a bag."""


@dataclass(frozen=True)
class Rehearsed:
    """What rehearsals say.

    Attributes:
        model: What a class is.
        error: How far the number of groups is off.
        trust: How probable it is that a line is right.
        recognition: How new items are recognised.
        calibrated: Whether there were known classes enough to rehearse with.
        shrink: What means of known classes are multiplied with: part of their length is fitted, not real.
        odds: Of being known, and alone.
        purity: How probable it is that a group is pure.
        elsewhere: Where an item may be if its line is wrong.
        kinship: How probable it is that two groups are of one class.
        naming: How known items are named.
        right: Share of items put right, and its standard error over splits; NaN where that is not known.
    """

    model: ClassModel
    error: NumberError
    trust: Trust
    recognition: Recognition
    calibrated: bool
    shrink: float = 1.0
    odds: Odds = USUAL_ODDS
    purity: Purity = NO_REHEARSAL
    elsewhere: Elsewhere = USUAL_ELSEWHERE
    kinship: Kinship = UNTESTED_KIN
    naming: Naming = BY_PLACE
    right: tuple[float, float] = (float("nan"), float("nan"))


def rehearse(stages: Sequence[Stage], items: int, ask: Ask, seed: int, partition: Partition | None = None) -> Rehearsed:
    """Group bags of known classes as a pool of so many items will be grouped.

    The number of groups is given to every bag where `ask` gives it. A `partition` shares groups out in the place of
    the posterior.
    """
    generator = np.random.default_rng(seed)
    share, dimensions, shrink = measure(stages)
    scale = _best_scale(stages, items, share, dimensions, generator)
    model = ClassModel(min(share * scale, 0.98), dimensions)
    bags = [draw_bag(stages[number % len(stages)], items, shrink, ask, generator) for number in range(BAGS)]
    if ask.only_novel:
        naming, odds, found = BY_PLACE, USUAL_ODDS, _grouped(bags, model, ask, USUAL_ODDS)
    else:
        classes = len(np.unique(stages[0].labels)) + len(stages[0].anchors)
        odds, found = _best_odds(bags, model, ask, HELD / classes)
        naming = choose_naming(bags, found)
        found = [
            replace(grouped, labels=naming(grouped, bag.points, np.ones(len(bag.points), np.int64)))
            for bag, grouped in zip(bags, found, strict=True)
        ]
    error = _number_error(found, bags, ask, min(len(stages), len(bags))) if ask.k is None else EXACT
    if partition is not None:
        found = [
            replace(grouped, labels=repartition(bag.points, grouped.labels, partition))
            for bag, grouped in zip(bags, found, strict=True)
        ]
    judged, truth = [], []
    for bag, grouped in zip(bags, found, strict=True):
        asked = _given(ask, int(grouped.labels.max()) + 1)
        judged.append(Judged.of(grouped, bag.points, asked, error, BAG_DRAWS, generator))
        truth.append(right_places(bag.truth, grouped.labels, len(grouped.terms.anchors)))
    fair = [bag.fair for bag in bags]
    lines = [_lines(*parts) for parts in zip(judged, truth, fair, strict=True)]
    trust = fit_trust(lines)
    elsewhere = fit_elsewhere([_wrong(*parts, trust) for parts in zip(judged, truth, fair, strict=True)])
    sure = [one.chances(trust, elsewhere).max(1) for one in judged]
    recognition = fit_recognition(list(_recognised(bags, found, sure, model)))
    right = _share_right([bag.right for bag in lines], len(stages))
    purity = _purity(bags, found, sure)
    kinship = _kinship(bags, found, judged)
    return Rehearsed(model, error, trust, recognition, True, shrink, odds, purity, elsewhere, kinship, naming, right)


def _lines(judged: Judged, truth: Ints, fair: NDArray[np.bool_]) -> RehearsedLines:
    """The lines of a bag to which nothing was fitted, to learn how probable it is that they are right."""
    right = judged.own == truth
    return RehearsedLines(judged.sampled[fair], judged.fits(TEMPERATURES)[fair], judged.places, right[fair])


def _wrong(judged: Judged, truth: Ints, fair: NDArray[np.bool_], trust: Trust) -> RehearsedPlaces:
    """Those of them that are wrong, to learn where they belong."""
    wrong = fair & (judged.own != truth)
    return RehearsedPlaces(judged.clues(trust)[wrong], judged.own[wrong], truth[wrong])


def _given(ask: Ask, k: int) -> Ask:
    """What is asked of a bag: its number of groups is told where the pool's is."""
    return Ask(None if ask.k is None else k, only_novel=ask.only_novel)


def _share_right(right: Sequence[NDArray[np.bool_]], stages: int) -> tuple[float, float]:
    """The share of right lines, and its standard error over stages, which the bags took turns with."""
    by_stage = [np.concatenate(right[number::stages]) for number in range(min(stages, len(right)))]
    means = np.array([lines.mean() for lines in by_stage if len(lines)])
    error = float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")
    return float(means.mean()), error


def _best_odds(bags: Sequence[Bag], model: ClassModel, ask: Ask, held: float) -> tuple[Odds, list[Grouped]]:
    """The odds under which most lines of bags are right, one number after the other, held to the usual ones.

    With them come the bags as they are grouped under these odds.
    """
    tried: dict[Odds, tuple[float, list[Grouped]]] = {}

    def loss(odds: Odds) -> float:
        if odds not in tried:
            found = _grouped(bags, model, ask, odds)
            right = [right_lines(bag.truth, one.labels)[bag.fair] for bag, one in zip(bags, found, strict=True)]
            wrong = int((~np.concatenate(right)).sum())
            away = (odds.known - USUAL_ODDS.known) ** 2 + (odds.alone - USUAL_ODDS.alone) ** 2
            tried[odds] = wrong + held * away, found
        return tried[odds][0]

    best = min((replace(USUAL_ODDS, known=known) for known in KNOWN_ODDS), key=loss)
    best = min((replace(best, alone=alone) for alone in ALONE_ODDS), key=loss)
    return best, tried[best][1]


def _grouped(bags: Sequence[Bag], model: ClassModel, ask: Ask, odds: Odds) -> list[Grouped]:
    return [group_units(Units.single(bag.points), bag.anchors, model, _given(ask, bag.groups), odds) for bag in bags]


def measure(stages: Sequence[Stage]) -> tuple[float, float, float]:
    """How alike two items of a class are, in how many dimensions, and how much means of known classes shrink.

    Over items that nothing was fitted to: the mean inner product of two of one class; one over the mean square of the
    inner product of two of different classes; the slope of kept-back items on the mean of their class.
    """
    same = same_pairs = other = other_pairs = along = length = 0.0
    for stage in stages:
        products = stage.held_out @ stage.held_out.T
        alike = stage.labels[:, None] == stage.labels
        apart = ~alike
        np.fill_diagonal(alike, False)
        same, same_pairs = same + products[alike].sum(), same_pairs + alike.sum()
        other, other_pairs = other + np.square(products[apart]).sum(), other_pairs + apart.sum()
        means = stage.anchors.means[stage.kept_labels]
        along, length = along + (stage.kept_back * means).sum(), length + np.square(means).sum()
    share = float(np.clip(same / max(same_pairs, 1), 0.01, 0.98))
    dimensions = float(np.clip(other_pairs / max(other, 1e-12), 1.0, 1e4))
    return share, SHARPNESS * dimensions, float(np.clip(along / length, 0.3, 1.2)) if length > 0 else 1.0


def _best_scale(
    stages: Sequence[Stage], items: int, share: float, dimensions: float, generator: np.random.Generator
) -> float:
    """The scale of the likeness under which bags of held-out classes have about the right number of groups."""
    model = ClassModel(np.minimum(share * SCALES[:, None], 0.98), dimensions)
    losses = np.zeros(len(SCALES))
    for number in range(SCALE_BAGS):
        stage = stages[number % len(stages)]
        classes = np.unique(stage.labels)
        chosen = some_classes(len(classes), items, np.ones(len(classes)), generator)
        parts = [
            generator.permutation(stage.held_out[stage.labels == classes[c]])[:size]
            for c, size in zip(chosen, sizes_of(len(chosen), items, generator), strict=True)
        ]
        points = np.concatenate(parts)
        branches = Branches.of(Units.single(points), Anchors.none(points.shape[1]))
        numbers = Posterior.of(branches, model, singles=True, most=len(points)).numbers()
        error = np.log(np.maximum(np.arange(numbers.shape[1]), 0.5) / len(parts))
        near = np.exp(-0.5 * np.square(error / TOLERANCE))
        losses -= np.log(numbers @ near + 1e-3) / SCALE_BAGS
    return float(SCALES[(losses + np.square(np.log(SCALES / USUAL_SCALE))).argmin()])


def _number_error(found: Sequence[Grouped], bags: Sequence[Bag], ask: Ask, stages: int) -> NumberError:
    """How far the number of groups is off, with an interval that holds the truth as often as it should."""
    least = 1 if ask.singles else 2
    true = [max(1, int((np.bincount(bag.truth[bag.truth >= 0], minlength=1) >= least).sum())) for bag in bags]
    off = np.array([np.log(k / max(median(grouped.numbers), 1)) for k, grouped in zip(true, found, strict=True)])
    means = np.array([off[number::stages].mean() for number in range(stages)])  # bags took turns with stages
    chance = float(means.var(ddof=1) / stages) if stages > 1 else float(off.var() / len(off))
    shift = float((off.mean() - USUAL_SHIFT) * SHIFTS**2 / (SHIFTS**2 + chance))
    for spread in SPREADS:
        error, inside = NumberError(shift, float(np.hypot(spread, chance**0.5))), 0
        for grouped, k in zip(found, true, strict=True):
            low, high = interval(error.blur(grouped.numbers))
            inside += low <= k <= high
        if inside >= COVERED * len(true):
            return error
    return error


def _recognised(
    bags: Sequence[Bag], found: Sequence[Grouped], sure: Sequence[Floats], model: ClassModel
) -> Iterator[RehearsedItems]:
    """The further items of each bag, whose lines (n,) are so sure."""
    for bag, grouped, confidence in zip(bags, found, sure, strict=True):
        joined = np.where(grouped.labels >= 0, grouped.labels, -1)
        places = Places.of(bag.points, joined, bag.anchors)
        scores = places.all_scores(bag.further, model)
        group_of = dict(matched(bag.truth, grouped.labels))
        truth = np.full(len(bag.further), scores.shape[1] - 1)
        for i, label in enumerate(bag.further_truth.tolist()):
            if label <= -2:
                truth[i] = place_of(np.array([label]), places.groups)[0]
            elif label in group_of:
                truth[i] = group_of[label]
        yield RehearsedItems(scores, group_means(confidence, grouped.labels), truth)


def _purity(bags: Sequence[Bag], found: Sequence[Grouped], sure: Sequence[Floats]) -> Purity:
    """How probable it is that groups are pure, by those to which nothing was fitted."""
    groups = [
        (confidence[mine].mean(), mine.sum(), len(np.unique(bag.truth[mine])) == 1)
        for bag, grouped, confidence in zip(bags, found, sure, strict=True)
        for mine in (grouped.labels == g for g in range(int(grouped.labels.max(initial=-1)) + 1))
        if bag.fair[mine].all()
    ]
    confidence, sizes, pure = np.reshape(groups, (-1, 3)).T
    return fit_purity(confidence, sizes.astype(np.int64), pure > 0)


def _kinship(bags: Sequence[Bag], found: Sequence[Grouped], judged: Sequence[Judged]) -> Kinship:
    """How probable it is that two groups are of one class, by those to which nothing was fitted."""
    pairs = []
    for bag, grouped, lines in zip(bags, found, judged, strict=True):
        members = [np.flatnonzero(grouped.labels == group) for group in range(len(lines.between))]
        fair = [group for group, mine in enumerate(members) if bag.fair[mine].all()]
        most = [int(np.bincount(bag.truth[mine] - bag.truth.min()).argmax()) for mine in members]
        pairs += [
            (lines.between[a, b], min(len(members[a]), len(members[b])), most[a] == most[b])
            for a, b in combinations(fair, 2)
        ]
    between, smaller, one = np.reshape(pairs, (-1, 3)).T
    return fit_kinship(between, smaller.astype(np.int64), one > 0)
