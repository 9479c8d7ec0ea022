"""DTC: deep transfer clustering (Han et al. 2019), in the variant with consistency between two augmentations.

A network that knows the known classes gets a new last layer, the observations' principal components, and centres in
that space, those of k-means. Both are then trained together: soft assignments are drawn towards a sharpened version
of themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.cluster.kmeans import kmeans, squared_distances
from medi.data.augment import augment, to_float
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods.bag_training import AdaptingLearner, Stage, StepCount, ramp
from medi.methods.base import Learner, Method, Plan
from medi.methods.dtc_config import CHOSEN, CONFIGS, RECIPES, DTCConfig
from medi.methods.pretraining import started
from medi.nets import Network
from medi.nets.embed import in_batches, network_encoder
from medi.runtime.context import Context


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


class DTC(Method):
    """Deep transfer clustering."""

    name: ClassVar[str] = "dtc"
    presets: ClassVar[Mapping[str, DTCConfig]] = CONFIGS
    chosen: ClassVar[Mapping[str, str]] = CHOSEN
    recipes: ClassVar[Mapping[str, str]] = RECIPES

    def __init__(self, config: DTCConfig) -> None:
        self.settings = config

    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """Train the network on known classes, or find it trained."""
        plan = replace(plan, augmentation=self.settings.augmentation or plan.augmentation)
        network, seconds = started(known, self.settings.start, plan)
        settings = plan.settings(known, self.settings)
        return DTCLearner(network, self.settings, plan.augmentation, plan.context, seconds, settings)


class DTCLearner(AdaptingLearner):
    """Trains projection, centres and network on each bag."""

    def __init__(
        self,
        start: Network,
        config: DTCConfig,
        augmentation: Augmentation,
        context: Context,
        seconds: float = 0.0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__("dtc", context, config.start.network, config.stage.schedule.precision, seconds, settings)
        self.start, self.config, self.augmentation = start, config, augmentation

    def begin(self, images: Tensor, k: int, groups: Tensor | None, context: Context) -> SoftClusters:
        """The network before training on a bag (n, …): components of its features and the centres of k-means there."""
        features = network_encoder(self.start, context.device, self.precision)(images).clone()
        mean, components = principal_components(features, k)
        points = (features - mean) @ components.mT
        if groups is None:
            centres = kmeans(points[None], k, generator=context.generator(stream=1)).centres[0]
        else:
            member = functional.one_hot(groups, k).to(points)
            centres = member.mT @ points / member.sum(0).clamp_min(1)[:, None]
        return SoftClusters(deepcopy(self.start), mean, components, centres).to(context.device)

    def adapt(self, images: Tensor, k: int, groups: Tensor | None, context: Context) -> nn.Module:
        """Draw the soft assignments of the bag towards their targets, or towards the true groups."""
        model = self.begin(images, k, groups, context)
        if self.config.first:
            apart = replace(context, seed=context.seed + 1)  # or the next stage would see the same batches again
            self._draw(model, images, groups, apart, self.config.first, settling=False)
        self._draw(model, images, groups, context, self.config.stage, settling=True)
        return model

    def _draw(
        self,
        model: SoftClusters,
        images: Tensor,
        groups: Tensor | None,
        context: Context,
        stage: Stage,
        *,
        settling: bool,
    ) -> None:
        """One stage; only one that settles takes new targets on its way and asks two views to agree."""
        config, schedule, k = self.config, stage.schedule_for(len(images)), len(model.centres)
        every = config.refresh * stage.steps_of_a_pass(len(images))
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
            if step == 0 or (settling and step % every == 0):
                model.target = sharpened(assignments()) if groups is None else functional.one_hot(groups, k).float()
            items = stage.draw(len(images), generator)
            seen = augment(torch.cat([images[items]] * (2 if settling else 1)), self.augmentation, generator)
            log_q, *others = model(seen).log_softmax(-1).split(len(items))
            drawn = divergence(model.target[items], log_q, by_cluster=config.by_cluster)
            done = step / schedule.steps - config.warm_up
            weight = config.consistency * ramp(done, config.ramp * (1 - config.warm_up)) if done >= 0 else 0.0
            return drawn + sum(weight * functional.mse_loss(log_q.exp(), other.exp()) for other in others)

        self.train_on(images, k, groups, model, loss, schedule, context)
