"""DTC: deep transfer clustering (Han et al. 2019), in the variant with consistency between two augmentations.

A network that knows the known classes gets a new last layer, the observations' principal components, and centres in
that space, those of k-means. Both are then trained together: soft assignments are drawn towards a sharpened version
of themselves.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.cluster.groups import group_means
from medi.cluster.kmeans import kmeans, squared_distances
from medi.data.augment import augment, to_float
from medi.data.facts import CROPPED, FLIPPED, Augmentation
from medi.data.imageset import ImageSet
from medi.methods import published
from medi.methods.bag_training import Bag, BagMethod, Stage, StepCount, ramp
from medi.methods.base import Plan
from medi.methods.pretraining import Pretraining, pretrain
from medi.nets import Network
from medi.nets.embed import in_batches
from medi.train.schedule import Schedule


def _sgd_stage(rate: float, decay: float = 0.0) -> Stage:
    return Stage(epochs=30, batch=256, least_steps=100, schedule=Schedule(1, rate, "sgd", decay))


@dataclass(frozen=True)
class DTC(BagMethod[Network]):
    """Settings of DTC.

    Attributes:
        pretraining: What the network learns from known classes.
        stage: Training on the observations.
        consistency: Weight of the squared difference between the assignments of two augmentations.
        warm_up: Share of the training before that difference counts.
        ramp: Share of what is left in which its weight is reached.
        refresh: Passes over the bag between two new targets.
        first: Training towards the first targets alone, before all this; None for none.
        by_cluster: Divide the divergence by the number of clusters too, as the authors' code does.
        augmentation: Random changes of images; None for the dataset's own.
    """

    pretraining: Pretraining = field(default_factory=Pretraining)
    stage: Stage = field(default_factory=lambda: _sgd_stage(rate=0.01, decay=5e-4))
    consistency: float = 10.0
    warm_up: float = 0.1
    ramp: float = 1.0
    refresh: int = 5
    first: Stage | None = None
    by_cluster: bool = False
    augmentation: Augmentation | None = None

    def learn(self, known: ImageSet, plan: Plan) -> Network:
        """The network, trained on known classes."""
        return pretrain(known, replace(plan, augmentation=self.augmentation or plan.augmentation), self.pretraining)

    def adapt(self, learnt: Network, bag: Bag) -> nn.Module:
        """Draw the soft assignments of the bag towards their targets, or towards the true groups."""
        model = self.begin(learnt, bag)
        if self.first:
            apart = replace(bag.context, seed=bag.context.seed + 1)  # or the next stage would see the same batches
            self._draw(model, replace(bag, context=apart), self.first, renewing=False)
        self._draw(model, bag, self.stage, renewing=True)
        return model

    def begin(self, learnt: Network, bag: Bag) -> SoftClusters:
        """The network before training on a bag: components of its features and the centres of k-means there."""
        features = bag.learner.embedding(bag.images).clone()
        mean, components = principal_components(features, bag.k)
        points = (features - mean) @ components.mT
        if bag.groups is None:
            centres = kmeans(points[None], bag.k, generator=bag.context.generator(stream=1)).centres[0]
        else:
            centres = group_means(points, bag.groups, bag.k)
        return SoftClusters(deepcopy(learnt), mean, components, centres).to(bag.context.device)

    def _draw(self, model: SoftClusters, bag: Bag, stage: Stage, *, renewing: bool) -> None:
        """One stage; only one that renews its targets on the way asks two views to agree."""
        images, device, schedule = bag.images, bag.context.device, stage.schedule_for(len(bag.images))
        augmentation = self.augmentation or bag.learner.augmentation
        every = self.refresh * stage.steps_of_a_pass(len(images))
        model.steps, model.target = StepCount(), torch.zeros(len(images), bag.k, device=device)

        def assignments() -> Tensor:
            model.eval()
            q = in_batches(lambda batch: model(to_float(batch)).softmax(-1), device, images)
            model.train()
            torch.clear_autocast_cache()  # weights cast here carry no gradient: the step must cast its own
            return q.clone()

        def loss(generator: torch.Generator) -> Tensor:
            step = model.steps.next()
            if step == 0 or (renewing and step % every == 0):
                told = bag.groups
                model.target = sharpened(assignments()) if told is None else functional.one_hot(told, bag.k).float()
            items = stage.draw(len(images), generator)
            seen = augment(torch.cat([images[items]] * (2 if renewing else 1)), augmentation, generator)
            log_q, *others = model(seen).log_softmax(-1).split(len(items))
            drawn = divergence(model.target[items], log_q, by_cluster=self.by_cluster)
            done = step / schedule.steps - self.warm_up
            weight = self.consistency * ramp(done, self.ramp * (1 - self.warm_up)) if done >= 0 else 0.0
            return drawn + sum(weight * functional.mse_loss(log_q.exp(), other.exp()) for other in others)

        bag.train(model, loss, schedule)


def principal_components(points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Mean (d,) and the first components (at most k, d) of points (n, d): fewer where n or d is below k."""
    mean = points.mean(0)
    centred = (points - mean).double()
    # Eigenvectors of d x d numbers instead of a decomposition of the n x d, which GPUs are slow at.
    directions = torch.linalg.eigh(centred.mT @ centred).eigenvectors.mT.flip(0)
    return mean, directions[: min(k, len(points))].to(points.dtype)


