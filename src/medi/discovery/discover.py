"""Discovery in one call: known items with labels and novel ones without in, groups and a recogniser out.

discovery, recogniser = discover_groups(known, novel, DiscoveryConfig(), Context())
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medi.cluster.kmeans import squared_distances
from medi.cluster.ward import Tree, by_size, ward
from medi.data.augment import augment
from medi.data.imageset import ImageSet
from medi.discovery.count import FEWEST_CLASSES, Pool, by_silhouette, calibrate, estimate
from medi.discovery.diagnose import diagnose, stability_of
from medi.discovery.grouping import MOST_KNOWN, group, thin
from medi.discovery.held_out import PIXELS, Choice, candidate_names, choose, enough, fit, make_splits
from medi.discovery.large_pools import MOST_GROUPED, draw, join_groups
from medi.discovery.map import map_positions
from medi.discovery.recogniser import Recogniser, make_recogniser
from medi.discovery.rejection import left_out_distances
from medi.discovery.representations import Representation, as_they_are, chunks
from medi.discovery.result import DOUBTFUL_BELOW, ClassCount, Diagnosis, Discovery, Neighbour
from medi.discovery.training import DiscoveryConfig, configured_method, prepared, teach
from medi.errors import InputError
from medi.methods import method_of
from medi.methods.base import Grouper
from medi.runtime.context import Context
from medi.runtime.progress import Silent

__all__ = ["MOST_GROUPED", "DiscoveryConfig", "discover_groups"]

NEAREST_NAMED = 3
"""Nearest known classes named for each group."""
FEWEST_ITEMS = 3
"""Items that a known class needs to take part in choices and calibrations."""
AUGMENTED_GROUPINGS = 3
"""How often augmented images are grouped, to see whether the grouping is stable."""


def discover_groups(
    known: ImageSet, novel: Tensor, config: DiscoveryConfig, context: Context
) -> tuple[Discovery, Recogniser]:
    """Group novel items by what known classes teach.

    Args:
        known: Labelled items: vectors (n, d) float, or images (n, c, h, w) uint8. There may be none.
        novel: Unlabelled items (m, …) of the same kind. There may be none; of more than `MOST_GROUPED`, so many drawn
            at random are grouped, and the others join the nearest group.
        config: Number of classes, method, network.
        context: Device, seed, folder for checkpoints and progress.
    """
    known = _checked(known, novel, config)
    large = _large_classes(known, context.seed)
    choice = _choose(known, large, config, context)
    if len(known):
        representation = fit(choice.representation, known, config, context)
    else:
        representation = as_they_are(novel, config.features if novel.ndim == 2 else PIXELS)
    context.reporter.say(_announce(choice))
    if not len(novel):
        return _nothing(known, choice, representation)
    everything, drawn = novel, draw(len(novel), context.seed)
    novel = everything[drawn] if len(drawn) < len(everything) else everything
    points = representation(novel)
    pools = _pools(large, choice, representation, config, context)
    count = _count(points, ward(points), pools, config, context)
    regroup = _grouper(known, novel, points, count.k, choice, representation, config, context)
    labels = regroup(torch.arange(len(novel)))
    count = _as_found(count, labels)
    recogniser = make_recogniser(representation, known, points, torch.from_numpy(labels), choice)
    stability = stability_of(
        labels,
        regroup,
        _augmented(novel, count.k, choice, representation, config, context),
        resamples=min(3, config.resamples) if method_of(config.method).trains_on_observations else config.resamples,
        generator=context.generator(stream=5),
    )
    diagnosis = diagnose(choice, pools, novel, stability, count)
    discovery = _describe(points, labels, count, diagnosis, choice, recogniser, context)
    if len(novel) < len(everything):
        return join_groups(discovery, recogniser, everything, drawn)
    return discovery, recogniser


def _checked(known: ImageSet, novel: Tensor, config: DiscoveryConfig) -> ImageSet:
    """The known items with a class, on the CPU, classes without items left out; bad input is refused."""
    for items, what in ((known.images, "known"), (novel, "novel")):
        if len(items) and not (
            (items.is_floating_point() and items.ndim == 2) or (items.dtype == torch.uint8 and items.ndim == 4)
        ):
            raise InputError(
                f"{what} items are {items.dtype} of shape {tuple(items.shape)}: "
                "give float vectors (n, d) or uint8 images (n, c, h, w)."
            )
        if items.is_floating_point() and not all(bool(part.isfinite().all()) for part in chunks(items)):
            raise InputError(f"some {what} items hold NaN or infinite numbers: repair or drop them.")
    if len(known) and len(novel) and known.images.shape[1:] != novel.shape[1:]:
        raise InputError(
            f"known items have shape {tuple(known.images.shape[1:])}, novel ones {tuple(novel.shape[1:])}: "
            "prepare both the same way."
        )
    if not len(known) and not len(novel):
        raise InputError("there is neither a known nor a novel item: give some.")
    grouped = min(len(novel), MOST_GROUPED)
    if config.classes != "auto" and 0 < grouped < config.classes:
        raise InputError(
            f"{config.classes} classes were asked for but there are {grouped} novel items to group: ask for fewer."
        )
    known = known.to("cpu")
    counts = torch.bincount(known.labels[known.labels >= 0], minlength=known.n_classes)
    return known.of_classes(counts.nonzero().squeeze(1).tolist())


def _large_classes(known: ImageSet, seed: int) -> ImageSet:
    """The known classes that take part in choices and calibrations, `MOST_KNOWN` items of them or fewer."""
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
    return Choice(learnt[0] if images else plain[0], "ward", {}, None, None, ())


def _announce(choice: Choice) -> str:
    if not choice.scores:
        return f"too few known classes to choose by: items are compared by {choice.representation}."
    scores = ", ".join(f"{name} {100 * score:.1f}" for name, score in choice.scores.items())
    return f"ACC on held-out known classes: {scores}; kept: {choice.representation}, grouped by {choice.clustering}."


def _pools(
    large: ImageSet, choice: Choice, representation: Representation, config: DiscoveryConfig, context: Context
) -> list[Pool]:
    """Known classes as points of a representation that was not fitted to them."""
    if not choice.splits:
        return []
    split = choice.splits[0]
    if choice.representation in split.candidates.plain:
        return [Pool(representation(large.images), large.labels)]
    if large.images.ndim == 4 or large.n_classes < 2 * FEWEST_CLASSES:
        return [
            Pool(s.candidates.all[choice.representation](s.held_out.images), s.held_out.labels) for s in choice.splits
        ]
    order = torch.randperm(large.n_classes, generator=torch.Generator().manual_seed(context.seed)).tolist()
    half = large.n_classes // 2
    pools, quiet = [], replace(context, reporter=Silent(), folder=None)
    for mine, other in ((order[:half], order[half:]), (order[half:], order[:half])):
        taught = fit(choice.representation, large.of_classes(mine), config, quiet)
        unseen = large.of_classes(other)
        pools.append(Pool(taught(unseen.images), unseen.labels))
    return pools


def _count(points: Tensor, tree: Tree, pools: list[Pool], config: DiscoveryConfig, context: Context) -> ClassCount:
    """How many groups."""
    if config.classes != "auto":
        k = config.classes
        return ClassCount(k, k, k, (), (), True, f"{k} groups, as asked.")
    calibration = None
    if float(tree.costs.sum()) > 1e-12 * max(1.0, float(points.square().sum())):
        calibration = calibrate(pools, len(points), torch.Generator().manual_seed(context.seed))
    if calibration is None:
        lacking = "items" if len(points) < FEWEST_CLASSES else "known classes"
        count = by_silhouette(points, tree, why=f"; there are too few {lacking} to calibrate a better estimate")
    else:
        count = estimate(tree, calibration)
    if not count.certain:
        context.reporter.say(f"the number of groups is uncertain: {count.how} Give the number if you know it.")
    return count


def _grouper(
    known: ImageSet,
    novel: Tensor,
    points: Tensor,
    k: int,
    choice: Choice,
    representation: Representation,
    config: DiscoveryConfig,
    context: Context,
) -> Callable[[Tensor], NDArray[np.int64]]:
    """A function that groups the novel items of some indices (n,) into k."""
    if not method_of(config.method).trains_on_observations:
        clustering = _clustering(novel, choice, config, context)
        return lambda items: group(points[items], k, clustering, torch.Generator().manual_seed(context.seed))
    if known.n_classes < 2:
        raise InputError(f"method {config.method} learns from known classes: give two or more, or use mp or kmeans.")
    if novel.ndim == 2:
        known, novel = prepared(representation, known), representation.prepare(novel).float()
    learner = teach(known, k, config, context)
    encoded = learner.encode(novel.to(context.device))

    def discover(items: Tensor) -> NDArray[np.int64]:
        clustering = learner.discover(encoded, items[None].to(context.device), k, context.generator(stream=4))
        return by_size(clustering.labels[0].cpu().numpy())

    return discover


def _augmented(
    novel: Tensor, k: int, choice: Choice, representation: Representation, config: DiscoveryConfig, context: Context
) -> list[NDArray[np.int64]]:
    """Groupings of the images after augmentation; none for vectors, which are not augmented."""
    if novel.ndim != 4 or representation.embedding is None or method_of(config.method).trains_on_observations:
        return []
    clustering = _clustering(novel, choice, config, context)
    generator, found = torch.Generator().manual_seed(context.seed), []
    for _ in range(AUGMENTED_GROUPINGS):
        points = representation.embed(augment(novel.cpu(), config.augmentation, generator))
        found.append(group(points, k, clustering, generator))
    return found


def _clustering(novel: Tensor, choice: Choice, config: DiscoveryConfig, context: Context) -> str | Grouper:
    """How points become groups: the method's own way where it has one, or else what known classes chose."""
    own = configured_method(config, context.device, vectors=novel.ndim == 2).own_grouping()
    return choice.clustering if own is None else own


