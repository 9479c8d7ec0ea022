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
from medi.data.images import ImageSet
from medi.methods.adapting import AdaptingLearner, StepCount, ramp
from medi.methods.base import Learner, Method, Plan
from medi.methods.inner import label_pairs, rank_pairs
from medi.methods.rs_config import CHOSEN, CHOSEN_FOR_ALL, CONFIGS, RECIPES, RSConfig
from medi.methods.starts import LabelLoss, linear, started
from medi.nets import Network, last_stage
from medi.nets.encode import network_encoder
from medi.train.loop import Desk, train
from medi.train.replay import replayed

EPS = 1e-7
"""Added to probabilities whose logarithm is taken."""

NEIGHBOURS = 10
"""Of each observation, by which trainings on a bag are compared; fewer where more would be of other classes."""

APART = 1_000_000_007
"""Between the seeds of such trainings, so that they are not those of another bag."""

STEADYING = 77
"""From the seed of a bag to that of the training that steadies its clusters."""

UNMERGED = 0.95
"""Steadied clusters stay where they agree with neighbours at least so well, as a part of what the ones before did."""


class Outputs(NamedTuple):
    """Features (n, d) and logits (n, known classes) and (n, novel classes)."""

    features: Tensor
    known: Tensor
    novel: Tensor


def shared_cluster_loss(p: Tensor, other: Tensor, similar: Tensor) -> Tensor:
    """Binary cross-entropy of p_i . p'_j over all ordered pairs; zero for no items at all.

    Args:
        p: (n, k) probabilities of one view.
        other: (n, k) probabilities of another view.
        similar: (n, n) of ones and zeros.
    """
    if not len(p):
        return p.sum()  # a mean of nothing would not be a number
    together = (p @ other.mT).clamp(max=1)  # it may round up
    # Added, as published: a clamp would take the gradient away from pairs that are all but certain, and wrong.
    return -(similar * (together + EPS).log() + (1 - similar) * (1 - together + EPS).log()).mean()


