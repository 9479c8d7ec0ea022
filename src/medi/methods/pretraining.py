"""What a network learns from the known classes before any observation is seen: the first stage of DTC and RS.

Trained once for a dataset and seed, kept under its settings, and shared by every method and config that asks for the
same start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.data.augment import augment
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.base import Plan
from medi.methods.mp import prototype_loss
from medi.nets import Network, build, place, seeded
from medi.runtime.context import Context
from medi.tasks.episodes import UniformSampler
from medi.train.cuda_graph import replayed
from medi.train.loop import Loss, train
from medi.train.schedule import Schedule
from medi.train.supervised import train_classifier

WAY, SHOTS = 20, 5
"""Size of a prototypical task: so many classes, half of their images as prototypes, half as queries."""


@dataclass(frozen=True)
class Start:
    """How a network begins.

    Attributes:
        kind: Tell known classes apart by a linear layer (classes) or by prototypes of tasks (prototypes), or tell by
            how many quarter turns an image was turned (rotations, RotNet).
        network: A name in `medi.nets.NETWORKS`.
        batch: Images in a gradient step.
        schedule: Length and rates.
        observed: Where everything is observed, turn those images, too, not those of known classes alone.
    """

    kind: Literal["classes", "prototypes", "rotations"] = "classes"
    network: str = "resnet18"
    batch: int = 256
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=3000, shape="onecycle", decay=5e-4))
    observed: bool = False

    def __post_init__(self) -> None:
        if self.observed and self.kind != "rotations":
            raise InputError(f"a start from {self.kind} needs labels, which observed images do not have.")

    def beside(self, plan: Plan) -> Tensor | None:
        """The images that are seen beside the known ones, if any."""
        return plan.observed if self.observed else None

    def seen(self, plan: Plan) -> dict[str, Any]:
        """Which these are: a setting of all that is trained from this start."""
        images = self.beside(plan)
        return {} if images is None else {"observed": ImageSet.unlabelled(images).fingerprint()}


CPU = Start("classes", "conv4", batch=128, schedule=Schedule(steps=80, rate=3e-3, shape="onecycle"))
CHARACTERS = Start("prototypes", "conv4-wide", batch=400, schedule=Schedule(steps=2000))
CHARACTERS_LONG = Start("prototypes", "conv4-wide", batch=400, schedule=Schedule(steps=8000))
CHARACTERS_FULL = Start(
    "prototypes", "conv4-wide", batch=200, schedule=Schedule(steps=20_000, shape="halve", halve_every=4000)
)
"""Starts that DTC and RS share."""


def started(known: ImageSet, config: Start, plan: Plan) -> tuple[Network, float]:
    """A network that has learnt from the known classes, and the seconds it took."""
    context = plan.context
    network = place(build(config.network, tuple(known.images.shape[1:]), seed=context.seed), context.device)
    settings = plan.settings(known, config) | config.seen(plan)
    if config.kind == "classes":
        seconds = train_classifier(
            network,
            known,
            config.schedule,
            context,
            augmentation=plan.augmentation,
            batch=config.batch,
            settings=settings,
        )
    elif config.kind == "prototypes":
        seconds = train(
            network,
            _prototypes(network, known, config, plan),
            config.schedule,
            context,
            title="prototypes",
            settings=settings,
        )
    else:
        model = nn.Sequential(network, linear(network.width, 4, context))
        beside = config.beside(plan)
        images = known.images if beside is None else torch.cat([known.images, beside])
        with replayed(LabelLoss(model)) as label_loss:
            loss = _rotations(label_loss, images, config, plan)
            seconds = train(model, loss, config.schedule, context, title="rotations", settings=settings)
    return network, seconds


def linear(inputs: int, outputs: int, context: Context, stream: int = 1) -> nn.Linear:
    """A linear layer whose weights follow from the seed and, where there are several, from the stream."""
    with seeded(context.seed, stream=stream):
        return nn.Linear(inputs, outputs).to(context.device)


def _prototypes(network: Network, known: ImageSet, config: Start, plan: Plan) -> Loss:
    way = min(WAY, known.n_classes)
    sampler = UniformSampler(known.labels, way, SHOTS, SHOTS, known.class_names)
    tasks = max(1, config.batch // (2 * way * SHOTS))

    def loss(generator: torch.Generator) -> Tensor:
        task = sampler.sample(tasks, generator)
        items = torch.cat([task.support, task.query], 2)
        images = augment(known.images[items.flatten()], plan.augmentation, generator)
        return prototype_loss(*network(images).unflatten(0, items.shape).chunk(2, dim=2))

    return loss


class LabelLoss(nn.Module):
    """Cross-entropy of a model's answers, as a function of tensors alone, so that it can be recorded."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """The mean over images (n, …) with labels (n,)."""
        return functional.cross_entropy(self.model(images).float(), labels)


def _rotations(label_loss: Callable[..., Tensor], images: Tensor, config: Start, plan: Plan) -> Loss:
    if images.ndim != 4:
        raise InputError("only images can be turned: start from classes or prototypes on plain vectors.")
    quarter = max(1, config.batch // 4)
    turns = torch.arange(4, device=plan.context.device).repeat_interleave(quarter)

    def loss(generator: torch.Generator) -> Tensor:
        items = torch.randint(len(images), (4 * quarter,), generator=generator, device=plan.context.device)
        upright = augment(images[items], plan.augmentation, generator)
        return label_loss(turned(upright), turns)

    return loss


def turned(images: Tensor) -> Tensor:
    """Images (n, c, h, w) with the first quarter of them upright, the second turned by 90 degrees, and so on."""
    return torch.cat([torch.rot90(part, turns, (-2, -1)) for turns, part in enumerate(images.chunk(4))])