def _as_found(count: ClassCount, labels: NDArray[np.int64]) -> ClassCount:
    """The count, corrected where a method left groups empty."""
    found = len(np.unique(labels))
    if found == count.k:
        return count
    how = f"{count.how.rstrip('.')}; the method filled only {found} of them."
    return replace(count, k=found, low=min(count.low, found), certain=False, how=how)


def _describe(
    points: Tensor,
    labels: NDArray[np.int64],
    count: ClassCount,
    diagnosis: Diagnosis,
    choice: Choice,
    recogniser: Recogniser,
    context: Context,
) -> Discovery:
    """All that is reported of the items and the groups."""
    groups, k = torch.from_numpy(labels), count.k
    sizes = torch.bincount(groups, minlength=k)
    distances = left_out_distances(points, groups, recogniser.groups, sizes)
    probability = (-distances / recogniser.temperature).softmax(1)
    own = probability.gather(1, groups[:, None])
    from_own = squared_distances(points, recogniser.groups).gather(1, groups[:, None]).squeeze(1)
    medoids = [int(torch.where(groups == g, from_own, torch.inf).argmin()) for g in range(k)]
    nearest, neighbours = _neighbours(points, recogniser)
    return Discovery(
        labels=tuple(labels.tolist()),
        confidence=tuple(own.squeeze(1).tolist()),
        doubtful=tuple((own.squeeze(1) < DOUBTFUL_BELOW).tolist()),
        nearest_known=nearest,
        neighbours=neighbours,
        medoids=tuple(medoids),
        count=count,
        diagnosis=diagnosis,
        representation=choice.representation,
        representation_scores=dict(choice.scores),
        positions=map_positions(points, context.seed),
    )