def sharpened(q: Tensor) -> Tensor:
    """The target t_ik in proportion to q_ik² / sum_i q_ik, of soft assignments (n, k) whose rows sum to 1."""
    weight = q.square() / q.sum(0).clamp_min(torch.finfo(q.dtype).tiny)
    return weight / weight.sum(1, keepdim=True)


def divergence(target: Tensor, log_q: Tensor, *, by_cluster: bool = False) -> Tensor:
    """KL(t || q), the mean over items (n, k), or over items and clusters as the authors' code has it."""
    mean = functional.kl_div(log_q, target, reduction="batchmean")
    return mean / target.shape[1] if by_cluster else mean


class SoftClusters(nn.Module):
    """A network, a linear layer and centres; an item's weight for a centre is 1 / (1 + squared distance).

    Attributes:
        steps: Of the stage that is under way.
        target: (n, k), what the assignments of a bag are drawn to in it.
    """

    target: Tensor

    def __init__(self, network: Network, mean: Tensor, components: Tensor, centres: Tensor) -> None:
        super().__init__()
        self.network, self.steps = network, StepCount()
        self.register_buffer("target", torch.empty(0))
        self.project = nn.Linear(network.width, len(components), device=mean.device)
        with torch.no_grad():
            self.project.weight.copy_(components)
            self.project.bias.copy_(-components @ mean)
        self.centres = nn.Parameter(centres.clone())

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, k) whose softmax are the soft assignments of images (n, …)."""
        features = self.network(images).float()
        with torch.autocast(features.device.type, enabled=False):
            return -squared_distances(self.project(features), self.centres).log1p()


def _authors(
    pretraining: Pretraining,
    stage: Stage,
    *,
    first_epochs: int = 10,
    decay: float = 0.0,
    refresh: int = 5,
    augmentation: Augmentation | None = None,
) -> DTC:
    """What the authors do to the observations, after some pretraining."""
    return DTC(
        pretraining,
        stage,
        first=_constant(first_epochs, 0.1, decay=decay),
        warm_up=0.0,
        ramp=5 / stage.epochs,
        refresh=refresh,
        by_cluster=True,
        augmentation=augmentation,
    )


def _constant(
    epochs: int, rate: float, optimiser: Literal["adam", "sgd"] = "sgd", batch: int = 128, decay: float = 0.0
) -> Stage:
    return Stage(epochs, batch, schedule=Schedule(1, rate, optimiser, decay, shape="constant"))


def _long(steps: int, network: str = "resnet18") -> Pretraining:
    """As long as the authors': 180 epochs of the known images. The rates are ours."""
    schedule = Schedule(steps, 0.1, "sgd", decay=1e-4, shape="drops", drop_at=(0.5, 0.75))
    return Pretraining("classes", network, batch=128, schedule=schedule)


_ON_DIGITS = _constant(60, 0.001)

DTC.presets = MappingProxyType(
    {
        "default": DTC(),
        "cpu": DTC(
            published.CPU, Stage(20, batch=100, least_steps=30, schedule=Schedule(1, rate=0.01, optimiser="sgd"))
        ),
        "cifar10": DTC(Pretraining(schedule=Schedule(steps=1500, shape="onecycle", decay=5e-4))),
        "svhn": _authors(Pretraining(schedule=Schedule(4000, 0.1, "sgd", decay=5e-4, shape="onecycle")), _ON_DIGITS),
        "omniglot": DTC(published.characters(8000), _sgd_stage(rate=0.001), consistency=100.0),
        "full": _authors(_long(35_000), _constant(100, 0.05, decay=1e-4), decay=1e-4, augmentation=FLIPPED),
        "full-svhn": _authors(_long(28_000), _ON_DIGITS, augmentation=CROPPED),
        "full-cifar100": _authors(
            _long(56_000, "conv5-wide"),
            Stage(
                100,
                128,
                schedule=Schedule(1, 0.05, "sgd", 1e-5, shape="drops", drop_at=(0.2, 0.4, 0.6, 0.8), drop=0.5),
            ),
            first_epochs=30,
            decay=1e-5,
            refresh=10,
            augmentation=FLIPPED,
        ),
        "full-omniglot": DTC(
            published.CHARACTERS_FULL,
            first=_constant(10, 1e-3, "adam", batch=100),
            stage=_constant(90, 1e-3, "adam", batch=100),
            consistency=100.0,
            warm_up=0.0,
            ramp=5 / 90,
            refresh=1,
            by_cluster=True,
        ),
    }
)
