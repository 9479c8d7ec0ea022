"""MP: meta discovery with prototypical networks (the paper's Algorithm 3).

A training task shows `observations` images of each of `way` known classes; their mean embedding is the class's
prototype, and the queries must lie nearest to their own. At discovery the observations are clustered and the
clusters' means serve as prototypes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from medi.cluster.kmeans import squared_distances
from medi.cluster.preparation import Preparation
from medi.data.augment import augment
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods.base import Learner, Method, Plan
from medi.methods.embedding import EmbeddingLearner, Grouping
from medi.nets import build, forward_together, place
from medi.nets.embed import network_encoder
from medi.runtime import ranks
from medi.tasks import make_sampler
from medi.train.loop import train
from medi.train.schedule import Schedule
from medi.train.supervised import train_classifier


@dataclass(frozen=True)
class SupervisedStart:
    """Cross-entropy on the known classes before the first task.

    Attributes:
        batch: Images in a gradient step.
        schedule: Length and rates.
    """

    batch: int = 512
    schedule: Schedule = field(
        default_factory=lambda: Schedule(steps=1500, rate=0.2, optimiser="sgd", decay=5e-4, shape="onecycle")
    )


@dataclass(frozen=True)
class MPConfig:
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
        start: Supervised training that the tasks start from; None for random weights.
        schedule: Length and rates of training on tasks.
        grouping: How features become clusters at discovery.
    """

    network: str = "conv4"
    embedding: int | None = None
    way: int | None = None
    observations: int | None = None
    queries: int | None = None
    images: int = 400
    rotations: bool = False
    distance: Literal["squared", "euclidean"] = "squared"
    temperature: float = 1.0
    augmented: bool = True
    start: SupervisedStart | None = None
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=2000))
    grouping: Grouping = field(default_factory=lambda: Grouping(Preparation(), balanced=True))


def prototype_loss(
    support: Tensor,
    query: Tensor,
    distance: Literal["squared", "euclidean"] = "squared",
    temperature: float = 1.0,
) -> Tensor:
    """Mean cross-entropy of queries against class means (the paper's loss of MP).

    Args:
        support: (tasks, way, observations, d) embeddings.
        query: (tasks, way, queries, d) embeddings.
        distance: squared or plain Euclidean.
        temperature: What distances are divided by.
    """
    way, queries = query.shape[1:3]
    wide = torch.promote_types(query.dtype, torch.float32)  # half precision is too coarse for differences of squares
    prototypes = support.to(wide).mean(2)
    distances = squared_distances(query.to(wide).flatten(1, 2), prototypes)  # (tasks, way * queries, way)
    if distance == "euclidean":
        distances = distances.clamp(min=1e-12).sqrt()
    labels = torch.arange(way, device=query.device).repeat_interleave(queries).repeat(len(query))
    return functional.cross_entropy(-distances.flatten(0, 1) / temperature, labels)


PREPARATIONS = {
    "plain": Preparation(),
    "unit": Preparation(unit=True),
    "power": Preparation(centre="observations", power=0.5, unit=True),
}


def _candidates() -> dict[str, MPConfig]:
    """What `medi bench choose` compares: a network, known classes turned or not, a preparation of features, a start."""
    found = {}
    for turned, rotations in (("", False), ("-rotated", True)):
        for name, preparation in PREPARATIONS.items():
            grouping = Grouping(preparation, balanced=True)
            found[f"conv4{turned}-{name}"] = MPConfig(rotations=rotations, grouping=grouping)
            # ResNet-18 is trained once, on five observations, for one and for five: its training is what costs.
            deep = MPConfig(network="resnet18", observations=5, rotations=rotations, grouping=grouping)
            found[f"resnet18{turned}-{name}"] = deep
            # Cross-entropy over all classes teaches a deep network most; tasks then give it the metric.
            found[f"resnet18{turned}-started-{name}"] = replace(
                deep, temperature=16.0, start=SupervisedStart(), schedule=Schedule(steps=400, rate=3e-4)
            )
        # Many classes in a task: each query has more to be told apart from.
        found[f"conv4{turned}-wide"] = MPConfig(
            way=60,
            images=1200,
            rotations=rotations,
            temperature=16.0,
            schedule=Schedule(steps=2000, rate=3e-3, shape="onecycle"),
        )
    return found


class MP(Method):
    """Discovery by prototypical networks."""

    name: ClassVar[str] = "mp"
    takes_sampler: ClassVar[bool] = True
    embeds: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, MPConfig]] = {
        "default": MPConfig(images=1600),  # Conv-4 is bound by launching kernels: on a GPU large steps are free
        "cpu": MPConfig(queries=5, images=200, schedule=Schedule(steps=60, rate=3e-3)),
        **_candidates(),
        "paper": MPConfig(
            embedding=512,
            images=1,
            augmented=False,
            schedule=Schedule(steps=20_000, shape="halve", halve_every=2_000),
            grouping=Grouping(),
        ),
    }

    chosen: ClassVar[Mapping[str, str]] = {
        "glyphs": "cpu",
        "rules": "cpu",
        "cifar10": "resnet18-rotated-started-plain",
        "cifar100": "resnet18-started-unit",
        "omniglot": "conv4-wide",
        "svhn": "resnet18-rotated-plain",
    }

    def __init__(self, config: MPConfig) -> None:
        self.settings = config

    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """Train the embedding on tasks of known classes."""
        config, context = self.settings, plan.context
        classes = known.with_rotations() if config.rotations else known
        way = min(config.way or plan.way, classes.n_classes)
        observations, queries = config.observations or plan.observations, config.queries or plan.queries
        sampler = make_sampler(
            plan.sampler,
            classes,
            way=way,
            observations=observations,
            queries=queries,
            views=plan.views,
            augmentation=plan.augmentation,
            context=context,
        )
        tasks = max(1, config.images // (way * (observations + queries)))
        model = build(config.network, tuple(known.images.shape[1:]), embedding=config.embedding, seed=context.seed)
        model = place(model, context.device)
        augmentation = plan.augmentation if config.augmented else Augmentation()

        def loss(generator: torch.Generator) -> Tensor:
            task = sampler.sample(tasks, generator)
            items = torch.cat([task.support, task.query], 2)  # (tasks, way, observations + queries)
            count = items.numel()
            images = augment(classes.images[items.flatten()], augmentation, generator, ranks.part(count))
            embedded = forward_together(model, images, count).view(*items.shape, -1)
            support, query = embedded[:, :, :observations], embedded[:, :, observations:]
            return prototype_loss(support, query, config.distance, config.temperature)

        seconds = 0.0
        if config.start:
            seconds += train_classifier(
                model,
                classes,
                config.start.schedule,
                context,
                augmentation=augmentation,
                batch=config.start.batch,
                settings=plan.settings(classes, config.start)
                | {"network": config.network, "embedding": config.embedding, "augmented": config.augmented},
            )
        settings = plan.settings(known, config, way=way, observations=observations, queries=queries)
        seconds += train(model, loss, config.schedule, context, title="mp", settings=settings)
        encoder = network_encoder(model, context.device, config.schedule.precision)
        return EmbeddingLearner(encoder, known, plan, config.grouping, config.network, seconds)
