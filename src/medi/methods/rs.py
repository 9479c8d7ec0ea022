"""RS: rank statistics (Han et al. 2020).

A network learns from images without labels (RotNet), then its last stage learns the known classes, then two heads
learn together: one the known classes, one the novel ones. Two novel images are taken to be of one class where the sets
of their largest features are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.cluster.neighbours import agreement, nearest
from medi.data.augment import augment
from medi.data.imageset import ImageSet
from medi.methods.bag_training import AdaptingLearner, StepCount, ramp
from medi.methods.base import Learner, Method, Plan
from medi.methods.inner_steps import label_pairs
from medi.methods.pretraining import LabelLoss, started
from medi.methods.rs_config import CHOSEN, CHOSEN_FOR_ALL, CONFIGS, RECIPES, RSConfig
from medi.methods.rs_loss import JointLoss, TwoHeads, head_of
from medi.nets import Network, last_stage
from medi.nets.embed import network_encoder
from medi.runtime.context import Context
from medi.train.cuda_graph import replayed
from medi.train.loop import train

NEIGHBOURS = 10
"""Of each observation, by which trainings on a bag are compared; at most half of what a class has on average."""

APART = 1_000_000_007
"""Between the seeds of such trainings: far, so that they are hardly ever those of another bag."""

STEADYING = 77
"""From the seed of a bag to that of the training that steadies its clusters."""

NEARLY = 0.95
"""Steadied clusters stay where they fit neighbours at least so well, as a part of how well the ones before do."""


class Tried(NamedTuple):
    """Trainings on the same bag, and how well the clusters of each fit nearest neighbours."""

    models: list[TwoHeads]
    fits: list[float]

    @property
    def best(self) -> int:
        """The number of the training that fits best."""
        return max(range(len(self.fits)), key=self.fits.__getitem__)


class RS(Method):
    """Rank statistics."""

    name: ClassVar[str] = "rs"
    presets: ClassVar[Mapping[str, RSConfig]] = CONFIGS
    chosen: ClassVar[Mapping[str, str]] = CHOSEN
    abundant: ClassVar[Mapping[str, str]] = CHOSEN_FOR_ALL
    recipes: ClassVar[Mapping[str, str]] = RECIPES

    def __init__(self, config: RSConfig) -> None:
        self.settings = config

    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """The first two stages, or where they were trained before."""
        config, context = self.settings, plan.context
        plan = replace(plan, augmentation=config.augmentation or plan.augmentation)
        network, seconds = started(known, config.start, plan)
        head = head_of(network.width, known.n_classes, config.hidden, context)
        if config.only_last:
            network.requires_grad_(False)
            last_stage(network).requires_grad_(True)
        if config.supervised is not None:
            model = nn.Sequential(network, head)
            batch = config.start.batch if config.supervised_batch is None else config.supervised_batch
            settings = (
                plan.settings(known, config.start)
                | config.start.seen(plan)
                | {
                    "start": asdict(config.start.schedule),
                    "only_last": config.only_last,
                    **({"supervised_batch": batch} if batch != config.start.batch else {}),
                    **({"hidden": config.hidden} if config.hidden else {}),
                }
            )
            with replayed(LabelLoss(model)) as label_loss:

                def loss(generator: torch.Generator) -> Tensor:
                    items = torch.randint(len(known), (batch,), generator=generator, device=context.device)
                    return label_loss(augment(known.images[items], plan.augmentation, generator), known.labels[items])

                seconds += train(model, loss, config.supervised, context, title="supervised", settings=settings)
        return RSLearner(network, head, known, config, plan, seconds)


class RSLearner(AdaptingLearner):
    """Trains both heads, and what is not frozen, on known images and each bag together."""

    def __init__(
        self, start: Network, head: nn.Module, known: ImageSet, config: RSConfig, plan: Plan, seconds: float = 0.0
    ) -> None:
        settings = plan.settings(known, config) | config.start.seen(plan)
        super().__init__("rs", plan.context, config.start.network, config.stage.schedule.precision, seconds, settings)
        self.start, self.head, self.known = start, head, known
        self.config, self.augmentation = config, plan.augmentation

    def adapt(self, images: Tensor, k: int, groups: Tensor | None, context: Context) -> nn.Module:
        """One training, or the best of several; that one is trained on, where asked for."""
        several = self.config.restarts > 1 or self.config.steady is not None
        fit = self.judge(images, k) if several else None
        if fit is None:
            return self.attempt(images, k, groups, context)
        tried = self.tries(fit, images, k, groups, context)
        model, before = tried.models[tried.best], tried.fits[tried.best]
        listed = ", ".join(f"{value:.3f}" for value in tried.fits)
        context.reporter.say(
            f"rs: agreement of clusters with neighbours, by training: {listed}; {tried.best + 1} stays."
        )
        if self.config.steady is None:
            return model
        steadied = self.steadied(tried, self.config.steady, images, k, groups, context)
        stays = (after := fit(steadied)) >= NEARLY * before
        context.reporter.say(f"rs: steadied, it is {after:.3f}{'' if stays else '; what there was before stays'}.")
        return steadied if stays else model

    def judge(self, images: Tensor, k: int) -> Callable[[nn.Module], float] | None:
        """How well a model's clusters fit nearest neighbours in the bag; None where it has too few images for any.

        Neighbours are by features from before any training on the bag: each moves its own, and its pair labels with
        them, so that a low loss says little.
        """
        neighbours = min(NEIGHBOURS, len(images) // (2 * k))
        if neighbours == 0:
            return None
        near = nearest(functional.normalize(self.answers(self.start, images)), neighbours)
        return lambda model: agreement(self.answers(model, images).argmax(1), near)

    def tries(
        self, fit: Callable[[nn.Module], float], images: Tensor, k: int, groups: Tensor | None, context: Context
    ) -> Tried:
        """As many trainings as there are to be, each from a novel head of its own; the first is that of `attempt`."""
        models = []
        for number in range(self.config.restarts):
            context.reporter.say(f"rs: training {number + 1} of {self.config.restarts} on the observations")
            models.append(self.attempt(images, k, groups, replace(context, seed=context.seed + APART * number)))
        return Tried(models, [fit(model) for model in models])

    def steadied(
        self, tried: Tried, consistency: float, images: Tensor, k: int, groups: Tensor | None, context: Context
    ) -> TwoHeads:
        """The best of some trainings, trained on with another weight of consistency."""
        model = deepcopy(tried.models[tried.best])
        model.steps = StepCount()
        context = replace(context, seed=context.seed + STEADYING)
        self.learn(model, consistency, images, k, groups, context, {"steady": consistency, "from": tried.best})
        return model

    def answers(self, model: nn.Module, images: Tensor) -> Tensor:
        """What a network makes of the observations, each on its own."""
        return network_encoder(model, self.context.device, self.precision)(images)

    def attempt(self, images: Tensor, k: int, groups: Tensor | None, context: Context) -> TwoHeads:
        """One training from the start."""
        novel_head = head_of(self.start.width, k, self.config.hidden, context)
        model = TwoHeads(deepcopy(self.start), deepcopy(self.head), novel_head)
        self.learn(model, self.config.consistency, images, k, groups, context)
        return model

    def learn(
        self,
        model: TwoHeads,
        consistency: float,
        images: Tensor,
        k: int,
        groups: Tensor | None,
        context: Context,
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Train on known images and the bag's, so many of either in each step that none is without novel pairs.

        Args:
            model: What is trained.
            consistency: Final weight of the agreement of two views.
            images: (n, …) the observations.
            k: Number of classes.
            groups: (n,) their true classes, for the oracle alone.
            context: Where to.
            more: What tells this training from a first one on the same bag.
        """
        config, known = self.config, self.known
        stage = config.stage if config.each is None else replace(config.stage, batch=config.each * k)
        schedule = stage.schedule_for(len(images))

        with replayed(JointLoss(model, config.top)) as joint:

            def loss(generator: torch.Generator) -> Tensor:
                novel = stage.draw(len(images), generator)
                shown = torch.randint(len(known), (config.known,), generator=generator, device=context.device)
                batch = torch.cat([known.images[shown], images[novel]])
                views = augment(torch.cat([batch, batch]), self.augmentation, generator)
                # Filled in on the device: a copy from the CPU would wait for it.
                weight = torch.full(
                    (), consistency * ramp(model.steps.next() / schedule.steps, config.ramp), device=context.device
                )
                similar = () if groups is None else (label_pairs(groups[novel]),)
                return joint(views, known.labels[shown], weight, *similar)

            self.train_on(images, k, groups, model, loss, schedule, context, more)
