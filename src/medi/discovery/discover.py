"""Discovery in one call: known items with labels and a pool without in, groups and a recogniser out.

discovery, recogniser = discover_groups(known, pool, DiscoveryConfig(), Context())
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from medi.cluster.class_model import Anchors, Floats
from medi.cluster.moves import responsibilities
from medi.cluster.posterior import Ints, known_label
from medi.cluster.ward import by_size
from medi.data.imageset import ImageSet
from medi.discovery.canonical import in_order, unique_items
from medi.discovery.describe import as_found, describe, nothing
from medi.discovery.diagnose import distance_from_known, largest_overlap
from medi.discovery.grouping import Grouped, Wanted, blurred, group_points, quantile
from medi.discovery.held_out import PIXELS, Choice, candidate_names, choose, enough, fit, make_splits
from medi.discovery.large_pools import MOST_GROUPED, draw, join_groups
from medi.discovery.points import MOST_KNOWN, thin
from medi.discovery.recogniser import Recogniser
from medi.discovery.rehearsal import LEVEL, Rehearsed, Stage, lines, rehearse
from medi.discovery.representations import Representation, as_they_are, chunks, class_means
from medi.discovery.result import ClassCount, Discovery
from medi.discovery.training import DiscoveryConfig, configured_method, prepared, teach
from medi.discovery.untested import unrehearsed
from medi.discovery.verdict import WIDE, Figures
from medi.errors import InputError
from medi.methods import method_of
from medi.runtime.context import Context

__all__ = ["MOST_GROUPED", "DiscoveryConfig", "discover_groups"]

FEWEST_ITEMS = 3
"""Items that a known class needs to take part in choices and rehearsals."""
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
    """

    points: Floats
    grouped: Grouped
    anchors: Anchors
    confidence: Floats
    numbers: Floats
    count: ClassCount
    rehearsed: Rehearsed
    calibrated: bool


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
    large = _large_classes(known, context.seed)
    choice = _choose(known, large, config, context)
    if len(known):
        representation = fit(choice.representation, known, config, context)
    else:
        representation = as_they_are(pool, config.features if pool.ndim == 2 else PIXELS).framed(pool)
    wanted = Wanted(None if config.classes == "auto" else config.classes, config.only_novel or not len(known))
    items, copies, place = unique_items(pool)
    drawn = draw(len(items), context.seed)
    stages = _stages(choice)
    if not len(pool):
        rehearsed = _rehearsed(stages, np.zeros((0, 1)), known, representation, wanted, context)
        return nothing(known, choice, representation, _anchors(known, representation, rehearsed.shrink), rehearsed)
    points = representation(items[drawn]).numpy()
    asked = wanted.k
    if asked is not None:
        wanted = replace(wanted, k=min(asked, len(points)))
    with context.reporter.track("rehearsing on known classes, then grouping", 3) as tick:
        rehearsed = _rehearsed(stages, points, known, representation, wanted, context)
        tick(1)
        anchors = _anchors(known, representation, rehearsed.shrink)
        found = _find(
            points, copies[drawn.numpy()], anchors, rehearsed, wanted, asked, calibrated=bool(stages), context=context
        )  # fmt: skip
        tick(2)
        found = _by_method(found, items[drawn], known, choice, representation, config, wanted, context)
        recogniser = Recogniser.of(
            representation, points, found.grouped.labels, anchors, known.class_names, found.grouped.model,
            rehearsed.recognition, calibrated=bool(stages),
        )  # fmt: skip
        novel = torch.from_numpy(found.grouped.labels > known_label(0))
        figures = _figures(found, choice, stages, items[drawn][novel], known.n_classes, config)
        discovery = describe(found, figures, choice, known.class_names, context.seed, config.noun)
        tick(3)
    if len(drawn) < len(items):
        discovery, recogniser = join_groups(discovery, recogniser, items, drawn, only_novel=wanted.only_novel)
    return as_found(discovery, recogniser, place)


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


def _large_classes(known: ImageSet, seed: int) -> ImageSet:
    """The known classes that take part in choices and rehearsals, `MOST_KNOWN` items of them or fewer."""
    counts = torch.bincount(known.labels, minlength=known.n_classes)
    large = (counts >= FEWEST_ITEMS).nonzero().squeeze(1).tolist()
    indices = replace(known, images=torch.arange(len(known))).of_classes(large)  # the items are not copied yet
    keep = thin(indices.labels, MOST_KNOWN, torch.Generator().manual_seed(seed))
    return ImageSet(known.images[indices.images[keep]], indices.labels[keep], indices.class_names)


