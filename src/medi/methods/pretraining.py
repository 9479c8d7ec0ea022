"""Pretraining: what a network learns from the known classes before a method's own training or any observation.

It is trained once for a dataset and seed, kept under its settings, and shared by every method that asks for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.core.errors import InputError
from medi.data.augment import augment, paste
from medi.data.imageset import ImageSet
from medi.jobs import ranks
from medi.methods.base import Plan
from medi.methods.prototypes import task_loss
from medi.nn import Network, build_for, seeded
from medi.nn.context import Context
from medi.nn.cuda_graph import replayed
from medi.nn.loop import Loss, train
from medi.nn.norm import forward_together
from medi.nn.schedule import Schedule
from medi.presets import Presets, read_presets
from medi.tasks.episodes import UniformSampler


@dataclass(frozen=True)
class Pretraining:
    """How a network learns.

    Attributes:
        kind: Tell known classes apart by a linear layer (classes) or by prototypes of tasks (prototypes), or tell by
            how many quarter turns an image was turned (rotations, RotNet).
        network: A name in `medi.nn.NETWORKS`.
        batch: Images in a gradient step; of tasks, as many whole ones as that makes.
        schedule: Length and rates.
        mix: classes: probability that a box of another image is put into an image, and its label shared accordingly
            (CutMix).
        observed: rotations: where everything is observed, turn those images, too, not those of known classes alone.
        way: prototypes: classes in a task, never more than there are.
        observations: prototypes: observed images of a class, never more than half of the smallest.
        queries: prototypes: queries of a class, never more than the smallest has left.
        temperature: prototypes: squared distances are divided by this.
    """

    presets: ClassVar[Presets] = read_presets("pretraining")

    kind: Literal["classes", "prototypes", "rotations"] = "classes"
    network: str = "resnet18"
    batch: int = 256
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=3000, shape="onecycle", decay=5e-4))
    mix: float = 0.0
    observed: bool = False
    way: int = 20
    observations: int = 5
    queries: int = 5
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.observed and self.kind != "rotations":
            raise InputError(f"pretraining by {self.kind} needs labels, which observed images do not have.")
        if self.mix and self.kind != "classes":
            raise InputError(f"pretraining by {self.kind} has no labels to share: give mix with classes alone.")

    def identity(self, known: ImageSet, plan: Plan, before: tuple[Pretraining, ...] = ()) -> dict[str, Any]:
        """All that it depends on beside schedule and seed, and what the network had learnt before."""
        beside = plan.observed if self.observed else None
        return {
            "pretraining": asdict(self),
            "before": [asdict(stage) for stage in before],
            "known": known.fingerprint(),
            "augmentation": asdict(plan.augmentation),
            "observed": None if beside is None else ImageSet.unlabelled(beside).fingerprint(),
        }


def check_start(before: Pretraining | None, schedule: Schedule, network: str) -> None:
    """Refuse a method that would learn nothing, or go on with another network than it was pretrained with."""
    if not (schedule.steps or before):
        raise InputError("without steps and without pretraining nothing is learnt: give schedule.steps or pretraining.")
    if before and before.network != network:
        raise InputError(
            f"a {before.network} cannot become a {network}: give both the same network, and its own embedding."
        )


def pretrain(known: ImageSet, plan: Plan, *stages: Pretraining) -> Network:
    """A network that has learnt from the known classes, in one stage or several."""
    context = plan.context
    network = build_for(stages[0].network, known.images, context)
    for number, stage in enumerate(stages):
        identity = stage.identity(known, plan, stages[:number])
        with _LOSSES[stage.kind](network, known, stage, plan) as (model, loss):
            train(model, loss, stage.schedule, context, title=stage.kind, identity=identity)
    return network


def linear(inputs: int, outputs: int, context: Context, stream: int = 1) -> nn.Linear:
    """A linear layer whose weights follow from the seed and, where there are several, from the stream."""
    with seeded(context.seed, stream=stream):
        return nn.Linear(inputs, outputs).to(context.device)


@contextmanager
def _classes(network: Network, known: ImageSet, config: Pretraining, plan: Plan) -> Iterator[tuple[nn.Module, Loss]]:
    """Cross-entropy of the known classes."""
    model = Classifier(network, linear(network.width, known.n_classes, plan.context))
    with class_loss(model, known, config.batch, plan, config.mix) as loss:
        yield model, loss


@contextmanager
def class_loss(model: Classifier, known: ImageSet, batch: int, plan: Plan, mix: float = 0.0) -> Iterator[Loss]:
    """Cross-entropy of the known classes on so many of their images; `mix` is that of `Pretraining`."""
    labelled = known.labelled()
    with classifier_loss(model) as label_loss:

        def loss(generator: torch.Generator) -> Tensor:
            items = labelled[torch.randint(len(labelled), (batch,), generator=generator, device=generator.device)]
            images, labels = known.images[items], known.labels[items]
            shared: tuple[Tensor, ...] = ()
            if mix:
                images, *shared_labels = _mixed(images, labels, mix, generator)
                shared = tuple(shared_labels)
            return label_loss(augment(images, plan.augmentation, generator), labels, *shared)

        yield loss


def _mixed(images: Tensor, labels: Tensor, chance: float, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Images with boxes of one another, the labels of the boxes, and the share of each image that is its own."""
    draws = torch.rand(4, len(images), generator=generator, device=images.device)
    order = torch.roll(torch.arange(len(images), device=images.device), 1)  # items are in random order already
    share = torch.where(draws[0] < chance, draws[1], 0)
    mixed, own = paste(images, images[order], share, draws[2], draws[3])
    return mixed, labels[order], own


