"""medi: this project's own method. It is not in the paper.

One or several networks learn from the known classes; what they make of images is prepared and put side by side
(`readout.py`), and clustered as MP's embedding is (`embedding.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.base import AT_DISCOVERY, Plan
from medi.methods.embedding import EmbeddingMethod, Grouping
from medi.methods.extra_classes import ExtraClasses, with_extra_classes
from medi.methods.pretraining import Pretraining, pretrain
from medi.methods.readout import Readout, ReadoutEmbedding
from medi.nets import Network
from medi.nets.embed import Embedding
from medi.train.schedule import Schedule

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


def supervised(steps: int) -> Pretraining:
    """Cross-entropy on the known classes, so many steps."""
    return Pretraining(batch=512, schedule=Schedule(steps, 0.2, "sgd", decay=5e-4, shape="onecycle"))


@dataclass(frozen=True)
class Medi(EmbeddingMethod):
    """Settings of medi.

    Attributes:
        members: How each network learns; equal members start from different seeds.
        readout: What is read off the networks.
        grouping: How points become clusters.
    """

    members: tuple[Member, ...] = (Member((supervised(1500),)),)
    readout: Readout = field(default_factory=Readout, metadata=AT_DISCOVERY)
    grouping: Grouping = field(
        default_factory=lambda: Grouping(balanced=True, recluster=True), kw_only=True, metadata=AT_DISCOVERY
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


_PHOTO = Augmentation(crop=4, flip=True, colour=0.4, grey=0.1, cutout=8)
_DIGIT = Augmentation(crop=2, rotate=15, scale=0.2, shear=0.2, colour=0.6, grey=0.1, invert=0.5, shuffle=0.8)
# After cross-entropy, a few tasks give the network the metric that clustering uses.
_TASKS = Pretraining("prototypes", batch=400, queries=15, temperature=16.0, schedule=Schedule(steps=200, rate=3e-4))
_CPU = Member(
    (Pretraining("prototypes", "conv4", batch=200, schedule=Schedule(steps=60, rate=3e-3)),), extra_classes="none"
)

Medi.presets = MappingProxyType(
    {
        "default": Medi(),
        "cpu": Medi((_CPU,), Readout(shift=1)),
        "glyphs": Medi((_CPU,), Readout(shift=1, weigh=0.1)),
        # A mirrored photo shows the same thing; a mirrored digit or character may be another one.
        "cifar10": Medi(
            3 * (Member((supervised(2000), _TASKS), "spliced", _PHOTO),), Readout(turned=True, levels=2, flip=True)
        ),
        "svhn": Medi(3 * (Member((supervised(2000),), "spliced", _DIGIT),), Readout(turned=True, shift=1)),
        "cifar100": Medi(
            3 * (Member((supervised(2500), _TASKS), "none", _PHOTO),),
            Readout(shift=1, flip=True),
            grouping=Grouping(balanced=True, recluster=True, neighbours=10),
        ),
        "omniglot": Medi(3 * (Member((supervised(1000),)),), Readout(turned=True)),
    }
)
