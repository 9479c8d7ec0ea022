"""MP: meta discovery with prototypical networks (the paper's Algorithm 3).

A training task shows `observations` images of each of `way` known classes; their mean embedding is the class's
prototype, and the queries must lie nearest to their own. At discovery the observations are clustered and the
clusters' means serve as prototypes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods.base import AT_DISCOVERY, Plan
from medi.methods.embedding import EmbeddingMethod, GroupingConfig
from medi.methods.pretraining import Pretraining, check_start, pretrain
from medi.methods.prototypes import Distance, task_loss
from medi.nn import build_for
from medi.nn.embed import Embedding, NetworkEmbedding
from medi.nn.loop import train
from medi.nn.schedule import Schedule
from medi.presets import Presets, read_presets


@dataclass(frozen=True)
class MP(EmbeddingMethod):
    """Settings of MP.

    Attributes:
        network: A name in `medi.nn.NETWORKS`.
        embedding: Size of the embedding; None for the network's own.
        way: Classes in a training task; None for the way that will be scored. Never more than there are.
        observations: Observed images of a class in training; None for as many as will be discovered from.
        queries: Queries of a class in training; None for the plan's.
        images: About how many images a gradient step sees: as many whole tasks, at least one.
        rotations: Count each known class turned by 90, 180 and 270 degrees as three more classes.
        distance: squared (prototypical networks) or plain Euclidean (as the paper prints it).
        temperature: Distances are divided by this in training: squared ones grow with the embedding's size, and a
            softmax of large numbers learns slowly.
        augmented: Change training images at random as the dataset allows.
        pretraining: What the network learns before the first task; None for random weights.
        schedule: Length and rates of training on tasks; of no steps, pretraining is all that is learnt.
        grouping: How points become clusters at discovery.
    """

    takes_sampler: ClassVar[bool] = True
    presets: ClassVar[Presets] = read_presets("mp")

    network: str = "conv4"
    embedding: int | None = None
    way: int | None = None
    observations: int | None = None
    queries: int | None = None
    images: int = 400
    rotations: bool = False
    distance: Distance = "squared"
    temperature: float = 1.0
    augmented: bool = True
    pretraining: Pretraining | None = None
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=2000))
    grouping: GroupingConfig = field(
        default_factory=lambda: GroupingConfig(balanced=True), kw_only=True, metadata=AT_DISCOVERY
    )

    def __post_init__(self) -> None:
        with_size = "" if self.embedding is None else f" with an embedding of {self.embedding}"
        check_start(self.pretraining, self.schedule, self.network + with_size)

    def learn(self, known: ImageSet, plan: Plan) -> Embedding:
        """Algorithm 3: train the embedding on tasks of known classes, each drawn by the plan's sampler."""
        classes = known.with_rotations() if self.rotations else known
        way = min(self.way or plan.way, classes.n_classes)
        observations, queries = self.observations or plan.observations, self.queries or plan.queries
        self.schedule.refuse_tasks_by(plan.sampler)
        sampler = plan.make_sampler(classes, way, observations, queries)
        tasks = max(1, self.images // (way * (observations + queries)))
        plan = plan if self.augmented else replace(plan, augmentation=Augmentation())
        if self.pretraining:
            network = pretrain(classes, plan, self.pretraining)
        else:
            network = build_for(self.network, classes.images, plan.context, embedding=self.embedding)
        how = {"distance": self.distance, "temperature": self.temperature}
        loss = task_loss(network, classes, sampler, tasks, plan.augmentation, **how)
        identity = self.identity(known, plan, way=way, observations=observations, queries=queries)
        if self.schedule.steps:
            train(network, loss, self.schedule, plan.context, title=self.name, identity=identity)
        return NetworkEmbedding(network, self.schedule.precision)
