"""MP and MM as Definition 3 has them: meta-algorithms A that turn a list of tasks S into a way to cluster.

Training is a function of the tasks, their order and the seed, so that it can be repeated with one task left out and
nothing else changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.core.errors import InputError
from medi.data.augment import to_float
from medi.data.imageset import ImageSet
from medi.kmeans.kmeans import squared_distances
from medi.methods.inner_steps import Clusterer, InnerSteps, MetaLoss, adapt, respond
from medi.methods.prototypes import prototype_loss
from medi.metrics import score_episodes
from medi.nn import build, seeded
from medi.nn.context import Context
from medi.nn.loop import train
from medi.nn.schedule import Schedule
from medi.tasks.episodes import Task

LOSSES = MappingProxyType({"zero-one": 1.0, "clamped": 2.0})
"""Losses and their bound M: the fraction of errors, and the training loss, cut off for each query (MP) or pair (MM)."""


@dataclass(frozen=True)
class Training:
    """How A learns: the same number of steps whatever the number of tasks.

    Attributes:
        hidden: Layers of the network, a multilayer perceptron.
        steps: Gradient steps.
        batch: Tasks in each.
        rate: Learning rate, falling to 0 along a cosine.
        inner_steps: MM's label-free steps in a task.
        inner_rate: Their size.
    """

    hidden: tuple[int, ...] = (64, 64)
    steps: int = 60
    batch: int = 4
    rate: float = 3e-3
    inner_steps: int = 5
    inner_rate: float = 0.05


def draw_order(n: int, training: Training, generator: torch.Generator) -> Tensor:
    """The tasks of every step, (steps, batch): all of them shuffled, then all shuffled again, and so on."""
    if n < 1 or n % training.batch:
        raise InputError(f"{n} tasks do not fill batches of {training.batch}: give a multiple of it.")
    rounds = -(-training.steps * training.batch // n)
    order = torch.cat([torch.randperm(n, generator=generator) for _ in range(rounds)])
    return order[: training.steps * training.batch].view(training.steps, training.batch)


class MetaAlgorithm(ABC):
    """A meta-algorithm on tasks of one shape.

    Args:
        training: How it learns.
        shape: An item's shape.
        way: Classes in a task.
        seed: Of the first weights.
    """

    def __init__(self, training: Training, shape: tuple[int, ...], way: int, seed: int) -> None:
        self.training, self.shape, self.way, self.seed = training, shape, way, seed

    def fit(self, known: ImageSet, tasks: Task, order: Tensor, left_out: int | None = None) -> nn.Module:
        """A(S), or A(S without one task): the same steps in the same order without the terms of that task."""
        model = self.untrained()
        rows = iter(order)

        def loss(generator: torch.Generator) -> Tensor:
            row = next(rows)
            if left_out is not None:
                row = row[row != left_out]
            return self.loss(
                model, to_float(known.images[tasks.support[row]]), to_float(known.images[tasks.query[row]])
            )

        schedule = Schedule(self.training.steps, self.training.rate, precision="float32")
        train(model, loss, schedule, Context(seed=self.seed), title="stability", identity={})
        return model

    @torch.no_grad()
    def risks(self, model: nn.Module, images: ImageSet, tasks: Task) -> dict[str, Tensor]:
        """The mean loss of each task, (tasks,), for each of `LOSSES`."""
        return self.measure(model, to_float(images.images[tasks.support]), to_float(images.images[tasks.query]))

    @abstractmethod
    def untrained(self) -> nn.Module:
        """The untrained model."""

    @abstractmethod
    def loss(self, model: nn.Module, support: Tensor, query: Tensor) -> Tensor:
        """What training minimises, of items (tasks, way, …) each."""

    @abstractmethod
    def measure(self, model: nn.Module, support: Tensor, query: Tensor) -> dict[str, Tensor]:
        """The losses (tasks,) by name."""


class MPAlgorithm(MetaAlgorithm):
    """MP: prototypes are the means of a task's labelled classes, in training and when the loss is measured."""

    TEMPERATURE = 16.0

    def untrained(self) -> nn.Module:
        """An embedding."""
        return build("mlp", self.shape, seed=self.seed, hidden=self.training.hidden)

    def loss(self, model: nn.Module, support: Tensor, query: Tensor) -> Tensor:
        """Cross-entropy of the queries against prototypes."""
        return prototype_loss(*self._embed(model, support, query), temperature=self.TEMPERATURE)

    def measure(self, model: nn.Module, support: Tensor, query: Tensor) -> dict[str, Tensor]:
        """Fraction of queries nearest to another class's prototype; their cross-entropy, clamped."""
        shown, asked = self._embed(model, support, query)
        logits = -squared_distances(asked.flatten(1, 2), shown.mean(2)) / self.TEMPERATURE
        labels = torch.arange(self.way).repeat_interleave(query.shape[2]).expand(logits.shape[:2])
        losses = functional.cross_entropy(logits.mT, labels, reduction="none")
        return {
            "zero-one": (logits.argmax(2) != labels).double().mean(1),
            "clamped": losses.clamp(max=LOSSES["clamped"]).double().mean(1),
        }

    @staticmethod
    def _embed(model: nn.Module, support: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        items = torch.cat([support, query], 2)
        embedded: Tensor = model(items.flatten(0, 2)).unflatten(0, items.shape[:3])
        return embedded[:, :, : support.shape[2]], embedded[:, :, support.shape[2] :]


class MMAlgorithm(MetaAlgorithm):
    """MM: adapts to a task's unlabelled observations; 0-1 loss is counted under the best map of clusters to classes."""

    def untrained(self) -> nn.Module:
        """An embedding with a head."""
        body = build("mlp", self.shape, norm="batch", seed=self.seed, hidden=self.training.hidden)
        with seeded(self.seed, stream=1):
            return Clusterer(body, body.width, self.way)

    def loss(self, model: nn.Module, support: Tensor, query: Tensor) -> Tensor:
        """Eq. 3 on the queries' classes after the inner steps."""
        items = torch.cat([support.flatten(1, 2), query.flatten(1, 2)], 1)
        return MetaLoss(model, self._inner())(items, self._labels(support), self._labels(query))

    def measure(self, model: nn.Module, support: Tensor, query: Tensor) -> dict[str, Tensor]:
        """1 - ACC of the queries; Eq. 3 with the term of each pair clamped."""
        weights = {name: value.detach() for name, value in model.named_parameters()}
        observations, queries = support.flatten(1, 2), query.flatten(1, 2)
        weights = adapt(model, weights, observations, self._inner())
        shown = observations.shape[1]
        _, logits = respond(model, weights, torch.cat([observations, queries], 1), leading=shown)
        p = logits[:, shown:].softmax(-1)
        labels = self._labels(query)
        together = (p @ p.mT).clamp(1e-7, 1 - 1e-7)
        similar = labels[:, :, None] == labels[:, None]
        terms = -torch.where(similar, together, 1 - together).log()
        accuracies = score_episodes(labels.numpy(), p.argmax(-1).numpy()).acc
        return {
            "zero-one": 1 - torch.from_numpy(accuracies),
            "clamped": terms.clamp(max=LOSSES["clamped"]).double().mean((1, 2)),
        }

    def _inner(self) -> InnerSteps:
        return InnerSteps(self.training.inner_steps, self.training.inner_rate)

    def _labels(self, query: Tensor) -> Tensor:
        return torch.arange(self.way).repeat_interleave(query.shape[2]).expand(len(query), -1)


ALGORITHMS: Mapping[str, type[MetaAlgorithm]] = MappingProxyType({"mp": MPAlgorithm, "mm": MMAlgorithm})
