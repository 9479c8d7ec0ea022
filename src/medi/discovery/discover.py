"""Discovery in one call: known items with labels and a pool without in, groups and a recogniser out.

discovery, recogniser = discover_groups(known, pool, DiscoveryConfig(), Context())
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from medi.cluster.class_model import Anchors, Floats
from medi.cluster.posterior import Ints, known_label
from medi.cluster.ward import by_size
from medi.data.imageset import ImageSet
from medi.discovery.canonical import in_order, unique_items
from medi.discovery.describe import as_found, describe, nothing
from medi.discovery.diagnose import distance_from_known, largest_overlap
from medi.discovery.grouping import Grouped, Wanted, blurred, group_points, quantile
from medi.discovery.large_pools import MOST_GROUPED, draw, join_groups
from medi.discovery.learning import Learnt, learn
from medi.discovery.points import MOST_KNOWN, thin
from medi.discovery.recogniser import Recogniser
from medi.discovery.rehearsal import LEVEL, Rehearsed, lines, own_places, rehearse
from medi.discovery.representations import chunks, class_means
from medi.discovery.result import ClassCount, Discovery
from medi.discovery.training import DiscoveryConfig, configured_method, prepared, teach
from medi.discovery.trust import GUESS
from medi.discovery.untested import unrehearsed
from medi.discovery.verdict import FAR, WIDE, Figures
from medi.errors import InputError
from medi.methods import method_of
from medi.runtime.context import Context

__all__ = ["MOST_GROUPED", "DiscoveryConfig", "discover_groups"]

DRAWS = 60
"""Groupings drawn from the posterior, to see how often a line is right."""


@dataclass(frozen=True)
class Found:
    """The groups of a pool, each of its items once, and all that is known about them.

    Attributes:
        points: (n, d) the items.
        grouped: Their groups.
        anchors: The known classes.
        confidence: (n,) probability that each line is right.
        numbers: (k + 1,) probability of each number of groups.
        count: How many groups, and why.
        rehearsed: What rehearsals said.
        calibrated: Whether there were any.
        only_novel: Whether the pool was taken to hold only novel classes.
    """

    points: Floats
    grouped: Grouped
    anchors: Anchors
    confidence: Floats
    numbers: Floats
    count: ClassCount
    rehearsed: Rehearsed
    calibrated: bool
    only_novel: bool


def discover_groups(
    known: ImageSet, pool: Tensor, config: DiscoveryConfig, context: Context
) -> tuple[Discovery, Recogniser]:
    """Group the items of a pool by what known classes teach.

    The order of the items does not matter: they are put into an order of their own first, and copies of an item count
    once and get the same answer.

    Args:
        known: Labelled items: vectors (n, d) float, or images (n, c, h, w) uint8. There may be none.
        pool: Unlabelled items (m, …) of the same kind. There may be none; of more than `MOST_GROUPED`, so many drawn
            at random are grouped, and the others join the group that they fit best.
        config: Number of classes, method, network.
        context: Device, seed, folder for checkpoints and progress.
    """
    known = in_order(_checked(known, pool, config))
    wanted = Wanted(None if config.classes == "auto" else config.classes, config.only_novel or not len(known))
    items, copies, place = unique_items(pool)
    drawn = draw(len(items), context.seed)
    learnt = learn(known, items[drawn], config, context)
    if not len(pool):
        rehearsed = _rehearsed(learnt, np.zeros((0, 1)), wanted, context)
        return nothing(known, learnt.choice, learnt.representation, _anchors(learnt, rehearsed.shrink), rehearsed)
    found = find_groups(learnt, items[drawn], copies[drawn.numpy()], wanted, context)
    found = _by_method(found, items[drawn], learnt, config, wanted, context)
    discovery, recogniser = _described(found, learnt, items[drawn], config, context)
    if len(drawn) < len(items):
        discovery, recogniser = join_groups(discovery, recogniser, items, drawn, only_novel=wanted.only_novel)
    return as_found(discovery, recogniser, place)


def find_groups(learnt: Learnt, items: Tensor, copies: Ints, wanted: Wanted, context: Context) -> Found:
    """Rehearse, and group different items (n, …), of which there are so many copies (n,)."""
    points = learnt.representation(items).numpy()
    asked = wanted.k
    if asked is not None:
        wanted = replace(wanted, k=min(asked, len(points)))
    with context.reporter.track("rehearsing on known classes, then grouping", 2) as tick:
        rehearsed = _rehearsed(learnt, points, wanted, context)
        tick(1)
        anchors = _anchors(learnt, rehearsed.shrink)
        found = _find(
            points, copies, anchors, rehearsed, wanted, asked, calibrated=bool(learnt.stages), context=context
        )
        tick(2)
    return found


def _described(
    found: Found, learnt: Learnt, items: Tensor, config: DiscoveryConfig, context: Context
) -> tuple[Discovery, Recogniser]:
    recogniser = recogniser_of(found, learnt)
    novel = torch.from_numpy(found.grouped.labels > known_label(0))
    figures = _figures(found, learnt, items[novel], config)
    if figures.distance is not None and figures.distance > FAR:  # rehearsals say nothing about things so unlike them
        found = replace(found, confidence=np.minimum(found.confidence, GUESS))
        figures = replace(figures, expected=float(found.confidence.mean()))
    return describe(found, figures, learnt.choice, learnt.known.class_names, context.seed, config.noun), recogniser


def recogniser_of(found: Found, learnt: Learnt) -> Recogniser:
    """What recognises further items of the groups and the known classes."""
    return Recogniser.of(
        learnt.representation,
        found.points,
        found.grouped.labels,
        found.anchors,
        learnt.known.class_names,
        found.rehearsed.model,
        found.rehearsed.recognition,
        calibrated=found.calibrated,
    )


def _checked(known: ImageSet, pool: Tensor, config: DiscoveryConfig) -> ImageSet:
    """The known items with a class, on the CPU, classes without items left out; bad input is refused."""
    for items, what in ((known.images, "known"), (pool, "novel")):
        if len(items) and not (
            (items.is_floating_point() and items.ndim == 2) or (items.dtype == torch.uint8 and items.ndim == 4)
        ):
            raise InputError(
                f"{what} items are {items.dtype} of shape {tuple(items.shape)}: "
                "give float vectors (n, d) or uint8 images (n, c, h, w)."
            )
        if items.is_floating_point() and not all(bool(part.isfinite().all()) for part in chunks(items)):
            raise InputError(f"some {what} items hold NaN or infinite numbers: repair or drop them.")
    if len(known) and len(pool) and known.images.shape[1:] != pool.shape[1:]:
        raise InputError(
            f"known items have shape {tuple(known.images.shape[1:])}, novel ones {tuple(pool.shape[1:])}: "
            "prepare both the same way."
        )
    if not len(known) and not len(pool):
        raise InputError("there is neither a known nor a novel item: give some.")
    grouped = min(len(pool), MOST_GROUPED)
    if config.classes != "auto" and 0 < grouped < config.classes:
        raise InputError(
            f"{config.classes} classes were asked for but there are {grouped} novel items to group: ask for fewer."
        )
    known = known.to("cpu")
    counts = torch.bincount(known.labels[known.labels >= 0], minlength=known.n_classes)
    return known.of_classes(counts.nonzero().squeeze(1).tolist())


def _rehearsed(learnt: Learnt, points: Floats, wanted: Wanted, context: Context) -> Rehearsed:
    if learnt.stages:
        return rehearse(learnt.stages, max(len(points), 4), wanted, context.seed)
    known, represent = learnt.known, learnt.representation
    few = thin(known.labels, MOST_KNOWN, torch.Generator().manual_seed(0)) if len(known) else torch.arange(0)
    old = represent(known.images[few]).numpy() if len(few) else points[:0]
    return unrehearsed(points.reshape(len(points), old.shape[1]), old, known.labels[few].numpy(), wanted)


def _anchors(learnt: Learnt, shrink: float) -> Anchors:
    known, represent = learnt.known, learnt.representation
    if not known.n_classes:
        blank = torch.zeros(1, *represent.shape, dtype=torch.uint8 if len(represent.shape) > 1 else None)
        return Anchors.none(represent(blank).shape[1])
    counts = torch.bincount(known.labels, minlength=known.n_classes).double()
    return Anchors(shrink * class_means(known, represent).numpy(), counts.numpy())


def _find(
    points: Floats,
    copies: Ints,
    anchors: Anchors,
    rehearsed: Rehearsed,
    wanted: Wanted,
    asked: int | None,
    *,
    calibrated: bool,
    context: Context,
) -> Found:
    """Group the points; the largest group is 0. More groups than points may have been `asked` for."""
    grouped = group_points(
        points,
        anchors,
        rehearsed.model,
        wanted,
        spread=rehearsed.spread,
        mistaken=rehearsed.mistaken,
        copies=copies,
    )
    numbers = blurred(grouped.numbers, rehearsed.spread) if wanted.k is None else grouped.numbers
    count = _count(numbers, grouped, asked, calibrated=calibrated)
    if not count.certain:
        context.reporter.say(f"The number of groups is uncertain. {count.how} Give the number if you know it.")
    nothing_yet = np.zeros(len(points))
    found = Found(points, grouped, anchors, nothing_yet, numbers, count, rehearsed, calibrated, wanted.only_novel)
    return _judged(found, wanted)


def _judged(found: Found, wanted: Wanted) -> Found:
    """With the largest group as 0, and the probability that each line is right."""
    grouped, rehearsed = found.grouped, found.rehearsed
    labels = grouped.labels.copy()
    labels[labels >= 0] = by_size(labels[labels >= 0])
    grouped = replace(grouped, labels=labels)
    asked = replace(wanted, k=None if wanted.k is None else found.count.k)
    sampled = lines(grouped, asked, rehearsed.spread, DRAWS, np.random.default_rng(0))
    own = own_places(found.points, grouped, np.array([rehearsed.trust.temperature]), wanted)
    return replace(found, grouped=grouped, confidence=rehearsed.trust(sampled, own[:, 0]))


def _count(numbers: Floats, grouped: Grouped, asked: int | None, *, calibrated: bool) -> ClassCount:
    k = int(grouped.labels.max(initial=-1)) + 1
    if asked is not None:
        how = f"{k} group{'s' * (k != 1)}"
        if k == asked:
            how += ", as asked."
        else:
            others = "are copies" if len(grouped.labels) < asked else "look known"
            how += f", not {asked} as asked: the others {others}."
        return ClassCount(k, k, k, (), (), True, how)
    low, high = quantile(numbers, (1 - LEVEL) / 2), quantile(numbers, (1 + LEVEL) / 2)
    low, high = min(low, k), max(high, k)
    shown = [number for number in range(len(numbers)) if numbers[number] >= 5e-4 or low <= number <= high]
    certain = calibrated and high <= WIDE * max(low, 1)
    how = f"There are probably {low} to {high} groups, and {k} is in the middle of what is likely."
    if low == high:
        how = f"There are very probably {k} groups." if k != 1 else "There is very probably 1 group."
    if not calibrated:
        how += " There are too few known classes to rehearse with, so this is a guess."
    return ClassCount(k, low, high, tuple(shown), tuple(float(numbers[i]) for i in shown), certain, how)


def _by_method(
    found: Found, items: Tensor, learnt: Learnt, config: DiscoveryConfig, wanted: Wanted, context: Context
) -> Found:
    """The groups as the method itself makes them, where it has a way of its own; numbers and kinds stay."""
    trains = method_of(config.method).trains_on_observations
    own = configured_method(config, context.device, vectors=items.ndim == 2).own_grouping()
    novel = np.flatnonzero(found.grouped.labels >= 0)
    known, representation = learnt.known, learnt.representation
    if trains and known.n_classes < 2:
        raise InputError(f"method {config.method} learns from known classes: give two or more, or use mp or kmeans.")
    if (own is None and not trains) or not len(novel):
        return found
    k, generator = found.count.k, context.generator(stream=4)
    if own is not None and not trains:
        points = torch.from_numpy(found.points[novel]).to(generator.device)
        labels = own(points[None], k, generator, False)[0].cpu().numpy()
    else:
        if items.ndim == 2:
            known, items = prepared(representation, known), representation.prepare(items).float()
        learner = teach(known, k, config, context)
        encoded = learner.encode(items.to(context.device))
        bag = torch.from_numpy(novel)[None].to(context.device)
        labels = learner.discover(encoded, bag, k, generator).labels[0].cpu().numpy()
    changed = found.grouped.labels.copy()
    changed[novel] = by_size(labels.astype(np.int64))
    filled = int(changed.max()) + 1
    count = found.count
    if filled < count.k:
        how = f"{count.how.rstrip('.')}; the method filled only {filled} of them."
        count = replace(count, k=filled, low=min(count.low, filled), certain=False, how=how)
    return _judged(replace(found, grouped=replace(found.grouped, labels=changed), count=count), wanted)


def _known_share(found: Found, already_known: int) -> float:
    known = int((found.grouped.labels <= known_label(0)).sum()) + already_known
    return known / (len(found.points) + already_known)


def _figures(found: Found, learnt: Learnt, novel: Tensor, config: DiscoveryConfig) -> Figures:
    """What the verdict rests on."""
    rehearsed, spread = (None if np.isnan(value) else value for value in found.rehearsed.right)
    return Figures(
        expected=float(found.confidence.mean()),
        rehearsed=rehearsed,
        rehearsed_spread=spread,
        gain=learnt.choice.gain,
        gain_spread=learnt.choice.spread,
        distance=distance_from_known(learnt.choice.splits, novel),
        overlap=largest_overlap(learnt.stages[:2]),
        known_share=_known_share(found, config.already_known),
        low=found.count.low,
        k=found.count.k,
        high=found.count.high,
        number_given=config.classes != "auto",
        calibrated=found.calibrated,
        known_classes=learnt.known.n_classes,
        items=len(found.points),
    )
