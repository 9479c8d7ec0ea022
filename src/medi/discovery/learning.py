"""What known classes teach before the pool is looked at: what items are compared by, and the stages of rehearsals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from medi.cluster.class_model import Anchors
from medi.data.imageset import ImageSet
from medi.discovery.held_out import PIXELS, Choice, candidate_names, choose, enough, fit, make_splits
from medi.discovery.points import MOST_KNOWN, thin
from medi.discovery.rehearsal import Stage
from medi.discovery.representations import Representation, as_they_are, class_means
from medi.discovery.training import DiscoveryConfig
from medi.runtime.context import Context

FEWEST_ITEMS = 3
"""Items that a known class needs to take part in choices and rehearsals."""


@dataclass(frozen=True)
class Learnt:
    """What known classes taught.

    Attributes:
        known: Their items.
        choice: What held-out known classes chose.
        representation: What items are compared by.
        stages: The splits as points of it; none where there are too few known classes.
    """

    known: ImageSet
    choice: Choice
    representation: Representation
    stages: tuple[Stage, ...]


def learn(known: ImageSet, pool: Tensor, config: DiscoveryConfig, context: Context) -> Learnt:
    """Choose what items are compared by, and fit it to the known classes, or without any to the pool."""
    large = _large_classes(known, context.seed)
    choice = _choose(known, large, config, context)
    representation = _representation(choice, known, pool, config, context)
    return Learnt(known, choice, representation, tuple(_stages(choice)))


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


def _representation(
    choice: Choice, known: ImageSet, items: Tensor, config: DiscoveryConfig, context: Context
) -> Representation:
    """What was chosen, fitted to the known classes; items (n, …) of the pool frame it too where those are too few."""
    if not len(known):
        return as_they_are(items, config.features if items.ndim == 2 else PIXELS).framed(items)
    fitted = fit(choice.representation, known, config, context)
    if choice.splits or not len(items):
        return fitted
    # One class by itself shows neither where the middle of all classes is nor how far apart they lie.
    return replace(fitted, centre=None, scale=1.0).framed(torch.cat([known.images, items.cpu()]))


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
