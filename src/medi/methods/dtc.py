"""DTC: deep transfer clustering (Han et al. 2019), in the variant with consistency between two augmentations.

A network that knows the known classes gets a new last layer, the observations' principal components, and centres in
that space, those of k-means. Both are then trained together: soft assignments are drawn towards a sharpened version
of themselves.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.data.augment import augment, to_float
from medi.data.imageset import ImageSet
from medi.kmeans.kmeans import group_means, kmeans, squared_distances
from medi.methods.bag_training import BagStage, ObservedBag, StepCount, ramp
from medi.methods.base import Plan
from medi.methods.pretrained import PretrainedMethod
from medi.methods.pretraining import pretrain
from medi.nn import Network
from medi.nn.embed import in_batches
from medi.nn.schedule import Schedule
from medi.presets import Presets, read_presets


@dataclass(frozen=True)
class DTC(PretrainedMethod[Network]):
    """Settings of DTC.

    Attributes:
        consistency: Weight of the squared difference between the assignments of two augmentations.
        warm_up: Share of the training before that difference counts.
        ramp: Share of what is left in which its weight is reached.
        refresh: Passes over the bag between two new targets.
        first: Training towards the first targets alone, before all this; None for none.
        by_cluster: Divide the divergence by the number of clusters too, as the authors' code does.
    """

    presets: ClassVar[Presets] = read_presets("dtc")

    stage: BagStage = field(
        default_factory=lambda: BagStage(30, batch=256, least_steps=100, schedule=Schedule(1, 0.01, "sgd", decay=5e-4))
    )
    consistency: float = 10.0
    warm_up: float = 0.1
    ramp: float = 1.0
    refresh: int = 5
    first: BagStage | None = None
    by_cluster: bool = False

    def learn(self, known: ImageSet, plan: Plan) -> Network:
        """The network, trained on known classes."""
        return pretrain(known, plan, self.pretraining)

    def adapt(self, learnt: Network, bag: ObservedBag) -> nn.Module:
        """Draw the soft assignments of the bag towards their targets, or towards the true groups."""
        model = self.begin(learnt, bag)
        if self.first:
            apart = replace(bag.context, seed=bag.context.seed + 1)  # or the next stage would see the same batches
            self._draw(model, replace(bag, context=apart), self.first, renewing=False)
        self._draw(model, bag, self.stage, renewing=True)
        return model

    def begin(self, learnt: Network, bag: ObservedBag) -> SoftClusters:
        """The network before training on a bag: components of its features and the centres of k-means there."""
        features = bag.learner.embedding(bag.images).clone()
        mean, components = principal_components(features, bag.k)
        points = (features - mean) @ components.mT
        if bag.groups is None:
            centres = kmeans(points[None], bag.k, generator=bag.context.generator(stream=1)).centres[0]
        else:
            centres = group_means(points, bag.groups, bag.k)
        return SoftClusters(deepcopy(learnt), mean, components, centres).to(bag.context.device)

    def _draw(self, model: SoftClusters, bag: ObservedBag, stage: BagStage, *, renewing: bool) -> None:
        """One stage; only one that renews its targets on the way asks two views to agree."""
        images, device, schedule = bag.images, bag.context.device, stage.schedule_for(len(bag.images))
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
            seen = augment(torch.cat([images[items]] * (2 if renewing else 1)), bag.learner.augmentation, generator)
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

    `steps` are of the stage that is under way, `target` (n, k) is what the assignments of a bag are drawn to in it.
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
