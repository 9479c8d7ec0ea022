"""What DTC, RS, UNO and SimGCD share: a network that knows the known classes before it is trained on a bag.

The last three go on learning the known classes while they learn from the bag: each step shows some images of either,
in two views.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple

import torch
from torch import Tensor

from medi.data.augment import augment
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods.bag_training import BagMethod, BagStage, LearntModule, ObservedBag, sgd_stage
from medi.methods.base import Plan
from medi.methods.pretraining import Pretraining
from medi.nn import Network, last_stage


@dataclass(frozen=True)
class PretrainedMethod(BagMethod[LearntModule], Generic[LearntModule]):
    """A method that trains a pretrained network on the observations.

    Attributes:
        pretraining: What the network learns from known classes.
        stage: Training on the observations.
        augmentation: Random changes of images; None for the dataset's own.
    """

    pretraining: Pretraining = field(default_factory=Pretraining)
    stage: BagStage = field(default_factory=lambda: sgd_stage("onecycle"))
    augmentation: Augmentation | None = None

    def plan_for(self, plan: Plan) -> Plan:
        """The plan with the method's own random changes of images."""
        return replace(plan, augmentation=self.augmentation or plan.augmentation)


class StepItems(NamedTuple):
    """What a step of a `JointMethod` sees: two views (2 n, …) of all items, the known ones first, with their labels.

    `novel` has the places of the others in the bag.
    """

    views: Tensor
    labels: Tensor
    novel: Tensor


@dataclass(frozen=True)
class JointMethod(PretrainedMethod[LearntModule], Generic[LearntModule]):
    """A method that learns known and novel classes side by side.

    Attributes:
        known: Known images beside the observations in each gradient step.
        only_last: Freeze all but the last stage of the network after pretraining.
    """

    known: int = 64
    only_last: bool = False

    def freeze(self, network: Network) -> None:
        """Freeze what is not to learn after pretraining."""
        if self.only_last:
            network.requires_grad_(False)
            last_stage(network).requires_grad_(True)

    def items_of(self, bag: ObservedBag) -> Callable[[torch.Generator], StepItems]:
        """Draws the known and novel items of a step, of both kinds enough for pairs."""
        known, labelled = bag.learner.known, bag.learner.known.labelled()

        def draw(generator: torch.Generator) -> StepItems:
            novel = self.stage.draw(len(bag.images), generator)
            shown = labelled[torch.randint(len(labelled), (self.known,), generator=generator, device=generator.device)]
            batch = torch.cat([known.images[shown], bag.images[novel]])
            views = augment(torch.cat([batch, batch]), bag.learner.augmentation, generator)
            return StepItems(views, known.labels[shown], novel)

        return draw

    def identity(self, known: ImageSet, plan: Plan, **task: int) -> dict[str, Any]:
        """All that its trainings depend on, what the first stage saw included."""
        return super().identity(known, plan, **task) | {"first": self.pretraining.identity(known, plan)}
