"""RS: rank statistics (Han et al. 2020).

A network learns from images without labels (RotNet), then its last stage learns the known classes, then two heads
learn together: one the known classes, one the novel ones. Two novel images are taken to be of one class where the sets
of their largest features are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.core.errors import InputError
from medi.data.imageset import ImageSet
from medi.methods.bag_training import BagStage, ObservedBag, StepCount, ramp, sgd_stage
from medi.methods.base import Plan
from medi.methods.pair_losses import label_pairs, rank_pairs, two_view_loss
from medi.methods.pretrained import JointMethod
from medi.methods.pretraining import Classifier, Pretraining, class_loss, linear, pretrain
from medi.nn import Network
from medi.nn.context import Context
from medi.nn.cuda_graph import replayed
from medi.nn.loop import train
from medi.nn.schedule import Schedule
from medi.presets import Presets, read_presets


@dataclass(frozen=True)
class RS(JointMethod[Classifier]):
    """Settings of RS.

    Attributes:
        supervised: Rates of the second stage, the last stage of the network on known classes; None leaves it out.
        supervised_batch: Known images in each of its gradient steps.
        top: Size of the sets of largest features.
        consistency: Final weight of the squared difference between two views of an image.
        ramp: Share of the training in which that weight is reached.
        hidden: Size of a layer with a norm between features and either head's outputs; None for linear heads.
    """

    presets: ClassVar[Presets] = read_presets("rs")
    default_for_all: ClassVar[Mapping[str, str]] = MappingProxyType(
        dict.fromkeys(("cifar10", "cifar100", "svhn"), "fifth")
    )

    pretraining: Pretraining = field(
        default_factory=lambda: Pretraining("rotations", schedule=Schedule(2000, shape="onecycle", decay=5e-4))
    )
    stage: BagStage = field(default_factory=lambda: sgd_stage("cosine"))
    only_last: bool = True
    supervised: Schedule | None = field(default_factory=lambda: Schedule(steps=1000, shape="onecycle"))
    supervised_batch: int = 256
    top: int = 5
    consistency: float = 5.0
    ramp: float = 0.25
    hidden: int | None = None

    def __post_init__(self) -> None:
        if self.supervised_batch < 1:
            raise InputError(f"supervised_batch={self.supervised_batch} leaves a step without images: give at least 1.")

    def learn(self, known: ImageSet, plan: Plan) -> Classifier:
        """The first two stages: a network, and a head for the known classes."""
        network = pretrain(known, plan, self.pretraining)
        model = Classifier(network, make_head(network.width, known.n_classes, self.hidden, plan.context))
        self.freeze(network)
        if self.supervised is not None:
            identity = self.pretraining.identity(known, plan) | {"code": self.code, "version": self.version}
            identity |= {"batch": self.supervised_batch, "only_last": self.only_last, "hidden": self.hidden}
            with class_loss(model, known, self.supervised_batch, plan) as loss:
                train(model, loss, self.supervised, plan.context, title="last-stage", identity=identity)
        return model

    def adapt(self, learnt: Classifier, bag: ObservedBag) -> nn.Module:
        """Train both heads on known images and the bag's."""
        novel_head = make_head(learnt.network.width, bag.k, self.hidden, bag.context)
        model = TwoHeads(deepcopy(learnt.network), deepcopy(learnt.head), novel_head)
        schedule, draw = self.stage.schedule_for(len(bag.images)), self.items_of(bag)

        with replayed(JointLoss(model, self.top)) as joint:

            def loss(generator: torch.Generator) -> Tensor:
                step = draw(generator)
                weight = self.consistency * ramp(model.steps.next() / schedule.steps, self.ramp)
                # Filled in on the device: a copy from the CPU would wait for it.
                consistency = torch.full((), weight, device=generator.device)
                similar = () if bag.groups is None else (label_pairs(bag.groups[step.novel]),)
                return joint(step.views, step.labels, consistency, *similar)

            bag.train(model, loss, schedule)
        return model


class Outputs(NamedTuple):
    """Features (n, d) and logits (n, known classes) and (n, novel classes)."""

    features: Tensor
    known: Tensor
    novel: Tensor


def joint_loss(
    view: Outputs, other: Outputs, labels: Tensor, top: int, consistency: Tensor | float, similar: Tensor | None = None
) -> Tensor:
    """Cross-entropy of the known items, pairs of the novel ones, and agreement of both views on both heads.

    Known items, with labels (known,), come first. `similar` (novel, novel) replaces rank statistics, for the oracle.
    """
    known = len(labels)
    if similar is None:
        similar = rank_pairs(view.features[known:].detach(), top)
    p, p_other = view.novel.softmax(-1), other.novel.softmax(-1)
    agreement = functional.mse_loss(view.known.softmax(-1), other.known.softmax(-1)) + functional.mse_loss(p, p_other)
    return (
        functional.cross_entropy(view.known[:known], labels)
        + two_view_loss(p[known:], p_other[known:], similar)
        + consistency * agreement
    )


class TwoHeads(nn.Module):
    """A network with a head for the known classes and one for the novel classes."""

    def __init__(self, network: Network, known: nn.Module, novel: nn.Module) -> None:
        super().__init__()
        self.network, self.known, self.novel, self.steps = network, known, novel, StepCount()

    def outputs(self, images: Tensor) -> Outputs:
        """Features and the logits of both heads for images (n, …), in full precision."""
        features = self.network(images).relu().float()
        with torch.autocast(images.device.type, enabled=False):  # two views of an image are to agree to every digit
            return Outputs(features, self.known(features), self.novel(features))

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, k) of the novel classes."""
        return self.outputs(images).novel


class JointLoss(nn.Module):
    """The loss of a step on the bag as a function of tensors alone, so that it can be recorded."""

    def __init__(self, model: TwoHeads, top: int) -> None:
        super().__init__()
        self.model, self.top = model, top

    def forward(self, images: Tensor, labels: Tensor, consistency: Tensor, *similar: Tensor) -> Tensor:
        """The joint loss of images (2 n, …), floats: one view of all items, then the other."""
        both = self.model.outputs(images)
        view, other = (Outputs(*half) for half in zip(*(part.chunk(2) for part in both), strict=True))
        with torch.autocast(images.device.type, enabled=False):  # logarithms near 0 need every digit
            return joint_loss(view, other, labels, self.top, consistency, *similar)


def make_head(width: int, outputs: int, hidden: int | None, context: Context) -> nn.Module:
    """A head on features of some width whose weights follow from the seed; linear, or with a hidden layer."""
    if hidden is None:
        return linear(width, outputs, context)
    first = linear(width, hidden, context, stream=2)
    return nn.Sequential(first, nn.BatchNorm1d(hidden).to(context.device), nn.ReLU(), linear(hidden, outputs, context))
