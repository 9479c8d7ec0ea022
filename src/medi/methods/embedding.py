"""Discovery in an embedding: cluster the observations' features, then the nearest centre.

Shared by every method whose learning ends in an encoder (K-means, MP).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from medi.cluster.balanced import assign_balanced, balanced_kmeans
from medi.cluster.kmeans import kmeans, squared_distances
from medi.cluster.neighbours import towards_neighbours
from medi.cluster.preparation import Preparation
from medi.cluster.transductive import refine
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.base import Assignment, Clustering, Learner, Plan
from medi.tasks.episodes import UniformSampler


@dataclass(frozen=True)
class Grouping:
    """How features become clusters.

    Attributes:
        preparation: What is done to features first.
        balanced: Use that all classes have equally many observations, where they do.
        temperature: Softness of the transductive assignment.
        step: How far centres move in a transductive round.
        rounds: Transductive rounds.
    """

    preparation: Preparation = field(default_factory=Preparation)
    balanced: bool = False
    temperature: float = 0.2
    step: float = 0.4
    rounds: int = 10


@dataclass(frozen=True)
class JointGrouping(Grouping):
    """Grouping that makes more of items which are seen together (the transductive form).

    Attributes:
        neighbours: All items are first moved towards so many neighbours (`towards_neighbours`); 0 for none.
        pull: Part of the way to their mean.
        moves: How often.
        recluster: Where classes are known to be equally large, observations and items are clustered anew, together,
            by `balanced_kmeans`; otherwise, and without this, they settle around the centres of the observations.
    """

    neighbours: int = 0
    pull: float = 0.5
    moves: int = 3
    recluster: bool = True


class CentreClustering(Clustering):
    """Clusters that are points in a feature space.

    Args:
        grouping: How items are prepared and refined.
        bag: (episodes, n, d) prepared features of the bag.
        labels: (episodes, n) cluster of each.
        centres: (episodes, k, d).
        origin: What preparation subtracts, (episodes, 1, d) or broadcastable; None for nothing.
        temperature: Squared distance that makes a class e times less likely.
        balanced: Whether classes are known to be equally large.
    """

    def __init__(
        self,
        grouping: Grouping,
        bag: Tensor,
        labels: Tensor,
        centres: Tensor,
        origin: Tensor | None,
        *,
        temperature: float,
        balanced: bool,
    ) -> None:
        self.grouping, self.bag, self.labels, self.centres = grouping, bag, labels, centres
        self.origin, self.temperature, self.balanced = origin, temperature, balanced
        self.confidence = self._probabilities(bag).gather(2, labels[:, :, None]).squeeze(2)

    def assign(self, encoded: Tensor, items: Tensor) -> Assignment:
        """The nearest centre of each item."""
        confidence, labels = self._probabilities(self._prepare(encoded, items)).max(2)
        return Assignment(labels, confidence)

    def refine(self, encoded: Tensor, items: Tensor, *, equal_sizes: bool = False) -> Assignment:
        """Let observations and items settle together around moving centres."""
        together = torch.cat([self.bag, self._prepare(encoded, items)], dim=1)
        grouping, centres, balanced = self.grouping, self.centres, self.balanced and equal_sizes
        seen = self.bag.shape[1]
        if isinstance(grouping, JointGrouping):
            if grouping.neighbours:
                together = towards_neighbours(
                    together, neighbours=grouping.neighbours, pull=grouping.pull, moves=grouping.moves
                )
                centres = group_means(together[:, :seen], self.labels, centres.shape[1])
            if grouping.recluster and balanced:
                return self._recluster(together, seen)
        settled = refine(
            centres,
            together,
            balanced=balanced,
            temperature=grouping.temperature,
            step=grouping.step,
            rounds=grouping.rounds,
        )
        confidence, labels = settled.plan[:, seen:].max(2)
        return Assignment(labels, confidence)

    def _recluster(self, together: Tensor, seen: int) -> Assignment:
        """Clusters of equal size of all points (episodes, n, d); the answer is about those after the first `seen`.

        A cluster has the number of the cluster of observations that it shares most with.
        """
        k = self.centres.shape[1]
        generator = torch.Generator(together.device).manual_seed(0)
        # Large clusters need little search, and it costs most there.
        found = balanced_kmeans(together, k, generator=generator, restarts=2, swaps=10)
        before, after = (torch.nn.functional.one_hot(some, k).float() for some in (self.labels, found.labels[:, :seen]))
        number = assign_balanced(-after.mT @ before, method="exact")  # (episodes, k), by number in `found`
        labels = found.labels[:, seen:, None]
        confidence = self._probabilities(together[:, seen:], found.centres).gather(2, labels)
        return Assignment(number.gather(1, labels.squeeze(2)), confidence.squeeze(2))

    def _prepare(self, encoded: Tensor, items: Tensor) -> Tensor:
        return self.grouping.preparation.apply(encoded[items], self.origin)

    def _probabilities(self, points: Tensor, centres: Tensor | None = None) -> Tensor:
        centres = self.centres if centres is None else centres
        return torch.softmax(-squared_distances(points, centres) / self.temperature, dim=2)


class EmbeddingLearner(Learner):
    """Clusters what an encoder makes of images.

    Args:
        encoder: (n, …) images to (n, d) float32 features, in batches of its own choosing.
        known: The known classes; they calibrate the confidence and give their mean where preparation wants it.
        plan: Size of the tasks to come.
        grouping: How features become clusters.
        network: Name of the network behind the encoder.
        training_seconds: What training it took.
    """

    CALIBRATION_TASKS = 20

    def __init__(
        self,
        encoder: Callable[[Tensor], Tensor],
        known: ImageSet,
        plan: Plan,
        grouping: Grouping,
        network: str | None = None,
        training_seconds: float = 0.0,
    ) -> None:
        self.encoder, self.grouping, self.network = encoder, grouping, network
        self.training_seconds = training_seconds
        self.balanced = grouping.balanced and plan.equal_sizes
        self.known_mean, self.temperature = self._calibrate(known, plan)

    def encode(self, images: Tensor) -> Tensor:
        """Features (n, d) of images (n, …)."""
        return self.encoder(images)

    def discover(self, encoded: Tensor, bag: Tensor, k: int, generator: torch.Generator) -> Clustering:
        """Cluster the features of each bag."""
        points, origin = self._prepare(encoded, bag)
        cluster = balanced_kmeans if self.balanced else kmeans
        partition = cluster(points, k, generator=generator)
        return self._clustering(points, partition.labels, partition.centres, origin)

    def oracle(self, encoded: Tensor, bag: Tensor, groups: Tensor, k: int) -> CentreClustering:
        """Centres of the true groups."""
        points, origin = self._prepare(encoded, bag)
        return self._clustering(points, groups, group_means(points, groups, k), origin)

    def _clustering(self, points: Tensor, labels: Tensor, centres: Tensor, origin: Tensor | None) -> CentreClustering:
        return CentreClustering(
            self.grouping, points, labels, centres, origin, temperature=self.temperature, balanced=self.balanced
        )

    def _prepare(self, encoded: Tensor, bag: Tensor) -> tuple[Tensor, Tensor | None]:
        """The bag's prepared features and the origin that later items share."""
        features = encoded[bag]
        origin = self.grouping.preparation.fit(features, self.known_mean)
        return self.grouping.preparation.apply(features, origin), origin

    def _calibrate(self, known: ImageSet, plan: Plan) -> tuple[Tensor, float]:
        """Mean of the known features, and the temperature under which known tasks are most likely.

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
        task = sampler.sample(self.CALIBRATION_TASKS, plan.context.generator(stream=1))
        items, place = torch.unique(torch.cat([task.support.flatten(1), task.query.flatten(1)], 1), return_inverse=True)
        encoded = self.encode(known.images[items])
        support, query = place[:, : way * observations], place[:, way * observations :]
        self.known_mean, self.temperature = self.grouping.preparation.mean(encoded), 1.0
        clustering = self.oracle(encoded, support, task.support_labels, way)
        distances = squared_distances(clustering._prepare(encoded, query), clustering.centres).flatten(0, 1)
        return self.known_mean, best_temperature(distances, task.query_labels.flatten(), encoded.shape[1])


def group_means(points: Tensor, groups: Tensor, k: int) -> Tensor:
    """Means (episodes, k, d) of the groups (episodes, n) of points (episodes, n, d); zero where a group is empty."""
    member = torch.nn.functional.one_hot(groups, k).to(points)  # (episodes, n, k)
    return member.transpose(1, 2) @ points / member.sum(1).clamp(min=1)[:, :, None]


def best_temperature(distances: Tensor, labels: Tensor, width: int) -> float:
    """The temperature that makes labels (n,) likeliest under a softmax of -distances (n, k) / temperature.

    Never colder than round Gaussian classes in `width` dimensions would have it: on classes that separate perfectly
    the likeliest is zero, and every answer would be "certain".
    """
    coldest = 2 * distances.gather(1, labels[:, None]).mean() / width
    grid = distances.mean().clamp(min=1e-12) * torch.logspace(-4, 1, 51, device=distances.device)
    losses = [torch.nn.functional.cross_entropy(-distances / t, labels) for t in grid]
    return float(torch.maximum(grid[int(torch.stack(losses).argmin())], coldest))
