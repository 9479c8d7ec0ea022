"""Held-out known classes choose what items are compared by.

Some known classes play novel: candidates are fitted to the others, and bags of held-out items are grouped. The same
splits are the stages of the rehearsals (`medi.discovery.rehearsal`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medi.cluster.ward import ward
from medi.data.imageset import ImageSet
from medi.data.splits import FEWEST_KNOWN
from medi.discovery.representations import Representation, as_they_are, unit_length, whitened
from medi.discovery.training import DiscoveryConfig, configured_method, projector, trained
from medi.methods import method_of
from medi.metrics import score_episodes
from medi.runtime.context import Context
from medi.runtime.progress import Silent

SPLITS, HELD_OUT = 6, 3
"""Splits of the known classes, and one in so many classes that is held out in each, at least two."""
SPLIT_BAGS, BAG_ITEMS = 8, 10
"""Bags grouped in each split, and the most items of a class in them."""
PIXELS, UNIT, WHITENED, PROJECTED = "pixels", ", unit length", ", whitened", " + projector"
ROOTED = ", square roots"
"""Names of representations, or what is added to the name of the features."""
STANDARD_ERRORS = 1.0
"""A difference counts if it is larger than so many of its standard errors over splits."""
HOPELESS = 0.03
"""How far behind the best, in ACC on the first split, a projector is not tried on the others."""
KEPT_BACK = 5
"""One in so many items of the classes learnt from is kept back, to ask whether known classes are recognised."""


@dataclass(frozen=True)
class Candidates:
    """Representations fitted to the same classes.

    Attributes:
        plain: By name; they do not look at classes.
        learnt: By name; what known classes taught.
    """

    plain: Mapping[str, Representation]
    learnt: Mapping[str, Representation]

    @property
    def all(self) -> dict[str, Representation]:
        """Both kinds, plain ones first."""
        return {**self.plain, **self.learnt}


@dataclass(frozen=True)
class Split:
    """Known classes, some of which play novel.

    Attributes:
        learnt_from: Items that the candidates were fitted to.
        kept_back: Further items of the same classes; may be empty.
        held_out: Items of the other classes.
        candidates: What was fitted.
    """

    learnt_from: ImageSet
    kept_back: ImageSet
    held_out: ImageSet
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


def fit_candidates(
    known: ImageSet, config: DiscoveryConfig, context: Context, without: frozenset[str] = frozenset()
) -> Candidates:
    """Every representation that may be compared, fitted to the known classes."""
    plain, learnt = candidate_names(known, config)
    learnt = tuple(name for name in learnt if name not in without)
    if known.images.ndim == 4 and learnt:  # one training serves both
        network = fit(learnt[0], known, config, context)
        unit = replace(network, name=learnt[1], unit_after=True, centre=None, scale=1.0)
        learnt_fitted = {learnt[0]: network, learnt[1]: unit}
    else:
        learnt_fitted = {name: fit(name, known, config, context) for name in learnt}
    return Candidates({name: fit(name, known, config, context) for name in plain}, learnt_fitted)


def candidate_names(known: ImageSet, config: DiscoveryConfig) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the representations that do not look at classes, and of those that are learnt from them."""
    vectors, base = known.images.ndim == 2, config.features
    learns = configured_method(config, torch.device("cpu"), vectors=vectors).learns
    if vectors:
        learnt = (f"{base}{WHITENED}", f"{base}{ROOTED}{WHITENED}", *([f"{base}{PROJECTED}"] if learns else []))
        return (base, f"{base}{UNIT}"), learnt
    network = f"{config.network} trained by {config.method}"
    return (PIXELS,), (network, f"{network}{UNIT}") if learns else ()


def fit(name: str, known: ImageSet, config: DiscoveryConfig, context: Context) -> Representation:
    """The representation of a name, fitted to known classes, with their points about the origin."""
    return _fit(name, known, config, context).framed(known.images)


def _fit(name: str, known: ImageSet, config: DiscoveryConfig, context: Context) -> Representation:
    if known.images.ndim == 2:
        if name == f"{config.features}{UNIT}":
            return unit_length(known, name)
        if name in (f"{config.features}{WHITENED}", f"{config.features}{ROOTED}{WHITENED}"):
            return whitened(known, name, root=ROOTED in name)
        if name == f"{config.features}{PROJECTED}":
            return projector(known, config, context, name)
        return as_they_are(known.images, name)
    if name == PIXELS:
        return as_they_are(known.images, name)
    return replace(trained(known, config, context, name), unit_after=name.endswith(UNIT))


