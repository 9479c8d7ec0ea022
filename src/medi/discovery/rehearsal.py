"""Rehearsals: known classes play novel, are grouped like the pool, and set what cannot be known otherwise.

Splits of the known classes are the independent trials (`medi.discovery.held_out`). In each, bags are drawn that look
like pools: items of held-out classes, items of learnt classes that were kept back, as known or as further novel
classes, and one-offs. They set how alike items of a class are, how far the number of groups is off, how probable it is
that a line is right, and what a new item of a group looks like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from medi.cluster.class_model import Anchors, ClassModel, Floats
from medi.cluster.moves import Places, place_of, responsibilities
from medi.cluster.posterior import Branches, Ints, Posterior, known_label
from medi.discovery.grouping import (
    DOUBT,
    MARGIN,
    Grouped,
    Wanted,
    blurred,
    group_points,
    quantile,
    right_lines,
    sampled_confidence,
)
from medi.discovery.recognition import Recognition, fit_recognition
from medi.discovery.trust import TEMPERATURES, Trust, fit_trust

USUAL_SCALE = 0.8
"""What the measured likeness of a class is multiplied with, unless rehearsals prefer another scale."""
SCALES = np.array([0.65, 0.725, 0.8, 0.875, 0.95])
SHARPNESS = 2.0
"""Times that the measured number of dimensions counts. Chosen, as the usual scale, on known classes of four sets."""
SPREADS = (0.12, 0.15, 0.18, 0.21, 0.25, 0.3, 0.35, 0.4, 0.5)
TOLERANCE = 0.2
"""Errors of the number of groups below this, in logarithms, count little where a scale is chosen."""
SCALE_BAGS, BAGS = 24, 30
"""Bags that choose the scale, and bags that rehearse everything else."""
LARGEST_CLASS, LARGEST_BAG = 10, 120
"""Most items that an average class has in a bag, and most items of a bag."""
LEVEL = 0.9
"""Probability of the interval for the number of groups."""
COVERED = 0.85
"""Share of bags whose interval has to hold the truth: whole numbers make intervals wider than their level."""
DRAWS = 16
"""Groupings drawn from the posterior of a bag."""
FURTHER = 40
"""Most further items that are recognised after a bag was grouped."""


@dataclass(frozen=True)
class Stage:
    """A split of the known classes as points.

    Attributes:
        held_out: (n, d) items of classes that nothing was fitted to.
        labels: (n,) their classes.
        kept_back: (m, d) items of the other classes that nothing was fitted to.
        kept_labels: (m,) their classes, numbers of `anchors`.
        anchors: The classes learnt from.
    """

    held_out: Floats
    labels: Ints
    kept_back: Floats
    kept_labels: Ints
    anchors: Anchors


@dataclass(frozen=True)
class Bag:
    """A pool whose truth is known.

    Attributes:
        points: (n, d).
        truth: (n,) classes from 0 on, or `known_label` of an anchor.
        fair: (n,) whether nothing was fitted to the item's class; only those are scored.
        anchors: The known classes.
        further: (f, d) items that are not in the bag.
        further_truth: (f,) like `truth`; -1 for items of no class of the bag.
    """

    points: Floats
    truth: Ints
    fair: np.ndarray
    anchors: Anchors
    further: Floats
    further_truth: Ints


@dataclass(frozen=True)
class Rehearsed:
    """What rehearsals say.

    Attributes:
        model: What a class is.
        shrink: What means of known classes are multiplied with: part of their length is fitted, not real.
        spread: How far the number of groups is off, in logarithms.
        mistaken: Share of novel items that are taken for known.
        trust: How probable it is that a line is right.
        recognition: How new items are recognised.
        right: Share of items put right, and its standard error over splits.
    """

    model: ClassModel
    shrink: float
    spread: float
    mistaken: float
    trust: Trust
    recognition: Recognition
    right: tuple[float, float]


def rehearse(stages: Sequence[Stage], items: int, wanted: Wanted, seed: int) -> Rehearsed:
    """Group bags of known classes as the pool will be grouped.

    Args:
        stages: Splits of the known classes.
        items: Size of the pool.
        wanted: What will be asked of the grouping; the number of groups is given to every bag where it is given.
        seed: Start of all random draws.
    """
    generator = np.random.default_rng(seed)
    share, dimensions, shrink = measure(stages)
    scale = _best_scale(stages, items, share, dimensions, generator)
    model = ClassModel(min(share * scale, 0.98), dimensions)
    bags, found, split_of = [], [], []
    for number in range(BAGS):
        bag = draw_bag(stages[number % len(stages)], items, shrink, wanted, generator)
        k = len(np.unique(bag.truth[bag.truth >= 0])) if wanted.k is not None else None
        asked = Wanted(k, wanted.only_novel)
        bags.append(bag)
        found.append(group_points(bag.points, bag.anchors, model, asked))
        split_of.append(number % len(stages))
    mistaken = 0.0 if wanted.only_novel else _mistaken(bags, found)
    if mistaken > 0:
        for number, (bag, grouped) in enumerate(zip(bags, found, strict=True)):
            if len(bag.anchors) and (grouped.labels <= known_label(0)).mean() <= 2 * (MARGIN * mistaken + DOUBT):
                k = int(grouped.labels.max()) + 1 if wanted.k is not None else None
                asked = Wanted(k, wanted.only_novel)
                found[number] = group_points(bag.points, bag.anchors, model, asked, mistaken=mistaken)
    spread = _spread(found, bags, wanted) if wanted.k is None else 0.0
    sampled, own, right, by_split = [], [], [], [list[bool]() for _ in stages]
    for bag, grouped, split in zip(bags, found, split_of, strict=True):
        asked = Wanted(None if wanted.k is None else int(grouped.labels.max()) + 1, wanted.only_novel)
        chances = lines(grouped, asked, spread, DRAWS, generator)
        tempered = own_places(bag.points, grouped, TEMPERATURES, wanted)
        correct = right_lines(bag.truth, grouped.labels)[bag.fair]
        sampled.append(chances[bag.fair])
        own.append(tempered[bag.fair])
        right.append(correct)
        by_split[split].extend(correct.tolist())
    trust = fit_trust(np.concatenate(sampled), np.concatenate(own), np.concatenate(right))
    means = np.array([np.mean(values) for values in by_split if values])
    error = float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")
    recognition = fit_recognition(_recognised(bags, found, model))
    return Rehearsed(model, shrink, spread, mistaken, trust, recognition, (float(means.mean()), error))


def lines(grouped: Grouped, wanted: Wanted, spread: float, draws: int, generator: np.random.Generator) -> Floats:
    """How probable (n,) the posterior finds each line, its error in the number included."""
    if wanted.k is None:
        numbers = blurred(grouped.numbers, spread)
    else:
        numbers = np.zeros(len(grouped.numbers))
        numbers[min(wanted.k, len(numbers) - 1)] = 1
        if not np.isfinite(grouped.posterior.ways[-1][0][numbers.argmax()]):
            numbers = grouped.numbers
    return sampled_confidence(grouped, numbers, draws, generator)


def own_places(points: Floats, grouped: Grouped, powers: Floats, wanted: Wanted) -> Floats:
    """How likely (n, powers) the own place of each point is, given where all others are."""
    return responsibilities(
        points,
        grouped.labels,
        grouped.anchors,
        grouped.model,
        grouped.rates.known,
        powers,
        singles=wanted.singles,
    )


def _mistaken(bags: Sequence[Bag], found: Sequence[Grouped]) -> float:
    """Share of novel items that are taken for known."""
    called = [
        grouped.labels[bag.fair & (bag.truth >= 0)] <= known_label(0) for bag, grouped in zip(bags, found, strict=True)
    ]
    return float(np.concatenate(called).mean())


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


def draw_bag(stage: Stage, items: int, shrink: float, wanted: Wanted, generator: np.random.Generator) -> Bag:
    """A bag of up to so many items like a pool."""
    classes, known = np.unique(stage.labels), np.unique(stage.kept_labels)
    plays_novel = known if wanted.only_novel else generator.permutation(known)[: len(known) // 2]
    sources = [stage.held_out[stage.labels == c] for c in classes]
    sources += [stage.kept_back[stage.kept_labels == c] for c in plays_novel]
    fair = np.arange(len(sources)) < len(classes)
    chosen = _some_classes(len(sources), items, np.where(fair, 3.0, 1.0), generator)
    points, truth, further, further_truth = [], [], [], []
    for label, (source, size) in enumerate(zip(chosen, _sizes(len(chosen), items, generator), strict=True)):
        shuffled = generator.permutation(sources[source])
        size = min(size, len(shuffled))
        points.append(shuffled[:size])
        truth.append(np.full(size, label))
        if fair[source]:
            further.append(shuffled[size:])
            further_truth.append(np.full(len(shuffled) - size, label))
    scored = [np.full(len(part), fair[source]) for part, source in zip(points, chosen, strict=True)]
    strangers = [generator.permutation(sources[c]) for c in np.setdiff1d(np.flatnonzero(fair), chosen)]
    if not wanted.only_novel and wanted.k is None and generator.random() < 0.5:  # one-offs, each a class of its own
        for part in strangers:
            points.append(part[:1])
            truth.append(np.array([len(truth)]))
            scored.append(np.array([True]))
        strangers = [part[1:] for part in strangers]
    remaining = np.setdiff1d(known, plays_novel)
    anchors = Anchors(shrink * stage.anchors.means[remaining], stage.anchors.counts[remaining])
    back = generator.permutation(np.flatnonzero(np.isin(stage.kept_labels, remaining)))
    present = round(generator.choice([0.0, 0.3, 1.0]) * sum(map(len, points))) if not wanted.only_novel else 0
    names = known_label(0) - np.searchsorted(remaining, stage.kept_labels)
    points.append(stage.kept_back[back[:present]])
    truth.append(names[back[:present]])
    scored.append(np.full(len(back[:present]), True))
    further += [stage.kept_back[back[present:]], *strangers]
    further_truth += [names[back[present:]], *(np.full(len(part), -1) for part in strangers)]
    rest, rest_truth = np.concatenate(further), np.concatenate(further_truth)
    some = generator.permutation(len(rest))[:FURTHER]
    return Bag(
        np.concatenate(points), np.concatenate(truth), np.concatenate(scored), anchors, rest[some], rest_truth[some]
    )


def _some_classes(available: int, items: int, odds: Floats, generator: np.random.Generator) -> Ints:
    """Two classes or more, as many as a bag may have: small numbers are as frequent as large ones, in logarithms."""
    most = max(2, min(available, items // 2))
    number = round(float(np.exp(generator.uniform(np.log(2), np.log(most + 0.49)))))
    return np.asarray(generator.choice(available, min(number, available), replace=False, p=odds / odds.sum()))


def _sizes(classes: int, items: int, generator: np.random.Generator) -> Ints:
    """Items of each class, alike or not."""
    most = max(2.5, min(min(items, LARGEST_BAG) / classes, LARGEST_CLASS))
    mean = np.exp(generator.uniform(np.log(2), np.log(most)))
    weights = np.ones(classes) if generator.random() < 0.5 else generator.uniform(0.2, 1.8, classes)
    sizes: Ints = np.maximum(1, np.round(mean * weights)).astype(np.int64)
    return sizes


def _best_scale(
    stages: Sequence[Stage], items: int, share: float, dimensions: float, generator: np.random.Generator
) -> float:
    """The scale of the likeness under which bags of held-out classes have about the right number of groups."""
    model = ClassModel(np.minimum(share * SCALES[:, None], 0.98), dimensions)
    losses = np.zeros(len(SCALES))
    for number in range(SCALE_BAGS):
        stage = stages[number % len(stages)]
        classes = np.unique(stage.labels)
        chosen = _some_classes(len(classes), items, np.ones(len(classes)), generator)
        parts = [
            generator.permutation(stage.held_out[stage.labels == classes[c]])[:size]
            for c, size in zip(chosen, _sizes(len(chosen), items, generator), strict=True)
        ]
        points = np.concatenate(parts)
        branches = Branches.of(points, Anchors.none(points.shape[1]))
        numbers = Posterior.of(branches, model, singles=True, most=len(points)).numbers()
        error = np.log(np.maximum(np.arange(numbers.shape[1]), 0.5) / len(parts))
        near = np.exp(-0.5 * np.square(error / TOLERANCE))
        losses -= np.log(numbers @ near + 1e-3) / SCALE_BAGS
    return float(SCALES[(losses + np.square(np.log(SCALES / USUAL_SCALE))).argmin()])


def _spread(found: Sequence[Grouped], bags: Sequence[Bag], wanted: Wanted) -> float:
    """The least spread under which the interval holds the true number of groups as often as it should."""
    least = 1 if wanted.singles else 2
    true = [int((np.bincount(bag.truth[bag.truth >= 0], minlength=1) >= least).sum()) for bag in bags]
    for spread in SPREADS:
        inside = 0
        for grouped, k in zip(found, true, strict=True):
            numbers = blurred(grouped.numbers, spread)
            inside += quantile(numbers, (1 - LEVEL) / 2) <= k <= quantile(numbers, (1 + LEVEL) / 2)
        if inside >= COVERED * len(true):
            return spread
    return SPREADS[-1]


def _recognised(bags: Sequence[Bag], found: Sequence[Grouped], model: ClassModel) -> Iterator[tuple[Floats, Ints]]:
    """For each bag, scores (f, places + 1) of further items, none last, and the right place of each."""
    for bag, grouped in zip(bags, found, strict=True):
        joined = np.where(grouped.labels >= 0, grouped.labels, -1)
        places = Places.of(bag.points, joined, bag.anchors)
        scores = places.all_scores(bag.further, model)
        class_of = dict(_matched(bag.truth, grouped.labels))
        truth = np.full(len(bag.further), scores.shape[1] - 1)
        for i, label in enumerate(bag.further_truth.tolist()):
            if label <= -2:
                truth[i] = place_of(np.array([label]), places.groups)[0]
            elif label in class_of:
                truth[i] = class_of[label]
        yield scores, truth


def _matched(truth: Ints, labels: Ints) -> Iterator[tuple[int, int]]:
    """Classes and the groups that they are matched with."""
    both = (labels >= 0) & (truth >= 0)
    if both.any():
        table = np.zeros((truth.max() + 1, labels.max() + 1))
        np.add.at(table, (truth[both], labels[both]), 1)
        classes, groups = linear_sum_assignment(-table)
        yield from ((int(c), int(g)) for c, g in zip(classes, groups, strict=True) if table[c, g] > 0)
