"""MM's discovery: adapt to each bag by the inner steps, then read off the clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from medi.core.errors import InputError
from medi.core.tensors import under_prefix, with_prefix
from medi.data.augment import to_float
from medi.data.imageset import ImageSet
from medi.kmeans.balanced import balanced_kmeans
from medi.kmeans.free import free_kmeans
from medi.kmeans.kmeans import describe, group_means, squared_distances
from medi.kmeans.order import content_order, take
from medi.methods.base import Assignment, Clustering, Learner, Plan
from medi.methods.embedding import CentreClustering, best_temperature, prepare
from medi.methods.inner_steps import Clusterer, Parameters, adapt, respond
from medi.methods.outputs import OutputClustering
from medi.methods.pair_losses import label_pairs
from medi.metrics import score_episodes
from medi.nn import Network, rebuild
from medi.nn.devices import tensor_float32
from medi.nn.embed import Embedding, exact_network, in_batches, load_weights
from medi.nn.loop import Diverged
from medi.nn.norm import statistics_from
from medi.tasks.episodes import UniformSampler

if TYPE_CHECKING:
    from medi.methods.mm import MM

WATCHED_TASKS = 10
"""Discovery is scored, and confidence calibrated, on so many tasks."""
MOST_ADAPTED = 1000
"""Of larger bags so many items, drawn at random, take part in the inner steps and the clustering."""
MOST_AT_ONCE = 2000
"""Items asked about that are answered at a time: a pool may be large."""
REFERENCE_ITEMS = 256
"""Known items, at most, whose statistics normalise an item that is embedded by itself."""


class MMLearner(Learner):
    """Adapts to each bag by the inner steps it was trained for."""

    def __init__(self, method: MM, model: Clusterer, plan: Plan, known: ImageSet) -> None:
        self.model, self.plan = model, plan
        self.inner, self.readout, self.grouping = method.inner, method.readout, method.grouping
        self.embedding = ReferenceEmbedding.of(model.body, known)
        self.network = self.embedding.network_name
        self.temperature = 1.0

    def discover(
        self, encoded: Tensor, bag: Tensor, k: int, generator: torch.Generator, *, equal_sizes: bool = False
    ) -> Clustering:
        """Take the inner steps on every bag at once, then read off the clusters."""
        order = content_order(encoded[bag])
        shown, back = bag.gather(1, order)[:, self._part(bag)], order.argsort(1)
        if shown.shape != bag.shape:  # of a large bag a part is shown, and `_of_all` answers for all of it
            back = torch.arange(shown.shape[1], device=bag.device).expand(shown.shape)
        adapted = self._checked(self.adapt(encoded, shown), k)
        if self.readout == "head":
            head = HeadClustering(adapted, equal_sizes=equal_sizes)
            head.labels, head.confidence = take(head.labels, back), take(head.confidence, back)
            return _of_all(head, encoded, bag)
        points = self._points(adapted)
        labels = (balanced_kmeans if equal_sizes else free_kmeans)(points, k, generator=generator).labels
        centres = describe(points, labels, k).centres
        return _of_all(self._centred(adapted, take(points, back), take(labels, back), centres), encoded, bag)

    def oracle(self, encoded: Tensor, bag: Tensor, groups: Tensor, k: int) -> Clustering:
        """The same steps with the true groups as pair labels, and the groups' centres."""
        which = self._part(bag)
        groups = groups[:, which]
        adapted = self._checked(self.adapt(encoded, bag[:, which], label_pairs(groups)), k)
        if self.readout == "head":
            return _of_all(HeadClustering(adapted), encoded, bag)
        points = self._points(adapted)
        return _of_all(self._centred(adapted, points, groups, group_means(points, groups, k)), encoded, bag)

    def adapt(self, encoded: Tensor, bag: Tensor, similar: Tensor | None = None) -> AdaptedNetwork:
        """The network after the inner steps on each bag (episodes, n), by rank or by pair labels (episodes, n, n)."""
        start = {name: value.detach() for name, value in self.model.named_parameters()}
        observations = to_float(encoded[bag])
        with tensor_float32(True):
            parameters = adapt(self.model, start, observations, self.inner, similar)
        return AdaptedNetwork(self.model, parameters, observations, self.inner.precision)

    def calibrate(self, known: ImageSet) -> None:
        """Find the temperature under which the queries of known tasks are likeliest to be near their own centres."""
        if self.readout == "head":
            return  # the head's own probabilities are its confidence
        plan, way = self.plan, min(self.plan.way, known.n_classes)
        sampler = UniformSampler(known.labels, way, plan.observations, plan.queries, known.class_names)
        task = sampler.sample(WATCHED_TASKS, plan.context.generator(stream=1))
        adapted = self.adapt(known.images, task.support.flatten(1))
        points = self._points(adapted)
        centres = points.view(len(points), way, -1, points.shape[2]).mean(2)
        queries = prepare(adapted.embed(known.images, task.query.flatten(1)), self.grouping)
        distances = squared_distances(queries, centres).flatten(0, 1)
        self.temperature = best_temperature(distances, task.query_labels.flatten(), points.shape[2])

    def watch(self, classes: ImageSet) -> Callable[[], float]:
        """What scores discovery on the same few tasks of these classes."""
        plan = self.plan
        way = min(plan.way, classes.n_classes)
        sampler = UniformSampler(classes.labels, way, plan.observations, plan.queries, classes.class_names)

        def score() -> float:
            task = sampler.sample(WATCHED_TASKS, plan.context.generator(stream=2))
            adapted = self.adapt(classes.images, task.support.flatten(1))
            answers = HeadClustering(adapted).assign(classes.images, task.query.flatten(1)).labels
            return float(score_episodes(task.query_labels.cpu(), answers.cpu()).acc.mean())

        return score

    def _part(self, bag: Tensor) -> slice | Tensor:
        """Which items of bags (episodes, n) take part: all, or as many as fit."""
        count = bag.shape[1]
        if count <= MOST_ADAPTED:
            return slice(None)
        generator = self.plan.context.generator(stream=3)
        return torch.randperm(count, generator=generator, device=generator.device)[:MOST_ADAPTED].to(bag.device)

    def _checked(self, adapted: AdaptedNetwork, k: int) -> AdaptedNetwork:
        if self.readout == "head" and k != self.plan.way:
            raise InputError(
                f"this learner's head was trained to tell {self.plan.way} classes apart, not {k}: train it for {k}, "
                "or read clusters off the embedding (readout='cluster')."
            )
        if not all(bool(value.isfinite().all()) for value in adapted.parameters.values()):
            raise Diverged(
                f"{self.inner.steps} inner steps of rate {self.inner.rate:g} diverged on the observations: lower it."
            )
        return adapted

    def _points(self, adapted: AdaptedNetwork) -> Tensor:
        """Prepared embeddings (episodes, n, d) of the observations."""
        return prepare(adapted.respond(adapted.observations[:, :0])[0], self.grouping)

    def _centred(self, adapted: AdaptedNetwork, points: Tensor, labels: Tensor, centres: Tensor) -> Clustering:
        return AdaptedCentres(adapted, self.grouping, points, labels, centres, self.temperature)


