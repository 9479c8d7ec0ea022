"""MM: meta discovery by MAML (the paper's Algorithm 2).

A network with a softmax head is trained so that a few label-free gradient steps on a task's observations end in the
right clusters: items are pulled together or apart in pairs, and the loss on the task's queries is differentiated
through those steps. At discovery the same steps run on the novel observations, and the head's largest output is the
cluster.

All tasks of a batch are adapted at once (`vmap` over tasks), in training as in scoring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from medi.data.augment import augment, to_float
from medi.data.images import ImageSet
from medi.errors import InputError
from medi.methods.base import Assignment, Clustering, Learner, Method, Plan
from medi.nets import build, statistics_from
from medi.tasks import make_sampler
from medi.train import ranks
from medi.train.loop import train
from medi.train.schedule import Schedule

Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class MMConfig:
    """Settings of MM.

    Attributes:
        network: A name in `medi.nets.NETWORKS`.
        embedding: Size of the embedding; None for the network's own.
        inner_steps: Label-free gradient steps on a task's observations.
        inner_rate: Their size.
        first_order: Treat the inner gradients as constants: cheaper, less exact.
        outer_pairs: What makes two queries similar in training: their class (`label`), or equal sets of largest
            features (`rank`, the paper's equation). The inner steps always go by rank: they must do without labels.
        top: Size of those sets.
        tasks: Tasks in a gradient step.
        schedule: Length and rates of the outer training.
    """

    network: str = "conv4"
    embedding: int | None = None
    inner_steps: int = 10
    inner_rate: float = 0.01
    first_order: bool = False
    outer_pairs: Literal["label", "rank"] = "label"
    top: int = 10
    tasks: int = 16
    schedule: Schedule = field(
        default_factory=lambda: Schedule(steps=400, rate=1e-3, shape="constant", clip=10.0, precision="float32")
    )


def rank_pairs(features: Tensor, top: int) -> Tensor:
    """Which items (n, d) share the same set of `top` largest features: (n, n) of ones and zeros."""
    largest = features.topk(min(top, features.shape[-1])).indices
    member = torch.zeros_like(features).scatter(-1, largest, 1.0)
    return (member @ member.mT > largest.shape[-1] - 0.5).to(features.dtype)


def pair_loss(logits: Tensor, similar: Tensor) -> Tensor:
    """Eq. 3: binary cross-entropy of p_i . p_j against pair labels, over all ordered pairs, i = j included.

    Args:
        logits: (n, clusters).
        similar: (n, n) of ones and zeros.
    """
    p = logits.softmax(-1)
    together = (p @ p.mT).clamp(1e-7, 1 - 1e-7)
    return -(similar * together.log() + (1 - similar) * (1 - together).log()).mean()


class Clusterer(nn.Module):
    """An embedding and a linear head on it, one output a cluster."""

    def __init__(self, body: nn.Module, width: int, clusters: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(width, clusters)

    def forward(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings (n, width) and logits (n, clusters) of items (n, …)."""
        embedded = self.body(items)
        return embedded, self.head(embedded)


def adapt(
    model: nn.Module, parameters: Parameters, observations: Tensor, config: MMConfig, similar: Tensor | None = None
) -> Parameters:
    """The parameters after the inner steps on one task's observations (n, …).

    Args:
        model: A `Clusterer`, whose own parameters are not used.
        parameters: Where the steps start.
        observations: Items of one task, floats.
        config: Number and size of the steps.
        similar: (n, n) pair labels to use instead of rank statistics: for the oracle and for tests.
    """

    def loss(parameters: Parameters) -> Tensor:
        embedded, logits = functional_call(model, parameters, (observations,))
        return pair_loss(logits, rank_pairs(embedded.detach(), config.top) if similar is None else similar)

    for _ in range(config.inner_steps):
        gradients = grad(loss)(parameters)
        if config.first_order:
            gradients = {name: gradient.detach() for name, gradient in gradients.items()}
        parameters = {name: value - config.inner_rate * gradients[name] for name, value in parameters.items()}
    return parameters


def respond(model: nn.Module, parameters: Parameters, observations: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
    """Embeddings and logits of one task's queries (m, …), normalised by its observations (n, …) alone."""
    with statistics_from(model, len(observations)):
        embedded, logits = functional_call(model, parameters, (torch.cat([observations, queries]),))
    return embedded[len(observations) :], logits[len(observations) :]


def outer_loss(
    model: nn.Module, parameters: Parameters, observations: Tensor, queries: Tensor, labels: Tensor, config: MMConfig
) -> Tensor:
    """One task's loss: adapt on its observations, then score the pairs of its queries by label or by rank."""
    adapted = adapt(model, parameters, observations, config)
    embedded, logits = respond(model, adapted, observations, queries)
    if config.outer_pairs == "label":
        return pair_loss(logits, (labels[:, None] == labels).to(logits.dtype))
    return pair_loss(logits, rank_pairs(embedded.detach(), config.top))


class MM(Method):
    """Discovery by MAML."""

    name: ClassVar[str] = "mm"
    takes_sampler: ClassVar[bool] = True
    configs: ClassVar[Mapping[str, MMConfig]] = {
        "default": MMConfig(),
        "paper": MMConfig(
            network="vgg16",
            inner_rate=0.001,
            outer_pairs="rank",
            schedule=Schedule(steps=1000, rate=0.4, optimiser="sgd", shape="constant", precision="float32"),
        ),
    }

    def __init__(self, config: MMConfig) -> None:
        self.settings = config

    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """Train the start of the inner steps on tasks of known classes."""
        config, desk = self.settings, plan.desk
        way = min(plan.way, known.n_classes)
        size = {"way": way, "observations": plan.observations, "queries": plan.queries}
        sampler = make_sampler(plan.sampler, known, **size, views=plan.views, augmentation=plan.augmentation, desk=desk)
        body = build(
            config.network, tuple(known.images.shape[1:]), embedding=config.embedding, norm="batch", seed=desk.seed
        )
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(desk.seed + 1_000_003)
            model = Clusterer(body, body.width, plan.way).to(desk.device)

        def loss(generator: torch.Generator) -> Tensor:
            task = sampler.sample(config.tasks, generator)
            items = torch.cat([task.support.flatten(1), task.query.flatten(1)], 1)
            mine = ranks.part(len(items))  # tasks do not see one another, so whole tasks are shared out
            images = augment(known.images[items], plan.augmentation, generator, mine)
            shown = task.support[0].numel()

            def one(observations: Tensor, queries: Tensor, labels: Tensor) -> Tensor:
                return outer_loss(model, dict(model.named_parameters()), observations, queries, labels, config)

            losses: Tensor = vmap(one)(images[:, :shown], images[:, shown:], task.query_labels[mine])
            return ranks.mean(losses.mean(), len(items))

        settings = plan.settings(known, config, **size, clusters=plan.way)
        seconds = train(model, loss, config.schedule, desk, title="mm", settings=settings)
        return MMLearner(model, plan.way, config, seconds)


class MMLearner(Learner):
    """Adapts to each bag by the inner steps it was trained for."""

    def __init__(self, model: Clusterer, way: int, config: MMConfig, training_seconds: float = 0.0) -> None:
        self.model, self.way, self.config = model, way, config
        self.network, self.training_seconds = config.network, training_seconds

    def discover(self, encoded: Tensor, bag: Tensor, k: int, generator: torch.Generator) -> Clustering:
        """Take the inner steps on every bag at once."""
        return self._adapted(encoded, bag, k, None)

    def oracle(self, encoded: Tensor, bag: Tensor, groups: Tensor, k: int) -> Clustering:
        """The same steps with the true groups as pair labels."""
        return self._adapted(encoded, bag, k, (groups[:, :, None] == groups[:, None]).float())

    def _adapted(self, encoded: Tensor, bag: Tensor, k: int, similar: Tensor | None) -> Clustering:
        if k != self.way:
            raise InputError(f"this learner was trained to tell {self.way} classes apart, not {k}: train it for {k}.")
        start = {name: value.detach() for name, value in self.model.named_parameters()}
        observations = to_float(encoded[bag])

        def one(items: Tensor, pairs: Tensor | None) -> Parameters:
            return adapt(self.model, start, items, self.config, pairs)

        adapted = vmap(one, in_dims=(0, None if similar is None else 0))(observations, similar)
        return MMClustering(self.model, {n: v.detach() for n, v in adapted.items()}, observations)


class MMClustering(Clustering):
    """Clusters that are outputs of an adapted network.

    Args:
        model: The network.
        adapted: Its parameters for each bag, (episodes, …) each.
        observations: (episodes, n, …) the bags, whose statistics normalise whatever is assigned.
    """

    def __init__(self, model: Clusterer, adapted: Parameters, observations: Tensor) -> None:
        self.model, self.adapted, self.observations = model, adapted, observations
        self.confidence, self.labels = self._probabilities(observations).max(-1)

    def assign(self, encoded: Tensor, items: Tensor) -> Assignment:
        """The head's largest output for each item, normalised by the observations alone."""
        confidence, labels = self._probabilities(to_float(encoded[items])).max(-1)
        return Assignment(labels, confidence)

    def refine(self, encoded: Tensor, items: Tensor, *, equal_sizes: bool = False) -> Assignment:
        """The head's largest output, with normalisation by all items that are seen together."""

        def together(parameters: Parameters, observations: Tensor, queries: Tensor) -> Tensor:
            _, logits = functional_call(self.model, parameters, (torch.cat([observations, queries]),))
            answers: Tensor = logits[len(observations) :]
            return answers

        logits: Tensor = vmap(together)(self.adapted, self.observations, to_float(encoded[items]))
        confidence, labels = logits.detach().softmax(-1).max(-1)
        return Assignment(labels, confidence)

    def _probabilities(self, queries: Tensor) -> Tensor:
        def one(parameters: Parameters, observations: Tensor, items: Tensor) -> Tensor:
            return respond(self.model, parameters, observations, items)[1]

        logits: Tensor = vmap(one)(self.adapted, self.observations, queries)
        return logits.detach().softmax(-1)