def joint_loss(
    view: Outputs,
    other: Outputs,
    labels: Tensor,
    *,
    top: int,
    consistency: Tensor | float,
    similar: Tensor | None = None,
) -> Tensor:
    """Cross-entropy of the known items, pairs of the novel ones, and agreement of both views on both heads.

    Args:
        view: Outputs for n items, the known ones first.
        other: Outputs for another augmentation of the same items.
        labels: (known,) classes of the known items.
        top: Size of the sets of largest features.
        consistency: Weight of the agreement.
        similar: (novel, novel) pair labels to use instead of rank statistics: for the oracle.
    """
    known = len(labels)
    if similar is None:
        similar = rank_pairs(view.features[known:].detach(), top)
    p, p_other = view.novel.softmax(-1), other.novel.softmax(-1)
    agreement = functional.mse_loss(view.known.softmax(-1), other.known.softmax(-1)) + functional.mse_loss(p, p_other)
    return (
        functional.cross_entropy(view.known[:known], labels)
        + shared_cluster_loss(p[known:], p_other[known:], similar)
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
    """The loss of a step on the bag as a function of tensors alone, so that it can be recorded.

    Args:
        model: What is trained.
        top: Size of the sets of largest features.
    """

    def __init__(self, model: TwoHeads, top: int) -> None:
        super().__init__()
        self.model, self.top = model, top

    def forward(self, images: Tensor, labels: Tensor, consistency: Tensor, *similar: Tensor) -> Tensor:
        """The loss of two views of the same items.

        Args:
            images: (2 n, …), floats: one view of all items, the known ones first, then the other view.
            labels: (known,) classes of the known items.
            consistency: (), weight of the agreement.
            similar: Nothing, or (novel, novel) pair labels for the oracle.
        """
        both = self.model.outputs(images)
        view, other = (Outputs(*half) for half in zip(*(part.chunk(2) for part in both), strict=True))
        with torch.autocast(images.device.type, enabled=False):  # logarithms near 0 need every digit
            told = similar[0] if similar else None
            return joint_loss(view, other, labels, top=self.top, consistency=consistency, similar=told)


def head_of(width: int, outputs: int, hidden: int | None, desk: Desk) -> nn.Module:
    """A head on features of some width whose weights follow from the seed; linear, or with a hidden layer."""
    if hidden is None:
        return linear(width, outputs, desk)
    first = linear(width, hidden, desk, stream=2)
    return nn.Sequential(first, nn.BatchNorm1d(hidden).to(desk.device), nn.ReLU(), linear(hidden, outputs, desk))


class RS(Method):
    """Rank statistics."""

    name: ClassVar[str] = "rs"
    configs: ClassVar[Mapping[str, RSConfig]] = CONFIGS
    chosen: ClassVar[Mapping[str, str]] = CHOSEN
    abundant: ClassVar[Mapping[str, str]] = CHOSEN_FOR_ALL
    recipes: ClassVar[Mapping[str, str]] = RECIPES

    def __init__(self, config: RSConfig) -> None:
        self.settings = config

    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """The first two stages, or where they were trained before."""
        config, desk = self.settings, plan.desk
        plan = replace(plan, augmentation=config.augmentation or plan.augmentation)
        network, seconds = started(known, config.start, plan)
        head = head_of(network.width, known.n_classes, config.hidden, desk)
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
                    items = torch.randint(len(known), (batch,), generator=generator, device=desk.device)
                    return label_loss(augment(known.images[items], plan.augmentation, generator), known.labels[items])

                seconds += train(model, loss, config.supervised, desk, title="supervised", settings=settings)
        return RSLearner(network, head, known, config, plan, seconds)


class RSLearner(AdaptingLearner):
    """Trains both heads, and what is not frozen, on known images and each bag together."""

    def __init__(
        self, start: Network, head: nn.Module, known: ImageSet, config: RSConfig, plan: Plan, seconds: float = 0.0
    ) -> None:
        settings = plan.settings(known, config) | config.start.seen(plan)
        super().__init__("rs", plan.desk, config.start.network, config.stage.schedule.precision, seconds, settings)
        self.start, self.head, self.known = start, head, known
        self.config, self.augmentation = config, plan.augmentation

    def adapt(self, images: Tensor, k: int, groups: Tensor | None, desk: Desk) -> nn.Module:
        """Of so many trainings, each from a novel head of its own, the best; that one is trained on, where asked for.

        The best has clusters that agree most with nearest neighbours, by features from before any of them: each
        training moves its own, and its pair labels with them, so that a low loss says little. With too few observations
        to have neighbours of their class, there is one training.
        """
        config = self.config
        fit = self.judge(images, k) if config.restarts > 1 or config.steady is not None else None
        if fit is None:
            return self.attempt(images, k, groups, desk)
        desks = [replace(desk, seed=desk.seed + APART * number) for number in range(config.restarts)]
        models = [self.attempt(images, k, groups, one) for one in desks]
        fits = [fit(model) for model in models]
        best = max(range(len(models)), key=fits.__getitem__)
        listed = ", ".join(f"{value:.3f}" for value in fits)
        desk.reporter.say(f"rs: agreement of clusters with neighbours after each training: {listed}; {best + 1} stays.")
        if config.steady is None:
            return models[best]
        steadied = deepcopy(models[best])
        steadied.steps = StepCount()
        more = {"steady": config.steady, "of": config.restarts}
        self.learn(steadied, config.steady, images, k, groups, replace(desk, seed=desk.seed + STEADYING), more)
        stays = (after := fit(steadied)) >= UNMERGED * fits[best]
        desk.reporter.say(f"rs: steadied, it is {after:.3f}{'' if stays else '; what there was before stays'}.")
        return steadied if stays else models[best]

    def judge(self, images: Tensor, k: int) -> Callable[[nn.Module], float] | None:
        """How well a model's clusters of a bag agree with nearest neighbours; None where there are too few images."""
        neighbours = min(NEIGHBOURS, len(images) // (2 * k))  # at most half the images of a class
        if neighbours == 0:
            return None
        near = nearest(functional.normalize(self.answers(self.start, images)), neighbours)
        return lambda model: agreement(self.answers(model, images).argmax(1), near)

    def answers(self, model: nn.Module, images: Tensor) -> Tensor:
        """What a network makes of the observations, each on its own."""
        return network_encoder(model, self.desk.device, self.precision)(images)

    def attempt(self, images: Tensor, k: int, groups: Tensor | None, desk: Desk) -> TwoHeads:
        """One training from the start."""
        novel_head = head_of(self.start.width, k, self.config.hidden, desk)
        model = TwoHeads(deepcopy(self.start), deepcopy(self.head), novel_head)
        self.learn(model, self.config.consistency, images, k, groups, desk)
        return model

    def learn(
        self,
        model: TwoHeads,
        consistency: float,
        images: Tensor,
        k: int,
        groups: Tensor | None,
        desk: Desk,
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Train on known images and the bag's, so many of either in each step that none is without novel pairs.

        Args:
            model: What is trained.
            consistency: Final weight of the agreement of two views.
            images: (n, …) the observations.
            k: Number of classes.
            groups: (n,) their true classes, for the oracle alone.
            desk: Where to.
            more: What tells this training from a first one on the same bag.
        """
        config, known = self.config, self.known
        stage = config.stage if config.each is None else replace(config.stage, batch=config.each * k)
        schedule = stage.schedule_for(len(images))

        with replayed(JointLoss(model, config.top)) as joint:

            def loss(generator: torch.Generator) -> Tensor:
                novel = stage.draw(len(images), generator)
                shown = torch.randint(len(known), (config.known,), generator=generator, device=desk.device)
                batch = torch.cat([known.images[shown], images[novel]])
                views = augment(torch.cat([batch, batch]), self.augmentation, generator)
                # Filled in on the device: a copy from the CPU would wait for it.
                weight = torch.full(
                    (), consistency * ramp(model.steps.next() / schedule.steps, config.ramp), device=desk.device
                )
                similar = () if groups is None else (label_pairs(groups[novel]),)
                return joint(views, known.labels[shown], weight, *similar)

            self.train_on(images, k, groups, model, loss, schedule, desk, more)
