"""medi: this project's own method. It is not in the paper.

One or several networks learn from the known classes; what they make of images is prepared and put side by side
(`readout.py`), and clustered as MP's embedding is (`embedding.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import ClassVar, Literal

import torch

from medi.core.errors import InputError
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods.base import AT_DISCOVERY, Plan
from medi.methods.embedding import EmbeddingMethod, GroupingConfig
from medi.methods.pretraining import Pretraining, pretrain
from medi.methods.readout import Readout, ReadoutEmbedding
from medi.nn import Network
from medi.nn.embed import Embedding
from medi.nn.schedule import Schedule
from medi.presets import Presets, read_presets

BETWEEN_MEMBERS = 1000
"""What is added to the seed for the next member of the same kind: more than anyone runs seeds."""


@dataclass(frozen=True)
class Member:
    """How one network learns.

    Attributes:
        stages: What it learns, one after the other; all of the same network.
        extra_classes: Further classes made of the known ones.
        augmentation: Random changes of training images; None for the dataset's own.
    """

    stages: tuple[Pretraining, ...]
    extra_classes: ExtraClasses = "turned"
    augmentation: Augmentation | None = None

    def __post_init__(self) -> None:
        if not self.stages:
            raise InputError("a member without any stage learns nothing: give it one.")

    def learn(self, known: ImageSet, plan: Plan) -> Network:
        """The network, trained on the known classes and what is made of them."""
        plan = replace(plan, augmentation=self.augmentation or plan.augmentation)
        return pretrain(with_extra_classes(known, self.extra_classes), plan, *self.stages)


_SUPERVISED = Pretraining(batch=512, schedule=Schedule(1500, 0.2, "sgd", decay=5e-4, shape="onecycle"))


@dataclass(frozen=True)
class Medi(EmbeddingMethod):
    """Settings of medi.

    Attributes:
        members: How each network learns; equal members start from different seeds.
        readout: What is read off the networks.
        grouping: How points become clusters.
    """

    presets: ClassVar[Presets] = read_presets("medi")

    members: tuple[Member, ...] = (Member((_SUPERVISED,)),)
    readout: Readout = field(default_factory=Readout, metadata=AT_DISCOVERY)
    grouping: GroupingConfig = field(
        default_factory=lambda: GroupingConfig(balanced=True, recluster=True), kw_only=True, metadata=AT_DISCOVERY
    )

    def learn(self, known: ImageSet, plan: Plan) -> Embedding:
        """Train every network, one after the other, then take statistics of what they make of known images."""
        method, context = (self.on_vectors() if known.images.ndim == 2 else self), plan.context
        networks = [
            member.learn(known, replace(plan, context=replace(context, seed=seed)))
            for member, seed in method._with_seeds(context.seed)
        ]
        return ReadoutEmbedding.fit(networks, known, method.readout)

    def on_vectors(self) -> Medi:
        """The method without what only images have: an MLP reads vectors, which are not turned, changed or shifted."""
        members = tuple(
            Member(
                tuple(replace(stage, network="mlp", mix=0.0) for stage in member.stages),
                extra_classes="none",
                augmentation=Augmentation(),
            )
            for member in self.members
        )
        readout = replace(self.readout, levels=1, shift=0, flip=False, turned=False)
        return replace(self, members=members, readout=readout)

    def _with_seeds(self, seed: int) -> Iterator[tuple[Member, int]]:
        """Every member and its seed: the run's own for the first of its kind."""
        for number, member in enumerate(self.members):
            yield member, seed + BETWEEN_MEMBERS * self.members[:number].count(member)


ExtraClasses = Literal["none", "turned", "spliced"]
MOST_SPLICED = 20
"""Splicing squares the number of classes, and multiplies the images by it."""


def with_extra_classes(known: ImageSet, extra: ExtraClasses) -> ImageSet:
    """The known classes and what is made of them as further classes.

    Turned: each by 90, 180 and 270 degrees. Spliced: the upper half of one class on the lower half of another, for
    every ordered pair, and all of them turned.
    """
    match extra:
        case "none":
            return known
        case "turned":
            return known.with_rotations()
        case "spliced":
            return _spliced(known).with_rotations()


def _spliced(known: ImageSet) -> ImageSet:
    """The classes and, for every ordered pair of them, upper halves of one on lower halves of the other."""
    if known.n_classes > MOST_SPLICED:
        raise InputError(
            f"{known.n_classes} known classes are too many to splice every two of them (at most {MOST_SPLICED}): "
            "use extra_classes='turned' or 'none'."
        )
    images, labels, names = [known.images], [known.labels], list(known.class_names)
    members = [(known.labels == c).nonzero().squeeze(1) for c in range(known.n_classes)]
    generator = torch.Generator().manual_seed(0)
    half = known.images.shape[-2] // 2
    for one, other in permutations(range(known.n_classes), 2):
        upper, lower = members[one], members[other]
        if len(upper) and len(lower):
            partners = lower[torch.randint(len(lower), (len(upper),), generator=generator).to(lower.device)]
            images.append(torch.cat([known.images[upper][:, :, :half], known.images[partners][:, :, half:]], dim=-2))
            labels.append(torch.full_like(upper, len(names)))
            names.append(f"{known.class_names[one]} on {known.class_names[other]}")
    return ImageSet(torch.cat(images), torch.cat(labels), tuple(names))