def _of_all(clustering: Clustering, encoded: Tensor, bag: Tensor) -> Clustering:
    """The clustering with an answer for every item of bags (episodes, n), those that took no part included."""
    if clustering.labels.shape != bag.shape:
        clustering.labels, clustering.confidence = clustering.assign(encoded, bag)
    return clustering


class ReferenceEmbedding(Embedding):
    """What a network whose batches normalise themselves makes of an item beside a fixed batch (n, …) of known items."""

    kind = "reference"

    def __init__(self, network: Network, reference: Tensor) -> None:
        self.network, self.reference = network, reference

    @classmethod
    def of(cls, network: Network, known: ImageSet) -> Self:
        """Beside known items from all over the set."""
        return cls(network, known.images[:: -(-len(known) // REFERENCE_ITEMS)])

    @property
    def network_name(self) -> str:
        """Name of the network."""
        return str(self.network.blueprint["name"])

    def __call__(self, items: Tensor) -> Tensor:
        """Points (n, d) of items (n, …)."""
        weight = next(self.network.parameters())
        reference = to_float(self.reference).to(weight)

        def embed(batch: Tensor) -> Tensor:
            with statistics_from(self.network, len(reference)):
                points: Tensor = self.network(torch.cat([reference, to_float(batch).to(weight)]))
            return points[len(reference) :]

        return in_batches(embed, weight.device, items, precision="float32")

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The weights, how the network is built, and the reference."""
        tensors = with_prefix("network", self.network.state_dict()) | {"reference": self.reference}
        return tensors, {"network": dict(self.network.blueprint)}

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Self:
        """What `pack` took apart."""
        network = load_weights(rebuild(facts["network"]), under_prefix("network", tensors))
        return cls(network, tensors["reference"])

    def exact(self) -> Self:
        """The same in float64 on vectors."""
        return type(self)(exact_network(self.network), self.reference)


@dataclass(frozen=True)
class AdaptedNetwork:
    """A network adapted to each of some bags: their parameters, (episodes, …) each, and the bags (episodes, n, …).

    The statistics of its bag normalise whatever is asked.
    """

    model: Clusterer
    parameters: Parameters
    observations: Tensor
    precision: str

    @torch.no_grad()
    def respond(self, items: Tensor, *, together: bool = False) -> tuple[Tensor, Tensor]:
        """Embeddings and logits of the observations and then of further items (episodes, m, …), floats.

        Normalised by the observations alone, or by everything that is seen together.
        """
        shown = self.observations.shape[1]
        parts_of_items = [items] if together else torch.split(items, MOST_AT_ONCE, dim=1)
        answers = [
            respond(
                self.model,
                self.parameters,
                torch.cat([self.observations, part], 1),
                leading=None if together else shown,
                precision=self.precision,
            )
            for part in parts_of_items
        ]
        embedded, logits = (
            torch.cat([first, *(part[:, shown:] for part in rest)], 1) for first, *rest in zip(*answers, strict=True)
        )
        return embedded, logits

    def embed(self, encoded: Tensor, items: Tensor) -> Tensor:
        """Embeddings (episodes, m, width) of items (episodes, m) of the pool, each on its own."""
        return self.respond(to_float(encoded[items]))[0][:, self.observations.shape[1] :]


class HeadClustering(OutputClustering):
    """Clusters that are outputs of an adapted network."""

    def __init__(self, adapted: AdaptedNetwork, *, equal_sizes: bool = False) -> None:
        self.adapted = adapted
        super().__init__(adapted.respond(adapted.observations[:, :0])[1], equal_sizes=equal_sizes)

    def assign(self, encoded: Tensor, items: Tensor) -> Assignment:
        """The head's answer for each item, normalised by the observations alone."""
        return self.answer(self._logits(encoded, items, together=False))

    def refine(self, encoded: Tensor, items: Tensor, *, equal_sizes: bool = False) -> Assignment:
        """The head's answers, with normalisation by all items that are seen together."""
        logits = self._logits(encoded, items, together=True)
        return self.share_out(logits) if equal_sizes else self.answer(logits)

    def _logits(self, encoded: Tensor, items: Tensor, *, together: bool) -> Tensor:
        _, logits = self.adapted.respond(to_float(encoded[items]), together=together)
        return logits[:, self.adapted.observations.shape[1] :]


class AdaptedCentres(CentreClustering):
    """Clusters that are points in the embedding of an adapted network."""

    def __init__(self, adapted: AdaptedNetwork, *arguments: Any, **options: Any) -> None:
        self.adapted = adapted
        super().__init__(*arguments, **options)

    def _points(self, encoded: Tensor, items: Tensor) -> Tensor:
        return prepare(self.adapted.embed(encoded, items), self.grouping)