def make_splits(known: ImageSet, config: DiscoveryConfig, context: Context) -> tuple[Split, ...]:
    """Hold out some classes and fit the candidates to the others, several times; once where that takes long."""
    vectors = known.images.ndim == 2
    generator = torch.Generator().manual_seed(context.seed)
    number = SPLITS if vectors and not method_of(config.method).trains_on_observations else 1
    size = max(2, known.n_classes // HELD_OUT)
    held = [torch.randperm(known.n_classes, generator=generator)[:size].sort().values.tolist() for _ in range(number)]
    splits: list[Split] = []
    dropped: frozenset[str] = frozenset()
    with context.reporter.track("asking held-out known classes", len(held)) as tick:
        for number, classes in enumerate(held):
            others = known.of_classes([c for c in range(known.n_classes) if c not in set(classes)])
            learnt_from, kept_back = _keep_back(others, context.seed + number)
            inner = replace(context, reporter=Silent(), folder=None) if vectors else context
            candidates = fit_candidates(learnt_from, config, inner, without=dropped)
            splits.append(Split(learnt_from, kept_back, known.of_classes(classes), candidates))
            if vectors and not number:
                dropped = _hopeless(splits[0], f"{config.features}{PROJECTED}", context)
            tick(number + 1)
    return tuple(splits)


def _hopeless(split: Split, name: str, context: Context) -> frozenset[str]:
    """The name of what takes long to learn, where it is so far behind in one split that others need not try it."""
    scores = choose([split], context).scores
    return frozenset([name] if name in scores and scores[name] < max(scores.values()) - HOPELESS else [])


def choose(splits: Sequence[Split], context: Context) -> Choice:
    """The representation in which bags of held-out classes are grouped best by Ward's method, their number given.

    The simplest representation is kept unless a later one is better by more than `STANDARD_ERRORS` over splits.
    """
    acc: dict[str, list[float]] = {}  # a mean for each split: bags of one split are not independent
    for number, split in enumerate(splits):
        bags, answers = _bags(split.held_out, torch.Generator().manual_seed(context.seed + number))
        for name, representation in split.candidates.all.items():
            points = representation(split.held_out.images)
            found = np.stack([ward(points[bag]).cut(split.held_out.n_classes) for bag in bags])
            acc.setdefault(name, []).append(float(score_episodes(answers, found).acc.mean()))
    candidates = splits[-1].candidates
    kept = _simplest(candidates.plain, acc)
    gain = spread = None
    if candidates.learnt:
        best = max(candidates.learnt, key=lambda name: fmean(acc[name]))
        gain, spread = _difference(acc[best], acc[kept])
        kept = _simplest((kept, *candidates.learnt), acc)
    return Choice(kept, {name: fmean(acc[name]) for name in acc}, gain, spread, tuple(splits))


def _simplest(names: Iterable[str], acc: Mapping[str, Sequence[float]]) -> str:
    """The first name, or a later one that is better beyond chance."""
    kept, *later = names
    for name in later:
        gain, spread = _difference(acc[name], acc[kept])
        if gain > STANDARD_ERRORS * (spread or 0.0):
            kept = name
    return kept


def _difference(of: Sequence[float], over: Sequence[float]) -> tuple[float, float | None]:
    """Mean paired difference, and its standard error; None for a single pair."""
    differences = [a - b for a, b in zip(of, over, strict=True)]
    if len(differences) < 2:
        return fmean(differences), None
    return fmean(differences), stdev(differences) / len(differences) ** 0.5


def enough(known: ImageSet) -> bool:
    """Whether there are enough known classes to hold some out."""
    return known.n_classes >= FEWEST_KNOWN


def _bags(held_out: ImageSet, generator: torch.Generator) -> tuple[Tensor, NDArray[np.int64]]:
    """Bags (SPLIT_BAGS, n) of items of all held-out classes, of unequal sizes, and the class of each item."""
    counts = torch.bincount(held_out.labels, minlength=held_out.n_classes)
    # Sizes between a third and all of what a class has, ten at most; the same number of items in every bag.
    fractions = torch.linspace(1 / 3, 1, held_out.n_classes)
    sizes = (fractions * counts.min().clamp(max=BAG_ITEMS)).round().long().clamp(min=1)
    bags = []
    for _ in range(SPLIT_BAGS):
        shuffled = sizes[torch.randperm(len(sizes), generator=generator)]
        parts = []
        for label, size in enumerate(shuffled.tolist()):
            members = (held_out.labels == label).nonzero().squeeze(1)
            parts.append(members[torch.randperm(len(members), generator=generator)[:size]])
        bags.append(torch.cat(parts))
    items = torch.stack(bags)
    return items, held_out.labels[items].numpy()


def _keep_back(known: ImageSet, seed: int) -> tuple[ImageSet, ImageSet]:
    """Items of each class to learn from, and one in `KEPT_BACK` kept back."""
    generator = torch.Generator().manual_seed(seed)
    back = torch.zeros(len(known), dtype=torch.bool)
    for label in range(known.n_classes):
        members = (known.labels == label).nonzero().squeeze(1)
        back[members[torch.randperm(len(members), generator=generator)[: len(members) // KEPT_BACK]]] = True
    return _part(known, ~back), _part(known, back)


def _part(known: ImageSet, keep: Tensor) -> ImageSet:
    return ImageSet(known.images[keep], known.labels[keep], known.class_names)
