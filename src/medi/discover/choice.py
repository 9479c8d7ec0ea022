"""Held-out known classes choose what items are compared by.

Some known classes play novel: candidates are fitted to the others, and bags of held-out items are grouped. The same
splits are the stages of the rehearsals (`medi.grouping.rehearsal`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from medi.core.arrays import Ints
from medi.core.draws import Draws
from medi.data.items import Items
from medi.discover.candidates import Candidates, Fitter, usual
from medi.grouping.ward import ward
from medi.metrics import score_episodes

SPLITS, HELD_OUT = 6, 3
"""Splits of the known classes, and one in so many classes that is held out in each, at least two."""
SPLIT_BAGS, BAG_ITEMS = 8, 10
"""Bags grouped in each split, and the most items of a class in them."""
USUAL_SPREAD = 0.03
"""How far the difference of two representations on some classes is from the usual one, in ACC."""
HOPELESS = 0.03
"""How far behind the best, in ACC on the first split, a projector is not tried on the others."""
KEPT_BACK = 5
"""One in so many items of the classes learnt from is kept back, to ask whether known classes are recognised."""


@dataclass(frozen=True)
class Split:
    """Known classes, some of which play novel.

    Attributes:
        learnt_from: Items that the candidates were fitted to.
        kept_back: Further items of the same classes; may be empty.
        held_out: Items of the other classes.
        candidates: What was fitted.
    """

    learnt_from: Items
    kept_back: Items
    held_out: Items
    candidates: Candidates


@dataclass(frozen=True)
class Choice:
    """What held-out known classes chose.

    Attributes:
        representation: Its name.
        scores: ACC of each representation; empty where nothing could be tried.
        gain: ACC of the best learnt representation less that of the best plain one; None where either is missing.
        spread: Standard error of the gain over splits; None with fewer than two.
        splits: The splits that it was measured on.
    """

    representation: str
    scores: Mapping[str, float]
    gain: float | None
    spread: float | None
    splits: tuple[Split, ...]


def make_splits(known: Items, fitter: Fitter) -> tuple[Split, ...]:
    """Hold out some classes and fit the candidates to the others, several times; once where that takes long."""
    vectors, seed = not known.are_images, fitter.work.seed
    teacher = fitter.teacher
    number = SPLITS if vectors and not (teacher is not None and teacher.trains_on_observations) else 1
    size = max(2, known.n_classes // HELD_OUT)
    draws = Draws(seed)
    held = [np.sort(draws.permutation(known.n_classes)[:size]).tolist() for _ in range(number)]
    splits: list[Split] = []
    hopeless = ""
    inner = fitter.quiet() if vectors else fitter
    with fitter.work.reporter.track("asking held-out known classes", len(held)) as tick:
        for number, classes in enumerate(held):
            others = known.of_classes([c for c in range(known.n_classes) if c not in set(classes)])
            learnt_from, kept_back = _keep_back(others, seed + number)
            candidates = inner.fit_all(learnt_from, without=hopeless)
            splits.append(Split(learnt_from, kept_back, known.of_classes(classes), candidates))
            if vectors and not number:
                scores = choose(splits, seed).scores
                if scores.get(fitter.projector, np.inf) < max(scores.values()) - HOPELESS:
                    hopeless = fitter.projector  # it takes long to learn
            tick(number + 1)
    return tuple(splits)


def choose(splits: Sequence[Split], seed: int) -> Choice:
    """The representation in which bags of held-out classes are grouped best by Ward's method, their number given.

    A few held-out classes say little, so differences are drawn towards what is usual (`expected_gains`).
    """
    acc: dict[str, list[float]] = {}  # a mean for each split: bags of one split are not independent
    for number, split in enumerate(splits):
        bags, answers = _bags(split.held_out, seed + number)
        for name, representation in split.candidates.all.items():
            points = representation(split.held_out.values)
            found = np.stack([ward(points[bag]).cut(split.held_out.n_classes) for bag in bags])
            acc.setdefault(name, []).append(float(score_episodes(answers, found).acc.mean()))
    candidates = splits[-1].candidates
    kept = max(expected := expected_gains(acc, {name: usual(name) for name in acc}), key=expected.__getitem__)
    gain = spread = None
    if candidates.learnt:
        of, over = (max(names, key=lambda name: fmean(acc[name])) for names in (candidates.learnt, candidates.plain))
        gain, spread = _difference(acc[of], acc[over])
    return Choice(kept, {name: fmean(acc[name]) for name in acc}, gain, spread, tuple(splits))


def expected_gains(acc: Mapping[str, Sequence[float]], behind: Mapping[str, float]) -> dict[str, float]:
    """What is expected of each representation, as a difference in ACC from the one that is usually best.

    The measured difference and the usual one are weighed by how exactly either is known.

    Args:
        acc: Of each representation, on each split.
        behind: How far each is usually behind the best, 0 or less.
    """
    best = max(acc, key=lambda name: behind[name])
    found = {}
    for name in acc:
        measured, error = _difference(acc[name], acc[best])
        weight = USUAL_SPREAD**2 / (USUAL_SPREAD**2 + (error or 0.0) ** 2)
        found[name] = weight * measured + (1 - weight) * (behind[name] - behind[best])
    return found


def _difference(of: Sequence[float], over: Sequence[float]) -> tuple[float, float | None]:
    """Mean paired difference, and its standard error; None for a single pair."""
    differences = [a - b for a, b in zip(of, over, strict=True)]
    if len(differences) < 2:
        return fmean(differences), None
    return fmean(differences), stdev(differences) / len(differences) ** 0.5


def _bags(held_out: Items, seed: int) -> tuple[Ints, Ints]:
    """Bags (SPLIT_BAGS, n) of items of all held-out classes, of unequal sizes, and the class of each item."""
    draws, classes = Draws(seed), held_out.n_classes
    # Sizes between a third and all of what a class has, ten at most; the same number of items in every bag.
    fractions = np.linspace(1 / 3, 1, classes)
    sizes = np.maximum(1, np.round(fractions * min(held_out.counts().min(), BAG_ITEMS))).astype(np.int64)
    bags = []
    for _ in range(SPLIT_BAGS):
        parts = []
        for label, size in enumerate(sizes[draws.permutation(classes)].tolist()):
            members = np.flatnonzero(held_out.labels == label)
            parts.append(members[draws.permutation(len(members))[:size]])
        bags.append(np.concatenate(parts))
    items = np.stack(bags)
    return items, held_out.labels[items]


def _keep_back(known: Items, seed: int) -> tuple[Items, Items]:
    """Items of each class to learn from, and one in `KEPT_BACK` kept back."""
    draws, back = Draws(seed), np.zeros(len(known), bool)
    for label in range(known.n_classes):
        members = np.flatnonzero(known.labels == label)
        back[members[draws.permutation(len(members))[: len(members) // KEPT_BACK]]] = True
    return known.where(~back), known.where(back)
