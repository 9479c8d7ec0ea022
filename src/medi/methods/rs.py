"""RS: rank statistics (Han et al. 2020).

A network learns from images without labels (RotNet), then its last stage learns the known classes, then two heads
learn together: one the known classes, one the novel ones. Two novel images are taken to be of one class where the sets
of their largest features are equal.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from medi.data.augment import augment
from medi.data.facts import CROPPED, FLIPPED, Augmentation
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods import published
from medi.methods.bag_training import Bag, BagMethod, Stage, ramp
from medi.methods.base import Plan
from medi.methods.pair_losses import label_pairs
from medi.methods.pretraining import Pretraining, pretrain
from medi.methods.rs_loss import JointLoss, TwoHeads, make_head
from medi.nets import last_stage
from medi.train.classifier import Classifier, classifier_loss
from medi.train.cuda_graph import replayed
from medi.train.loop import train
from medi.train.schedule import Schedule


def _sgd_stage(epochs: int, batch: int = 128) -> Stage:
    return Stage(epochs, batch, least_steps=300, enough_items=128, schedule=Schedule(1, 0.1, "sgd", decay=1e-4))


def _rotations(steps: int) -> Pretraining:
    return Pretraining("rotations", schedule=Schedule(steps, shape="onecycle", decay=5e-4))


@dataclass(frozen=True)
class RS(BagMethod[Classifier]):
    """Settings of RS.

    Attributes:
        pretraining: The first stage.
        supervised: Rates of the second stage, the last stage of the network on known classes; None leaves it out.
        supervised_batch: Known images in each of its gradient steps.
        only_last: Freeze all but the last stage of the network after the first.
        stage: Training on the observations.
        known: Known images beside the observations in each of its gradient steps.
        top: Size of the sets of largest features.
        consistency: Final weight of the squared difference between two views of an image.
        ramp: Share of the training in which that weight is reached.
        hidden: Size of a layer with a norm between features and either head's outputs; None for linear heads.
        augmentation: Random changes of images; None for the dataset's own.
    """

    pretraining: Pretraining = field(default_factory=lambda: _rotations(2000))
    supervised: Schedule | None = field(default_factory=lambda: Schedule(steps=1000, shape="onecycle"))
    supervised_batch: int = 256
    only_last: bool = True
    stage: Stage = field(default_factory=lambda: _sgd_stage(epochs=40))
    known: int = 64
    top: int = 5
    consistency: float = 5.0
    ramp: float = 0.25
    hidden: int | None = None
    augmentation: Augmentation | None = None

    def __post_init__(self) -> None:
        if self.supervised_batch < 1:
            raise InputError(f"supervised_batch={self.supervised_batch} leaves a step without images: give at least 1.")

    def learn(self, known: ImageSet, plan: Plan) -> Classifier:
        """The first two stages: a network, and a head for the known classes."""
        plan = replace(plan, augmentation=self.augmentation or plan.augmentation)
        network = pretrain(known, plan, self.pretraining)
        model = Classifier(network, make_head(network.width, known.n_classes, self.hidden, plan.context))
        if self.only_last:
            network.requires_grad_(False)
            last_stage(network).requires_grad_(True)
        if self.supervised is not None:
            self._learn_known_classes(model, self.supervised, known, plan)
        return model

    def adapt(self, learnt: Classifier, bag: Bag) -> nn.Module:
        """Train on known images and the bag's, so many of either in each step that none is without novel pairs."""
        known, images, groups = bag.learner.known, bag.images, bag.groups
        augmentation = self.augmentation or bag.learner.augmentation
        novel_head = make_head(learnt.network.width, bag.k, self.hidden, bag.context)
        model = TwoHeads(deepcopy(learnt.network), deepcopy(learnt.head), novel_head)
        schedule, labelled = self.stage.schedule_for(len(images)), known.labelled()

        with replayed(JointLoss(model, self.top)) as joint:

            def loss(generator: torch.Generator) -> Tensor:
                novel = self.stage.draw(len(images), generator)
                drawn = torch.randint(len(labelled), (self.known,), generator=generator, device=generator.device)
                shown = labelled[drawn]
                batch = torch.cat([known.images[shown], images[novel]])
                views = augment(torch.cat([batch, batch]), augmentation, generator)
                weight = self.consistency * ramp(model.steps.next() / schedule.steps, self.ramp)
                # Filled in on the device: a copy from the CPU would wait for it.
                consistency = torch.full((), weight, device=generator.device)
                similar = () if groups is None else (label_pairs(groups[novel]),)
                return joint(views, known.labels[shown], consistency, *similar)

            bag.train(model, loss, schedule)
        return model

    def identity(self, known: ImageSet, plan: Plan, **task: int) -> dict[str, Any]:
        """All that its trainings depend on, what the first stage saw included."""
        return super().identity(known, plan, **task) | {"first": self.pretraining.identity(known, plan)}

    def _learn_known_classes(self, model: Classifier, schedule: Schedule, known: ImageSet, plan: Plan) -> None:
        context, batch, labelled = plan.context, self.supervised_batch, known.labelled()
        identity = self.pretraining.identity(known, plan) | {"code": self.code, "version": self.version}
        identity |= {"batch": batch, "only_last": self.only_last, "hidden": self.hidden}
        with classifier_loss(model) as label_loss:

            def loss(generator: torch.Generator) -> Tensor:
                items = labelled[torch.randint(len(labelled), (batch,), generator=generator, device=context.device)]
                return label_loss(augment(known.images[items], plan.augmentation, generator), known.labels[items])

            train(model, loss, schedule, context, title="last-stage", identity=identity)


