"""MP: meta discovery with prototypical networks (the paper's Algorithm 3).

A training task shows `observations` images of each of `way` known classes; their mean embedding is the class's
prototype, and the queries must lie nearest to their own. At discovery the observations are clustered and the
clusters' means serve as prototypes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar

from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.base import AT_DISCOVERY, Plan
from medi.methods.embedding import EmbeddingMethod, Grouping
from medi.methods.pretraining import Pretraining, pretrain
from medi.methods.prototypes import Distance, task_loss
from medi.nets import Network, build, place
from medi.nets.embed import Embedding, NetworkEmbedding
from medi.train.loop import train
from medi.train.schedule import Schedule


@dataclass(frozen=True)
class MP(EmbeddingMethod):
    """Settings of MP.

    Attributes:
        network: A name in `medi.nets.NETWORKS`.
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
    grouping: Grouping = field(default_factory=lambda: Grouping(balanced=True), kw_only=True, metadata=AT_DISCOVERY)

    def __post_init__(self) -> None:
        if not (self.schedule.steps or self.pretraining):
            raise InputError(
                "without steps and without pretraining nothing is learnt: give schedule.steps or pretraining."
            )
        if self.pretraining and (self.pretraining.network, None) != (self.network, self.embedding):
            raise InputError(
                f"a {self.pretraining.network} cannot become a {self.network}"
                + ("" if self.embedding is None else f" with an embedding of {self.embedding}")
                + ": give both the same network and its own embedding."
            )

    def learn(self, known: ImageSet, plan: Plan) -> Embedding:
        """Algorithm 3: train the embedding on tasks of known classes, each drawn by the plan's sampler."""
        classes = known.with_rotations() if self.rotations else known
        way = min(self.way or plan.way, classes.n_classes)
        observations, queries = self.observations or plan.observations, self.queries or plan.queries
        self.schedule.refuse_tasks_by(plan.sampler)
        sampler = plan.make_sampler(classes, way, observations, queries)
        tasks = max(1, self.images // (way * (observations + queries)))
        plan = plan if self.augmented else replace(plan, augmentation=Augmentation())
        network = self._untrained(classes, plan)
        loss = task_loss(
            network,
            classes,
            sampler,
            tasks,
            plan.augmentation,
            distance=self.distance,
            temperature=self.temperature,
        )
        identity = self.identity(known, plan, way=way, observations=observations, queries=queries)
        if self.schedule.steps:
            train(network, loss, self.schedule, plan.context, title=self.name, identity=identity)
        return NetworkEmbedding(network, self.schedule.precision)

    def _untrained(self, classes: ImageSet, plan: Plan) -> Network:
        """The network before the first task."""
        if self.pretraining:
            return pretrain(classes, plan, self.pretraining)
        shape, seed = tuple(classes.images.shape[1:]), plan.context.seed
        return place(build(self.network, shape, embedding=self.embedding, seed=seed), plan.context.device)


_DEEP = MP(network="resnet18", observations=5)  # trained once, on five observations, for one and for five
_SUPERVISED = Pretraining(batch=512, schedule=Schedule(1500, 0.2, "sgd", decay=5e-4, shape="onecycle"))
# Cross-entropy over all classes teaches a deep network most; tasks then give it the metric.
_PRETRAINED = replace(_DEEP, temperature=16.0, pretraining=_SUPERVISED, schedule=Schedule(steps=400, rate=3e-4))

MP.presets = MappingProxyType(
    {
        "default": MP(images=1600),  # Conv-4 is bound by launching kernels: on a GPU large steps are free
        "cpu": MP(queries=5, images=200, schedule=Schedule(steps=60, rate=3e-3)),
        "paper": MP(
            embedding=512,
            images=1,
            augmented=False,
            schedule=Schedule(steps=20_000, shape="halve", halve_every=2_000),
            grouping=Grouping(),
        ),
        "cifar10": replace(_PRETRAINED, rotations=True),
        "cifar100": replace(_PRETRAINED, grouping=Grouping(balanced=True, unit=True)),
        # Many classes in a task: each query has more to be told apart from.
        "omniglot": MP(
            way=60, images=1200, temperature=16.0, schedule=Schedule(steps=2000, rate=3e-3, shape="onecycle")
        ),
        "svhn": replace(_DEEP, rotations=True),
    }
)
