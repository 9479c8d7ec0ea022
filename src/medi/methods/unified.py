"""What UNO and SimGCD share: one softmax over known and novel classes, trained on both side by side.

Logits are cosines between features and prototypes. Those of the known classes begin at the class means of the
pretrained network, so that any pretraining will do; those of the novel classes begin at random, as published. A step
takes so many known and so many novel images, in two views each.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.cluster.groups import group_means
from medi.data.augment import augment
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.bag_training import Bag, BagMethod, Stage, StepCount
from medi.methods.base import Plan
from medi.methods.pretraining import Pretraining, pretrain
from medi.nets import Network, last_stage
from medi.nets.embed import NetworkEmbedding
from medi.train.schedule import Schedule


def _sgd_stage(epochs: int) -> Stage:
    """RS's length and rates, on another curve: with fewer than 128 observations rates are smaller."""
    schedule = Schedule(1, 0.1, "sgd", decay=1e-4, shape="onecycle")
    return Stage(epochs, batch=128, least_steps=300, enough_items=128, schedule=schedule)


class KnownClasses(nn.Module):
    """A pretrained network and the mean features (classes, width) of the known classes."""

    means: Tensor

    def __init__(self, network: Network, means: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("means", means)


class Prototypes(nn.Module):
    """A direction for every class; items are compared with them by cosine."""

    def __init__(self, directions: Tensor) -> None:
        super().__init__()
        # Of length 1: the longer a direction, the less a step turns it.
        self.directions = nn.Parameter(functional.normalize(directions, dim=-1))

    def forward(self, points: Tensor) -> Tensor:
        """Cosines (n, classes) of points (n, d)."""
        return functional.normalize(points, dim=-1) @ functional.normalize(self.directions, dim=-1).mT


class Unified(nn.Module):
    """A network with prototypes of the known classes and a head for the novel ones.

    Args:
        network: Its own copy.
        known: From features (n, width) to cosines (n, known classes).
        novel: From features to cosines (n, k).
        temperature: By which cosines are divided in the softmax.
        project: From features to the points of a contrastive loss, where there is one.
    """

    def __init__(
        self,
        network: Network,
        known: Prototypes,
        novel: nn.Module,
        temperature: float,
        project: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.network, self.known, self.novel, self.project = network, known, novel, project or nn.Identity()
        self.known_classes = len(known.directions)
        self.temperature, self.steps = temperature, StepCount()

    def outputs(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Features (n, width) and cosines (n, known + k) of images (n, …), in full precision."""
        features = self.network(images).float()
        with torch.autocast(features.device.type, enabled=False):  # sharp softmaxes need every digit
            return features, torch.cat([self.known(features), self.novel(features)], -1)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, k) of the novel classes."""
        features = self.network(images).float()
        with torch.autocast(features.device.type, enabled=False):
            logits: Tensor = self.novel(features) / self.temperature
            return logits


@dataclass(frozen=True)
class UnifiedMethod(BagMethod[KnownClasses]):
    """Settings of UNO and SimGCD alike.

    Attributes:
        pretraining: What the network learns from known classes.
        stage: Training on the observations.
        known: Known images beside the observations in each of its gradient steps.
        only_last: Freeze all but the last stage of the network after pretraining.
        temperature: Cosines are divided by this in the softmax.
        hidden: Size of the hidden layers of the projection.
        projection: Size of what it ends in.
        augmentation: Random changes of images; None for the dataset's own.
    """

    pretraining: Pretraining = field(default_factory=Pretraining)
    stage: Stage = field(default_factory=lambda: _sgd_stage(40))
    known: int = 64
    only_last: bool = False
    temperature: float = 0.1
    hidden: int = 2048
    projection: int = 256
    augmentation: Augmentation | None = None

    def __post_init__(self) -> None:
        self.refuse_unless_positive("temperature")
        if self.known < 1 or self.hidden < 1 or self.projection < 1:
            raise InputError(
                f"known={self.known}, hidden={self.hidden}, projection={self.projection}: give at least 1 of each."
            )

    def refuse_unless_positive(self, *names: str) -> None:
        """Refuse settings that are not above 0."""
        for name in names:
            if not (value := getattr(self, name)) > 0:
                raise InputError(f"{name}={value:g}: give a number above 0.")

    def learn(self, known: ImageSet, plan: Plan) -> KnownClasses:
        """The network, trained on known classes, and where these lie."""
        network = pretrain(known, replace(plan, augmentation=self.augmentation or plan.augmentation), self.pretraining)
        labelled = known.labelled()
        points = NetworkEmbedding(network)(known.images[labelled])
        means = group_means(functional.normalize(points.float(), dim=-1), known.labels[labelled], known.n_classes)
        if self.only_last:
            network.requires_grad_(False)
            last_stage(network).requires_grad_(True)
        return KnownClasses(network, means.clone())

    def adapt(self, learnt: KnownClasses, bag: Bag) -> nn.Module:
        """Train on `known` known images and `stage.batch` of the bag's in each step."""
        known, images = bag.learner.known, bag.images
        augmentation, labelled = self.augmentation or bag.learner.augmentation, known.labelled()
        schedule = self.stage.schedule_for(len(images))
        told = None if bag.groups is None else functional.one_hot(bag.groups, bag.k).float()
        model = self.begin(deepcopy(learnt.network), Prototypes(learnt.means), bag)

        def loss(generator: torch.Generator) -> Tensor:
            novel = self.stage.draw(len(images), generator)
            drawn = torch.randint(len(labelled), (self.known,), generator=generator, device=generator.device)
            batch = torch.cat([known.images[labelled[drawn]], images[novel]])
            views = augment(torch.cat([batch, batch]), augmentation, generator)
            done = model.steps.next() / schedule.steps
            return self.loss(model, views, known.labels[labelled[drawn]], done, None if told is None else told[novel])

        bag.train(model, loss, schedule)
        return model

    @abstractmethod
    def begin(self, network: Network, known: Prototypes, bag: Bag) -> Unified:
        """The network with its heads before training on a bag."""

    @abstractmethod
    def loss(self, model: Unified, views: Tensor, labels: Tensor, done: float, told: Tensor | None) -> Tensor:
        """The loss of a step.

        Args:
            model: What is trained.
            views: (2 n, …), floats: one view of all items, the known ones first, then the other view.
            labels: (known,) classes of the known items.
            done: Share of the training that is over.
            told: (novel, k) the true groups of the novel items, for the oracle alone.
        """

    def identity(self, known: ImageSet, plan: Plan, **task: int) -> dict[str, Any]:
        """All that its trainings depend on, what the first stage saw included."""
        return super().identity(known, plan, **task) | {"first": self.pretraining.identity(known, plan)}


def beside(known: Tensor, novel: Tensor) -> Tensor:
    """Rows (a, known classes) over rows (b, k), with zeros where a row has no class: (a + b, known classes + k)."""
    pad = functional.pad
    return torch.cat([pad(known, (0, novel.shape[1])), pad(novel, (known.shape[1], 0))])
