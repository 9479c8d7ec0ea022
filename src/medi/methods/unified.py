"""What UNO and SimGCD share: one softmax over known and novel classes, trained on both side by side.

Logits are cosines between features and prototypes. Those of the known classes begin at the class means of the
pretrained network, so that any pretraining will do; those of the novel classes begin at random, as published. A step
takes so many known and so many novel images, in two views each.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.core.errors import InputError
from medi.data.imageset import ImageSet
from medi.kmeans.kmeans import group_means
from medi.methods.bag_training import ObservedBag, StepCount
from medi.methods.base import Plan
from medi.methods.pretrained import JointMethod
from medi.methods.pretraining import pretrain
from medi.nn import Network
from medi.nn.embed import NetworkEmbedding


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
    """A network with prototypes of the known classes and a head for the novel ones, from features to cosines.

    `project` makes the points of a contrastive loss, where there is one.
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
class UnifiedMethod(JointMethod[KnownClasses]):
    """Settings of UNO and SimGCD alike.

    Attributes:
        temperature: Cosines are divided by this in the softmax.
        hidden: Size of the hidden layers of the projection.
        projection: Size of what it ends in.
    """

    temperature: float = 0.1
    hidden: int = 2048
    projection: int = 256

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
        network = pretrain(known, plan, self.pretraining)
        labelled = known.labelled()
        points = NetworkEmbedding(network)(known.images[labelled])
        means = group_means(functional.normalize(points.float(), dim=-1), known.labels[labelled], known.n_classes)
        self.freeze(network)
        return KnownClasses(network, means.clone())

    def adapt(self, learnt: KnownClasses, bag: ObservedBag) -> nn.Module:
        """Train network and heads on known images and the bag's."""
        schedule, draw = self.stage.schedule_for(len(bag.images)), self.items_of(bag)
        told = None if bag.groups is None else functional.one_hot(bag.groups, bag.k).float()
        model = self.begin(deepcopy(learnt.network), Prototypes(learnt.means), bag)

        def loss(generator: torch.Generator) -> Tensor:
            step = draw(generator)
            done = model.steps.next() / schedule.steps
            return self.loss(model, step.views, step.labels, done, None if told is None else told[step.novel])

        bag.train(model, loss, schedule)
        return model

    @abstractmethod
    def begin(self, network: Network, known: Prototypes, bag: ObservedBag) -> Unified:
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


def swapped_loss(cosines: Tensor, temperature: float, targets: Callable[[Tensor], Tensor]) -> Tensor:
    """Mean cross-entropy of either view's softmax against targets made of the other view, which gets no gradient.

    Cosines (2 n, known classes + k) are of one view of n items, the known ones first, then of the other.
    """
    views = cosines.chunk(2)
    losses = [
        functional.cross_entropy(student / temperature, targets(source.detach()))
        for student, source in (views, views[::-1])
    ]
    return torch.stack(losses).mean()


def beside(known: Tensor, novel: Tensor) -> Tensor:
    """Rows (a, known classes) over rows (b, k), with zeros where a row has no class: (a + b, known classes + k)."""
    pad = functional.pad
    return torch.cat([pad(known, (0, novel.shape[1])), pad(novel, (known.shape[1], 0))])