def _authors(known: int, consistency: float, ramp: float, augmentation: Augmentation) -> RS:
    """The published recipe for so many known images: 200 and 100 epochs of these, then 200, in batches of 128."""
    steps = known // 128
    tenths = tuple(i / 10 for i in range(1, 10))
    rotations = Schedule(200 * steps, 0.1, "sgd", 5e-4, shape="drops", drop_at=(0.3, 0.6, 0.8), drop=0.2)
    return RS(
        # 128 images in each of four positions
        Pretraining("rotations", "resnet18-padded", batch=512, schedule=rotations, observed=True),
        supervised=Schedule(100 * steps, 0.1, "sgd", 1e-4, shape="drops", drop_at=tenths, drop=0.5),
        supervised_batch=128,
        stage=Stage(200, batch=64, schedule=Schedule(1, 0.1, "sgd", 1e-4, shape="drops", drop_at=(0.85,))),
        consistency=consistency,
        ramp=ramp,
        augmentation=augmentation,
    )


def _characters(pretraining: Pretraining, steps: int, schedule: Schedule) -> RS:
    """As published for characters: prototypes instead of rotations, heads with a hidden layer."""
    stage = Stage(1, batch=32, least_steps=steps, schedule=schedule)
    return RS(pretraining, None, stage=stage, known=68, consistency=100.0, ramp=0.01, hidden=512)


RS.presets = MappingProxyType(
    {
        "default": RS(),
        "cpu": RS(published.CPU, None, stage=Stage(20, batch=100, least_steps=100, schedule=Schedule(1, rate=3e-3))),
        "cifar100": RS(_rotations(3000), consistency=50.0, ramp=0.75),
        # Rotations of all that may be seen, as published; as many known as novel images in a step.
        "svhn": RS(
            Pretraining("rotations", schedule=Schedule(8000, 0.1, "sgd", 5e-4, shape="onecycle"), observed=True),
            supervised=Schedule(4000, 0.1, "sgd", 5e-4, shape="onecycle"),
            stage=_sgd_stage(epochs=50, batch=64),
            top=2,
            ramp=0.4,
        ),
        "omniglot": _characters(published.characters(2000), 4000, Schedule(1, rate=0.01)),
        "full": _authors(25_000, consistency=5.0, ramp=0.25, augmentation=FLIPPED),
        "full-cifar100": _authors(40_000, consistency=50.0, ramp=0.75, augmentation=FLIPPED),
        "full-svhn": _authors(20_000, consistency=50.0, ramp=0.4, augmentation=CROPPED),
        # 100 epochs are passes over the known images.
        "full-omniglot": _characters(published.CHARACTERS_FULL, 28_300, Schedule(1, rate=0.01, shape="constant")),
    }
)
RS.default_for_all = MappingProxyType({"cifar10": "full", "cifar100": "full", "svhn": "full"})
