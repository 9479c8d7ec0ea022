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
from typing import ClassVar

import torch
from torch import Tensor, nn

from medi.core.errors import InputError
from medi.data.imageset import ImageSet
from medi.methods.bag_training import BagStage, ObservedBag, ramp, sgd_stage
from medi.methods.base import Plan
from medi.methods.pair_losses import label_pairs
from medi.methods.pretrained import JointMethod
from medi.methods.pretraining import Pretraining, class_loss, pretrain
from medi.methods.rs_loss import JointLoss, TwoHeads, make_head
from medi.nn.classifier import Classifier
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
            self._learn_known_classes(model, self.supervised, known, plan)
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

    def _learn_known_classes(self, model: Classifier, schedule: Schedule, known: ImageSet, plan: Plan) -> None:
        identity = self.pretraining.identity(known, plan) | {"code": self.code, "version": self.version}
        identity |= {"batch": self.supervised_batch, "only_last": self.only_last, "hidden": self.hidden}
        with class_loss(model, known, self.supervised_batch, plan) as loss:
            train(model, loss, schedule, plan.context, title="last-stage", identity=identity)