def _neighbours(points: Tensor, recogniser: Recogniser) -> tuple[tuple[str, ...], tuple[tuple[Neighbour, ...], ...]]:
    """The nearest known class of each item, and the nearest few of each group."""
    names, classes = recogniser.names, recogniser.classes
    if not names:
        return ("",) * len(points), ((),) * len(recogniser.groups)
    nearest = tuple(names[i] for i in squared_distances(points, classes).argmin(1).tolist())
    apart = squared_distances(classes, classes).sqrt()
    pairs = apart[~torch.eye(len(classes), dtype=torch.bool)]
    unit = float(pairs.median()) if len(pairs) and float(pairs.median()) > 0 else 1.0
    near = (squared_distances(recogniser.groups, classes).sqrt() / unit).sort(1)
    neighbours = [
        tuple(Neighbour(names[i], d) for i, d in zip(places[:NEAREST_NAMED], far[:NEAREST_NAMED], strict=True))
        for places, far in zip(near.indices.tolist(), near.values.tolist(), strict=True)
    ]
    return nearest, tuple(neighbours)


def _nothing(known: ImageSet, choice: Choice, representation: Representation) -> tuple[Discovery, Recogniser]:
    """The result where no item is novel."""
    width = representation(known.images[:1]).shape[1]
    points, groups = torch.zeros(0, width, dtype=torch.float64), torch.zeros(0, dtype=torch.int64)
    recogniser = make_recogniser(representation, known, points, groups, choice)
    count = ClassCount(0, 0, 0, (), (), True, "No groups: there is no novel item.")
    diagnosis = Diagnosis("doubtful", None, choice.gain, None, None, ("There is no novel item to group.",))
    discovery = Discovery((), (), (), (), (), (), count, diagnosis, choice.representation, dict(choice.scores), ())
    return discovery, recogniser
