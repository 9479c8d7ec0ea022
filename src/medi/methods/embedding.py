"""Discovery in an embedding: cluster the observations' points, then the nearest centre.

Shared by every method whose learning ends in an embedding (K-means, MP, medi).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot

from medi.core.errors import InputError
from medi.data.augment import to_float
from medi.data.imageset import ImageSet
from medi.kmeans.balanced import assign_balanced, balanced_kmeans
from medi.kmeans.free import free_kmeans
from medi.kmeans.kmeans import describe, group_means, squared_distances
from medi.kmeans.order import content_order, take
from medi.kmeans.transductive import refine, towards_neighbours
from medi.methods.base import AT_DISCOVERY, Assignment, BagPartition, Clustering, Learner, Method, Plan
from medi.nn import Network
from medi.nn.embed import Embedding, NetworkEmbedding, in_batches
from medi.tasks.episodes import UniformSampler

CALIBRATION_TASKS = 20
"""Tasks of known classes that the temperature of confidences is chosen by."""


@dataclass(frozen=True)
class GroupingConfig:
    """How points become clusters.

    Attributes:
        balanced: Use that all classes have equally many items, where they do and nothing else is said.
        unit: Scale points to length 1 first.
        recluster: Transductive form, where classes are known to be equally large: cluster observations and queries
            anew, together. Otherwise they settle around the centres of the observations.
        neighbours: Transductive form: all items first move towards so many neighbours; 0 for none.
    """

    balanced: bool = False
    unit: bool = False
    recluster: bool = False
    neighbours: int = 0


class CentreClustering(Clustering):
    """Clusters that are points (episodes, k, d) in an embedding.

    The points of the bag are prepared, (episodes, n, d). Temperature: the squared distance that makes a class e times
    less likely.
    """

    def __init__(
        self, grouping: GroupingConfig, bag: Tensor, labels: Tensor, centres: Tensor, temperature: float
    ) -> None:
        self.grouping, self.bag, self.labels, self.centres = grouping, bag, labels, centres
        self.temperature = temperature
        self.confidence = self._probabilities(bag).gather(2, labels[:, :, None]).squeeze(2)

    def assign(self, encoded: Tensor, items: Tensor) -> Assignment:
        """The nearest centre of each item."""
        confidence, labels = self._probabilities(self._points(encoded, items)).max(2)
        return Assignment(labels, confidence)

    def refine(self, encoded: Tensor, items: Tensor, *, equal_sizes: bool = False) -> Assignment:
        """Let observations and items settle together around moving centres."""
        together = torch.cat([self.bag, self._points(encoded, items)], dim=1)
        centres, seen, order = self.centres, self.bag.shape[1], content_order(together)
        if self.grouping.neighbours:
            together = towards_neighbours(together, neighbours=self.grouping.neighbours)
            centres = group_means(together[:, :seen], self.labels, centres.shape[1])
        if self.grouping.recluster and equal_sizes:
            return self._recluster(together, seen, order)
        settled = refine(centres, together, balanced=equal_sizes)
        confidence, labels = settled.plan[:, seen:].max(2)
        return Assignment(labels, confidence)

    def _recluster(self, together: Tensor, seen: int, order: Tensor) -> Assignment:
        """Clusters of equal size of all points (episodes, n, d), searched in an order (episodes, n).

        The answer is about those after the first `seen`. A cluster has the number of the cluster of observations that
        it shares most with.
        """
        k = self.centres.shape[1]
        generator = torch.Generator(together.device).manual_seed(0)
        # Large clusters need little search, and it costs most there.
        found = balanced_kmeans(take(together, order), k, generator=generator, restarts=2, swaps=10)
        of_all = take(found.labels, order.argsort(1))
        before, after = (one_hot(some, k).float() for some in (self.labels, of_all[:, :seen]))
        number = assign_balanced(-after.mT @ before)  # (episodes, k), by number in `found`
        labels = of_all[:, seen:, None]
        confidence = self._probabilities(together[:, seen:], found.centres).gather(2, labels)
        return Assignment(number.gather(1, labels.squeeze(2)), confidence.squeeze(2))

    def _points(self, encoded: Tensor, items: Tensor) -> Tensor:
        """Prepared points (episodes, m, d) of items (episodes, m)."""
        return prepare(encoded[items], self.grouping)

    def _probabilities(self, points: Tensor, centres: Tensor | None = None) -> Tensor:
        centres = self.centres if centres is None else centres
        return torch.softmax(-squared_distances(points, centres) / self.temperature, dim=2)


def prepare(points: Tensor, grouping: GroupingConfig) -> Tensor:
    """Points (…, d) as they are clustered."""
    return normalize(points, dim=-1) if grouping.unit else points


class EmbeddingLearner(Learner):
    """Clusters what an embedding makes of images; known classes calibrate its confidence."""

    def __init__(self, method: EmbeddingMethod, embedding: Embedding, known: ImageSet, plan: Plan) -> None:
        self.method, self.grouping = method, method.grouping
        self.embedding, self.network = embedding, embedding.network_name
        self.temperature = self._calibrated(known, plan)

    def encode(self, images: Tensor) -> Tensor:
        """Points (n, d) of images (n, …)."""
        return self.embedding(images)

    def discover(
        self, encoded: Tensor, bag: Tensor, k: int, generator: torch.Generator, *, equal_sizes: bool = False
    ) -> Clustering:
        """Cluster the points of each bag."""
        points = prepare(encoded[bag], self.grouping)
        order = content_order(points)
        labels = take(self.method.group(take(points, order), k, generator, equal_sizes), order.argsort(1))
        return self._clustering(points, labels, describe(points, labels, k).centres)

    def oracle(self, encoded: Tensor, bag: Tensor, groups: Tensor, k: int) -> CentreClustering:
        """Centres of the true groups."""
        points = prepare(encoded[bag], self.grouping)
        return self._clustering(points, groups, group_means(points, groups, k))

    def _clustering(self, points: Tensor, labels: Tensor, centres: Tensor) -> CentreClustering:
        return CentreClustering(self.grouping, points, labels, centres, self.temperature)

    def _calibrated(self, known: ImageSet, plan: Plan) -> float:
        """The temperature under which tasks of known classes are most likely.

        A class with a single image cannot be asked about and is left out.
        """
        counts = torch.bincount(known.labels[known.labels >= 0], minlength=known.n_classes)
        enough = counts[counts >= 2]
        if not len(enough):
            raise InputError("no known class has two images: add images, so that confidence can be calibrated.")
        observations = min(plan.observations, int(enough.min()) - 1)
        queries = min(plan.queries, int(enough.min()) - observations)
        way = min(plan.way, len(enough))
        usable = torch.where((known.labels >= 0) & (counts[known.labels] >= 2), known.labels, -1)
        sampler = UniformSampler(usable, way, observations, queries)
        task = sampler.sample(CALIBRATION_TASKS, plan.context.generator(stream=1))
        items, place = torch.unique(torch.cat([task.support.flatten(1), task.query.flatten(1)], 1), return_inverse=True)
        points = prepare(self.encode(known.images[items]), self.grouping)
        support, query = points[place[:, : way * observations]], points[place[:, way * observations :]]
        distances = squared_distances(query, group_means(support, task.support_labels, way)).flatten(0, 1)
        return best_temperature(distances, task.query_labels.flatten(), points.shape[1])


def best_temperature(distances: Tensor, labels: Tensor, width: int) -> float:
    """The temperature that makes labels (n,) likeliest under a softmax of -distances (n, k) / temperature.

    Never colder than round Gaussian classes in `width` dimensions would have it: on classes that separate perfectly
    the likeliest is zero, and every answer would be "certain".
    """
    coldest = 2 * distances.gather(1, labels[:, None]).mean() / width
    grid = distances.mean().clamp(min=1e-12) * torch.logspace(-4, 1, 51, device=distances.device)
    losses = [torch.nn.functional.cross_entropy(-distances / t, labels) for t in grid]
    return float(torch.maximum(grid[int(torch.stack(losses).argmin())], coldest))


@dataclass(frozen=True)
class EmbeddingMethod(Method):
    """A method whose learning ends in an embedding: it defines `learn` and, where it wants, `group`.

    Attributes:
        grouping: How points become clusters.
    """

    grouping: GroupingConfig = field(default_factory=GroupingConfig, kw_only=True, metadata=AT_DISCOVERY)

    @abstractmethod
    def learn(self, known: ImageSet, plan: Plan) -> Embedding | nn.Module | Callable[[Tensor], Tensor]:
        """What the known classes teach.

        Returns:
            An `Embedding`, which can be saved; or any network, or any function from images (n, …) to points (n, d).
        """

    def group(self, points: Tensor, k: int, generator: torch.Generator, equal_sizes: bool) -> Tensor:
        """Labels (episodes, n), 0 to k - 1, of points (episodes, n, d); `equal_sizes`: groups are equally large."""
        cluster = balanced_kmeans if equal_sizes else free_kmeans
        return cluster(points, k, generator=generator).labels

    @property
    def balanced(self) -> bool:
        """As its grouping says."""
        return self.grouping.balanced

    def own_grouping(self) -> BagPartition | None:
        """`group`, where a method defines its own."""
        return None if type(self).group is EmbeddingMethod.group else self.group

    def make_learner(self, known: ImageSet, plan: Plan) -> EmbeddingLearner:
        """Learn an embedding and calibrate confidences in it."""
        return EmbeddingLearner(self, as_embedding(self.learn(known, plan), plan.context.device), known, plan)


def as_embedding(learnt: Embedding | nn.Module | Callable[[Tensor], Tensor], device: torch.device) -> Embedding:
    """What a method learnt, as an embedding."""
    if isinstance(learnt, Embedding):
        return learnt
    if isinstance(learnt, Network):
        return NetworkEmbedding(learnt)
    if isinstance(learnt, nn.Module):
        network = learnt.to(device).eval()
        return FunctionEmbedding(lambda items: in_batches(lambda batch: network(to_float(batch)), device, items))
    return FunctionEmbedding(learnt)


class FunctionEmbedding(Embedding):
    """Any function from items (n, …) to points (n, d); it cannot be saved."""

    kind = "function"

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function

    def __call__(self, items: Tensor) -> Tensor:
        """Points (n, d) of items (n, …)."""
        with torch.no_grad():
            points = self.function(items).flatten(1)
        return points.to(torch.promote_types(points.dtype, torch.float32))


class PixelEmbedding(Embedding):
    """Items as they are: pixels, or the numbers of a vector."""

    kind = "pixels"

    def __call__(self, items: Tensor) -> Tensor:
        """Items (n, …) as rows of numbers (n, d)."""
        return to_float(items).flatten(1)

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Nothing was learnt."""
        return {}, {}

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Self:
        """Nothing is needed."""
        return cls()