@contextmanager
def _prototypes(network: Network, known: ImageSet, config: Pretraining, plan: Plan) -> Iterator[tuple[nn.Module, Loss]]:
    """Tasks of known classes, as MP has them."""
    counts = torch.unique(known.labels[known.labels >= 0], return_counts=True)[1]
    smallest = int(counts.min())
    way = min(config.way, len(counts))
    observations = max(1, min(config.observations, smallest // 2))
    queries = max(1, min(config.queries, smallest - observations))
    sampler = UniformSampler(known.labels, way, observations, queries, known.class_names)
    tasks = max(1, config.batch // (way * (observations + queries)))
    yield network, task_loss(network, known, sampler, tasks, plan.augmentation, temperature=config.temperature)


@contextmanager
def _rotations(network: Network, known: ImageSet, config: Pretraining, plan: Plan) -> Iterator[tuple[nn.Module, Loss]]:
    """By how many quarter turns an image was turned."""
    if known.images.ndim != 4:
        raise InputError("only images can be turned: pretrain by classes or prototypes on plain vectors.")
    context, images = plan.context, known.images
    if config.observed and plan.observed is not None:
        images = torch.cat([images, plan.observed])
    model = Classifier(network, linear(network.width, 4, context))
    quarter = max(1, config.batch // 4)
    turns = torch.arange(4, device=context.device).repeat_interleave(quarter)
    with classifier_loss(model) as label_loss:

        def loss(generator: torch.Generator) -> Tensor:
            items = torch.randint(len(images), (4 * quarter,), generator=generator, device=context.device)
            return label_loss(turned(augment(images[items], plan.augmentation, generator)), turns)

        yield model, loss


_LOSSES = {"classes": _classes, "prototypes": _prototypes, "rotations": _rotations}


def turned(images: Tensor) -> Tensor:
    """Images (n, c, h, w) with the first quarter of them upright, the second turned by 90 degrees, and so on."""
    return torch.cat([torch.rot90(part, turns, (-2, -1)) for turns, part in enumerate(images.chunk(4))])


StepLoss = Callable[..., Tensor]
"""From images (n, …), floats, and labels (n,), and where labels are shared also other labels and shares (n,) each."""


class Classifier(nn.Module):
    """A network and a head on its features."""

    def __init__(self, network: Network, head: nn.Module) -> None:
        super().__init__()
        self.network, self.head = network, head


class _LabelLoss(nn.Module):
    """The loss of a step as a function of tensors alone, so that it can be recorded."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, mine: Tensor, labels: Tensor, *shared: Tensor) -> Tensor:
        features = forward_together(self.model.network, mine, len(labels))
        # The head is small, and exponentials want all their digits.
        with torch.autocast(features.device.type, enabled=False):
            logits = self.model.head(features.to(next(self.model.head.parameters()).dtype))
            if not shared:
                return functional.cross_entropy(logits, labels)
            others, own = shared
            entropies = [functional.cross_entropy(logits, target, reduction="none") for target in (labels, others)]
            return (own * entropies[0] + (1 - own) * entropies[1]).mean()


@contextmanager
def classifier_loss(model: Classifier) -> Iterator[StepLoss]:
    """Inside, the mean cross-entropy of a batch; a GPU records the step once and replays it.

    The function takes the whole batch: of several processes each works on its part.
    """
    with replayed(_LabelLoss(model), record=ranks.count() == 1) as loss:
        yield lambda images, labels, *shared: loss(images[ranks.part(len(labels))], labels, *shared)