def _choose(known: ImageSet, large: ImageSet, config: DiscoveryConfig, context: Context) -> Choice:
    """What held-out known classes choose; where they are too few, features as they are, or the trained network."""
    if enough(large):
        return choose(make_splits(large, config, context), context)
    plain, learnt = candidate_names(known, config)
    images = known.images.ndim == 4 and large.n_classes >= 2 and bool(learnt)
    return Choice(learnt[0] if images else plain[0], {}, None, None, ())


def _stages(choice: Choice) -> list[Stage]:
    """The splits as points of the representation that was kept."""
    stages = []
    for split in choice.splits:
        represent = split.candidates.all[choice.representation]
        counts = torch.bincount(split.learnt_from.labels, minlength=split.learnt_from.n_classes).double()
        means = class_means(split.learnt_from, represent)
        back = represent(split.kept_back.images) if len(split.kept_back) else means[:0]
        stages.append(
            Stage(
                represent(split.held_out.images).numpy(),
                split.held_out.labels.numpy(),
                back.numpy(),
                split.kept_back.labels.numpy(),
                Anchors(means.numpy(), counts.numpy()),
            )
        )
    return stages


def _rehearsed(
    stages: list[Stage],
    points: Floats,
    known: ImageSet,
    representation: Representation,
    wanted: Wanted,
    context: Context,
) -> Rehearsed:
    if stages:
        return rehearse(stages, max(len(points), 4), wanted, context.seed)
    few = thin(known.labels, MOST_KNOWN, torch.Generator().manual_seed(0)) if len(known) else torch.arange(0)
    old = representation(known.images[few]).numpy() if len(few) else points[:0]
    return unrehearsed(points.reshape(len(points), old.shape[1]), old, known.labels[few].numpy(), wanted)


def _anchors(known: ImageSet, representation: Representation, shrink: float) -> Anchors:
    if not known.n_classes:
        blank = torch.zeros(1, *representation.shape, dtype=torch.uint8 if len(representation.shape) > 1 else None)
        return Anchors.none(representation(blank).shape[1])
    counts = torch.bincount(known.labels, minlength=known.n_classes).double()
    return Anchors(shrink * class_means(known, representation).numpy(), counts.numpy())


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
    grouped = group_points(points, anchors, rehearsed.model, wanted, spread=rehearsed.spread, copies=copies)
    numbers = blurred(grouped.numbers, rehearsed.spread) if wanted.k is None else grouped.numbers
    count = _count(numbers, grouped, asked, calibrated=calibrated)
    if not count.certain:
        context.reporter.say(f"The number of groups is uncertain. {count.how} Give --classes if you know it.")
    nothing_yet = np.zeros(len(points))
    return _judged(Found(points, grouped, anchors, nothing_yet, numbers, count, rehearsed, calibrated), wanted)


def _judged(found: Found, wanted: Wanted) -> Found:
    """With the largest group as 0, and the probability that each line is right."""
    grouped, rehearsed = found.grouped, found.rehearsed
    labels = grouped.labels.copy()
    labels[labels >= 0] = by_size(labels[labels >= 0])
    grouped = replace(grouped, labels=labels)
    asked = replace(wanted, k=None if wanted.k is None else found.count.k)
    sampled = lines(grouped, asked, rehearsed.spread, DRAWS, np.random.default_rng(0))
    anchors = Anchors.none(found.points.shape[1]) if wanted.only_novel else found.anchors
    power = np.array([rehearsed.trust.temperature])
    own = responsibilities(
        found.points, labels, anchors, grouped.model, grouped.rates.known, power, singles=wanted.singles
    )
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
    found: Found,
    items: Tensor,
    known: ImageSet,
    choice: Choice,
    representation: Representation,
    config: DiscoveryConfig,
    wanted: Wanted,
    context: Context,
) -> Found:
    """The groups as the method itself makes them, where it has a way of its own; numbers and kinds stay."""
    trains = method_of(config.method).trains_on_observations
    own = configured_method(config, context.device, vectors=items.ndim == 2).own_grouping()
    novel = np.flatnonzero(found.grouped.labels >= 0)
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


def _figures(
    found: Found, choice: Choice, stages: list[Stage], novel: Tensor, known_classes: int, config: DiscoveryConfig
) -> Figures:
    """What the verdict rests on."""
    rehearsed, spread = (None if np.isnan(value) else value for value in found.rehearsed.right)
    return Figures(
        expected=float(found.confidence.mean()),
        rehearsed=rehearsed,
        rehearsed_spread=spread,
        gain=choice.gain,
        gain_spread=choice.spread,
        distance=distance_from_known(choice.splits, novel),
        overlap=largest_overlap(stages[:2]),
        known_share=float((found.grouped.labels <= known_label(0)).mean()),
        low=found.count.low,
        k=found.count.k,
        high=found.count.high,
        number_given=config.classes != "auto",
        calibrated=found.calibrated,
        known_classes=known_classes,
        items=len(found.points),
    )
