"""MM's mathematics: label-free gradient steps on the observations of many tasks at once, and losses through them.

Only the forward pass is batched over tasks by `vmap`. Gradients are taken outside it, by one call for all tasks: the
tasks' losses are summed, and no task's parameters touch another's loss. Both orders then run in torch's own engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from medi.core.errors import InputError
from medi.methods.pair_losses import label_pairs, likelihood_loss, rank_pairs
from medi.methods.prototypes import prototype_loss
from medi.nn import Network
from medi.nn.norm import statistics_from

Parameters = Mapping[str, Tensor]
Pairs = Literal["rank", "label"]


@dataclass(frozen=True)
class InnerSteps:
    """Gradient steps on a task's observations.

    Attributes:
        steps: How many.
        rate: Their size.
        top: Two items are taken for similar where their sets of so many largest features are equal.
        precision: float32 or bfloat16, of activations; parameters and statistics stay float32.
    """

    steps: int = 10
    rate: float = 0.01
    top: int = 10
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        if self.steps < 0 or self.top < 1 or not self.rate > 0:
            raise InputError(
                f"{self.steps} inner steps of rate {self.rate} with the {self.top} largest features: "
                "give no negative number of steps, a rate above 0 and at least one feature."
            )


class Clusterer(nn.Module):
    """An embedding and a linear head on it, one output a cluster."""

    def __init__(self, body: Network, width: int, clusters: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(width, clusters)

    def forward(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings (n, width) and logits (n, clusters) of items (n, …)."""
        embedded = self.body(items)
        return embedded, self.head(embedded)


def respond(
    model: nn.Module, parameters: Parameters, items: Tensor, *, leading: int | None = None, precision: str = "float32"
) -> tuple[Tensor, Tensor]:
    """Embeddings (tasks, n, width) and logits (tasks, n, clusters) of each task's items (tasks, n, …), floats.

    Each task has parameters (tasks, …) of its own, the model none; results are as precise as these. Items are
    normalised by the first `leading` of a task alone, or by all of them.
    """

    def one(parameters: Parameters, items: Tensor) -> tuple[Tensor, Tensor]:
        answers: tuple[Tensor, Tensor] = functional_call(model, dict(parameters), (items,))
        return answers

    statistics: AbstractContextManager[object] = statistics_from(model, leading) if leading else nullcontext()
    # Without a cache of cast weights: they change at every step, and a CUDA graph must not depend on one.
    half = torch.autocast(items.device.type, torch.bfloat16, precision == "bfloat16", cache_enabled=False)
    with statistics, half:
        embedded, logits = vmap(one)(dict(parameters), items)
    dtype = next(iter(parameters.values())).dtype
    return embedded.to(dtype), logits.to(dtype)


def adapt(
    model: nn.Module, start: Parameters, observations: Tensor, inner: InnerSteps, similar: Tensor | None = None
) -> Parameters:
    """Each task's parameters (tasks, …) after the inner steps on its observations (tasks, n, …), floats.

    All tasks start alike, and where the start requires gradients, they reach it; the model's own parameters are not
    used. Pair labels `similar` (tasks, n, n) take the place of rank statistics, for the oracle and for tests.
    """
    names = list(start)
    second_order = torch.is_grad_enabled() and any(value.requires_grad for value in start.values())

    def loss(values: Sequence[Tensor]) -> Tensor:
        parameters = dict(zip(names, values, strict=True))
        embedded, logits = respond(model, parameters, observations, precision=inner.precision)
        return likelihood_loss(logits, rank_pairs(embedded.detach(), inner.top) if similar is None else similar).sum()

    values: Sequence[Tensor] = [value.expand(len(observations), *value.shape) for value in start.values()]
    for _ in range(inner.steps):
        with torch.enable_grad():
            at = values if second_order else [value.detach().requires_grad_() for value in values]
            gradients = torch.autograd.grad(loss(at), at, create_graph=second_order)
        values = [torch.add(*both, alpha=-inner.rate) for both in zip(values, gradients, strict=True)]
    return dict(zip(names, values, strict=True))


class MetaLoss(nn.Module):
    """The mean loss of tasks: adapt to the observations, then score the pairs of queries.

    Queries are normalised by the statistics of the observations, as they will be at discovery. A function of tensors
    alone, so that it can be recorded.

    Args:
        model: What is trained.
        inner: The steps on the observations.
        pairs: What makes two queries similar: their class, or equal sets of largest features (the paper's equation).
        prototypes: Weight of a second loss, of the adapted embedding: queries must lie nearest to their class's mean
            observation. Items then come class by class, equally many of each.
        way: Number of classes in a task, where that loss counts.
    """

    def __init__(
        self, model: Clusterer, inner: InnerSteps, pairs: Pairs = "label", prototypes: float = 0.0, way: int = 0
    ) -> None:
        super().__init__()
        self.model, self.inner, self.pairs, self.prototypes, self.way = model, inner, pairs, prototypes, way

    def forward(self, images: Tensor, observed: Tensor, asked: Tensor) -> Tensor:
        """The loss of tasks.

        Args:
            images: (tasks, n + m, …), floats: first the observations, then the queries.
            observed: (tasks, n) classes of the observations, of which only the number counts.
            asked: (tasks, m) classes of the queries.
        """
        shown, start = observed.shape[1], dict(self.model.named_parameters())
        adapted = adapt(self.model, start, images[:, :shown], self.inner)
        embedded, logits = respond(self.model, adapted, images, leading=shown, precision=self.inner.precision)
        support, query, logits = embedded[:, :shown], embedded[:, shown:], logits[:, shown:]
        by_rank = self.pairs == "rank"
        alike = rank_pairs(query.detach(), self.inner.top) if by_rank else label_pairs(asked, logits.dtype)
        loss = likelihood_loss(logits, alike).mean()
        if not self.prototypes:
            return loss
        width = query.shape[-1]
        support, query = (part.reshape(len(query), self.way, -1, width) for part in (support, query))
        return loss + self.prototypes * prototype_loss(support, query, temperature=width**0.5)
