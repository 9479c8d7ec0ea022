"""DTC: deep transfer clustering (Han et al. 2019), in the variant with consistency between two augmentations.

A network that knows the known classes gets a new last layer, the observations' principal components, and centres in
that space, those of k-means. Both are then trained together: soft assignments are drawn towards a sharpened version
of themselves.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.cluster.groups import group_means
from medi.cluster.kmeans import kmeans, squared_distances
from medi.data.augment import augment, to_float
from medi.data.facts import CROPPED, FLIPPED, Augmentation
from medi.data.imageset import ImageSet
from medi.methods import published
from medi.methods.bag_training import BagLearner, Stage, StepCount, ramp
from medi.methods.base import Learner, Method, Plan
from medi.methods.pretraining import Pretraining, pretrain
from medi.nets import Network
from medi.nets.embed import in_batches
from medi.runtime.context import Context
from medi.train.schedule import Schedule


def _sgd_stage(rate: float, decay: float = 0.0) -> Stage:
    return Stage(epochs=30, batch=256, least_steps=100, schedule=Schedule(1, rate, "sgd", decay))


@dataclass(frozen=True)
class DTC(Method):
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

    trains_on_observations: ClassVar[bool] = True

    pretraining: Pretraining = field(default_factory=Pretraining)
    stage: Stage = field(default_factory=lambda: _sgd_stage(rate=0.01, decay=5e-4))
    consistency: float = 10.0
    warm_up: float = 0.1
    ramp: float = 1.0
    refresh: int = 5
    first: Stage | None = None
    by_cluster: bool = False
    augmentation: Augmentation | None = None

    def make_learner(self, known: ImageSet, plan: Plan) -> Learner:
        """Train the network on known classes, or find it trained."""
        plan = replace(plan, augmentation=self.augmentation or plan.augmentation)
        return DTCLearner(self, pretrain(known, plan, self.pretraining), known, plan)


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


class DTCLearner(BagLearner):
    """Trains projection, centres and network on each bag."""

    def __init__(self, method: DTC, network: Network, known: ImageSet, plan: Plan) -> None:
        precision = method.stage.schedule.precision
        super().__init__(method.name, network, plan.context, precision, method.identity(known, plan))
        self.method, self.pretrained, self.augmentation = method, network, plan.augmentation

    def begin(self, images: Tensor, k: int, groups: Tensor | None, context: Context) -> SoftClusters:
        """The network before training on a bag (n, …): components of its features and the centres of k-means there."""
        features = self.embedding(images).clone()
        mean, components = principal_components(features, k)
        points = (features - mean) @ components.mT
        if groups is None:
            centres = kmeans(points[None], k, generator=context.generator(stream=1)).centres[0]
        else:
            centres = group_means(points, groups, k)
        return SoftClusters(deepcopy(self.pretrained), mean, components, centres).to(context.device)

    def adapt(self, images: Tensor, k: int, groups: Tensor | None, context: Context) -> nn.Module:
        """Draw the soft assignments of the bag towards their targets, or towards the true groups."""
        model = self.begin(images, k, groups, context)
        if self.method.first:
            apart = replace(context, seed=context.seed + 1)  # or the next stage would see the same batches again
            self._draw(model, images, groups, apart, self.method.first, renewing=False)
        self._draw(model, images, groups, context, self.method.stage, renewing=True)
        return model

    def _draw(
        self,
        model: SoftClusters,
        images: Tensor,
        groups: Tensor | None,
        context: Context,
        stage: Stage,
        *,
        renewing: bool,
    ) -> None:
        """One stage; only one that renews its targets on the way asks two views to agree."""
        method, schedule, k = self.method, stage.schedule_for(len(images)), len(model.centres)
        every = method.refresh * stage.steps_of_a_pass(len(images))
        model.steps, model.target = StepCount(), torch.zeros(len(images), k, device=context.device)

        def assignments() -> Tensor:
            model.eval()
            q = in_batches(
                lambda batch: model(to_float(batch)).softmax(-1), context.device, images, precision=self.precision
            )
            model.train()
            torch.clear_autocast_cache()  # weights cast here carry no gradient: the step must cast its own
            return q.clone()

        def loss(generator: torch.Generator) -> Tensor:
            step = model.steps.next()
            if step == 0 or (renewing and step % every == 0):
                model.target = sharpened(assignments()) if groups is None else functional.one_hot(groups, k).float()
            items = stage.draw(len(images), generator)
            seen = augment(torch.cat([images[items]] * (2 if renewing else 1)), self.augmentation, generator)
            log_q, *others = model(seen).log_softmax(-1).split(len(items))
            drawn = divergence(model.target[items], log_q, by_cluster=method.by_cluster)
            done = step / schedule.steps - method.warm_up
            weight = method.consistency * ramp(done, method.ramp * (1 - method.warm_up)) if done >= 0 else 0.0
            return drawn + sum(weight * functional.mse_loss(log_q.exp(), other.exp()) for other in others)

        self.train_on(images, k, groups, model, loss, schedule, context)


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
