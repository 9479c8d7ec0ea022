"""MM: meta discovery by MAML (the paper's Algorithm 2).

A network with a softmax head is trained so that a few label-free gradient steps on a task's observations end in the
right clusters: items are pulled together or apart in pairs, and the loss on the task's queries is differentiated
through those steps. At discovery the same steps run on the novel observations; clusters are then read off the head's
largest output, or found in the adapted embedding. `medi.methods.inner_steps` has the steps and the losses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from medi.cluster.balanced import balanced_kmeans
from medi.cluster.kmeans import kmeans, squared_distances
from medi.data.augment import augment, to_float
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.base import Clustering, Learner, Method, Plan
from medi.methods.embedding import best_temperature
from medi.methods.inner_steps import Clusterer, adapt, label_pairs, outer_loss
from medi.methods.mm_clusters import Adapted, AdaptedCentres, HeadClustering
from medi.methods.mm_config import CONFIGS, MMConfig
from medi.methods.pretraining import started
from medi.metrics import score_episodes
from medi.nets import build, seeded
from medi.nets.per_task_conv import batch_over_tasks
from medi.runtime import ranks
from medi.runtime.devices import tensor_float32
from medi.tasks import UniformSampler, make_sampler
from medi.train.cuda_graph import replayed
from medi.train.loop import Diverged, Validation, train

MATMUL_SIDE = {"cpu": 0, "cuda": 8}
"""Images up to this side are convolved by matrix products (`per_task_conv.py`): `benchmarks/maml.py` compares."""
LOOK_EVERY, LOOK_TASKS = 200, 10
"""After so many training tasks, discovery is scored on so many tasks."""
MOST_ADAPTED = 1000
"""Of larger bags so many items, drawn at random, take part in the inner steps and the clustering."""


class MetaLoss(nn.Module):
    """The loss of a batch of tasks as a function of tensors alone, so that it can be captured.

    Args:
        model: What is trained.
        config: Steps and pairs.
        way: Classes in a task, where the loss of prototypes counts.
    """

    def __init__(self, model: Clusterer, config: MMConfig, way: int = 0) -> None:
        super().__init__()
        self.model, self.config, self.way = model, config, way

    def forward(self, images: Tensor, observed: Tensor, asked: Tensor) -> Tensor:
        """The mean loss of tasks.

        Args:
            images: (tasks, n + m, …), floats: first the observations, then the queries.
            observed: (tasks, n) classes of the observations.
            asked: (tasks, m) classes of the queries.
        """
        config, shown = self.config, observed.shape[1]
        similar = label_pairs(observed, images.dtype) if config.inner_pairs == "label" else None
        start = dict(self.model.named_parameters())
        observations, queries = images[:, :shown], images[:, shown:]
        return outer_loss(
            self.model,
            start,
            observations,
            queries,
            asked,
            config.inner,
            config.outer_pairs,
            similar,
            prototypes=config.prototypes,
            way=self.way,
        )


class MM(Method):
    """Discovery by MAML."""

    name: ClassVar[str] = "mm"
    takes_sampler: ClassVar[bool] = True
    one_way: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, MMConfig]] = CONFIGS
    chosen: ClassVar[Mapping[str, str]] = {
        "glyphs": "cpu-prototypes",
        "rules": "cpu-prototypes",
        "cifar10": "resnet18-started-rotated",
        "cifar100": "resnet18-started",
        "omniglot": "started",
        "svhn": "resnet18-tasks-rotated",
    }

    def __init__(self, config: MMConfig) -> None:
        self.settings = config

    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """Train the start of the inner steps on tasks of known classes."""
        config, context = self.settings, plan.context
        learnt, watched = hold_out(known, config.held_out, plan.way, context.seed)
        if config.rotations:
            learnt = learnt.with_rotations()
        size = {"way": min(plan.way, learnt.n_classes), "observations": plan.observations, "queries": plan.queries}
        sampler = make_sampler(
            plan.sampler, learnt, **size, views=plan.views, augmentation=plan.augmentation, context=context
        )
        shape = tuple(known.images.shape[1:])
        body = build(config.network, shape, embedding=config.embedding, norm="batch", seed=context.seed)
        seconds = 0.0
        if config.start:
            before, seconds = started(learnt, config.start, plan)
            # Batches normalise themselves here, so running averages have no place to go.
            body.load_state_dict({name: value.detach() for name, value in before.named_parameters()})
        batch_over_tasks(body, MATMUL_SIDE.get(context.device.type, 0))
        with seeded(context.seed, stream=1):
            model = Clusterer(body, body.width, plan.way).to(context.device)
        tasks = config.tasks or (16 if plan.way <= 5 else 8)

        def loss(generator: torch.Generator) -> Tensor:
            task = sampler.sample(tasks, generator)
            items = torch.cat([task.support.flatten(1), task.query.flatten(1)], 1)
            mine = ranks.part(tasks)  # tasks do not see one another, so whole tasks are shared out
            images = augment(learnt.images[items], plan.augmentation, generator, mine)
            batch = (images, task.support_labels[mine].contiguous(), task.query_labels[mine].contiguous())
            return ranks.mean(meta_loss(*batch), tasks)

        learner = MMLearner(model, plan, config)
        settings = plan.settings(known, config, **size, clusters=plan.way)
        name = "held_out_acc" if watched else "known_acc"
        validation = _watch(learner, watched or known, tasks, name)
        try:
            recorded = replayed(MetaLoss(model, config, size["way"]), record=config.capture)
            with tensor_float32(config.tf32), recorded as meta_loss:
                learner.training_seconds = seconds + train(
                    model, loss, config.schedule, context, title="mm", settings=settings, validation=validation
                )
        except Diverged as error:
            inner = config.inner
            raise Diverged(f"{error} The {inner.steps} inner steps had rate {inner.rate:g}.") from error
        if config.readout == "cluster":
            learner.calibrate(known)
        return learner


def hold_out(known: ImageSet, share: float, way: int, seed: int) -> tuple[ImageSet, ImageSet | None]:
    """The known classes to learn from, and those to watch: see `MMConfig.held_out`."""
    count = max(way, round(share * known.n_classes))
    if share == 0 or known.n_classes - count < 4 * way:
        return known, None
    order = torch.randperm(known.n_classes, generator=torch.Generator().manual_seed(seed)).tolist()
    return known.of_classes(sorted(order[count:])), known.of_classes(sorted(order[:count]))


def _watch(learner: MMLearner, classes: ImageSet, tasks: int, name: str) -> Validation:
    """Score discovery on the same few tasks of some classes now and then, for the log: no weights are chosen by it."""
    plan = learner.plan
    way = min(plan.way, classes.n_classes)
    sampler = UniformSampler(classes.labels, way, plan.observations, plan.queries, classes.class_names)

    def score() -> float:
        task = sampler.sample(LOOK_TASKS, plan.context.generator(stream=2))
        adapted = learner.adapt(classes.images, task.support.flatten(1))
        answers = HeadClustering(adapted).assign(classes.images, task.query.flatten(1)).labels
        return float(score_episodes(task.query_labels.cpu(), answers.cpu()).acc.mean())

    return Validation(max(1, LOOK_EVERY // tasks), score, keep_best=False, name=name)


class MMLearner(Learner):
    """Adapts to each bag by the inner steps it was trained for.

    Args:
        model: The network.
        plan: Number and sizes of the classes to come.
        config: Steps and readout.
    """

    def __init__(self, model: Clusterer, plan: Plan, config: MMConfig) -> None:
        self.model, self.plan, self.config, self.network = model, plan, config, config.network
        self.balanced = config.readout == "cluster" and config.grouping.balanced and plan.equal_sizes
        self.temperature = 1.0

    def discover(self, encoded: Tensor, bag: Tensor, k: int, generator: torch.Generator) -> Clustering:
        """Take the inner steps on every bag at once, then read off the clusters."""
        part = bag[:, self._part(bag)]
        adapted = self._checked(self.adapt(encoded, part), k)
        if self.config.readout == "head":
            return _of_all(HeadClustering(adapted), encoded, bag)
        points, origin = self._prepared(adapted)
        partition = (balanced_kmeans if self.balanced else kmeans)(points, k, generator=generator)
        clustering = self._centred(adapted, points, origin, partition.labels, partition.centres)
        return _of_all(clustering, encoded, bag)

    def oracle(self, encoded: Tensor, bag: Tensor, groups: Tensor, k: int) -> Clustering:
        """The same steps with the true groups as pair labels, and the groups' centres."""
        which = self._part(bag)
        groups = groups[:, which]
        adapted = self._checked(self.adapt(encoded, bag[:, which], label_pairs(groups)), k)
        if self.config.readout == "head":
            return _of_all(HeadClustering(adapted), encoded, bag)
        points, origin = self._prepared(adapted)
        member = nn.functional.one_hot(groups, k).to(points)  # (episodes, n, k)
        centres = member.mT @ points / member.sum(1).clamp(min=1)[:, :, None]
        return _of_all(self._centred(adapted, points, origin, groups, centres), encoded, bag)

    def adapt(self, encoded: Tensor, bag: Tensor, similar: Tensor | None = None) -> Adapted:
        """The network after the inner steps on each bag (episodes, n), by rank or by pair labels (episodes, n, n)."""
        start = {name: value.detach() for name, value in self.model.named_parameters()}
        observations = to_float(encoded[bag])
        with tensor_float32(self.config.tf32):
            parameters = adapt(self.model, start, observations, self.config.inner, similar)
        return Adapted(self.model, parameters, observations, self.config.inner.precision)

    def calibrate(self, known: ImageSet) -> None:
        """Find the temperature under which the queries of known tasks are likeliest to be near their own centres."""
        plan = self.plan
        way = min(plan.way, known.n_classes)
        sampler = UniformSampler(known.labels, way, plan.observations, plan.queries, known.class_names)
        task = sampler.sample(LOOK_TASKS, plan.context.generator(stream=1))
        adapted = self.adapt(known.images, task.support.flatten(1))
        points, origin = self._prepared(adapted)
        centres = points.view(len(points), way, -1, points.shape[2]).mean(2)
        queries = self.config.grouping.preparation.apply(adapted.embed(known.images, task.query.flatten(1)), origin)
        distances = squared_distances(queries, centres).flatten(0, 1)
        self.temperature = best_temperature(distances, task.query_labels.flatten(), points.shape[2])

    def _part(self, bag: Tensor) -> slice | Tensor:
        """Which items of bags (episodes, n) take part: all, or as many as fit."""
        count = bag.shape[1]
        if count <= MOST_ADAPTED:
            return slice(None)
        generator = self.plan.context.generator(stream=3)
        return torch.randperm(count, generator=generator, device=generator.device)[:MOST_ADAPTED].to(bag.device)

    def _checked(self, adapted: Adapted, k: int) -> Adapted:
        if self.config.readout == "head" and k != self.plan.way:
            raise InputError(
                f"this learner's head was trained to tell {self.plan.way} classes apart, not {k}: train it for {k}, "
                "or read clusters off the embedding (readout='cluster')."
            )
        if not all(bool(value.isfinite().all()) for value in adapted.parameters.values()):
            inner = self.config.inner
            raise InputError(
                f"{inner.steps} inner steps of rate {inner.rate:g} diverged on the observations: lower it."
            )
        return adapted

    def _prepared(self, adapted: Adapted) -> tuple[Tensor, Tensor | None]:
        """Prepared embeddings of the observations, and the origin that later items share."""
        features = adapted.respond(adapted.observations[:, :0])[0]
        preparation = self.config.grouping.preparation
        origin = preparation.fit(features)
        return preparation.apply(features, origin), origin

    def _centred(
        self, adapted: Adapted, points: Tensor, origin: Tensor | None, labels: Tensor, centres: Tensor
    ) -> Clustering:
        return AdaptedCentres(
            adapted,
            self.config.grouping,
            points,
            labels,
            centres,
            origin,
            temperature=self.temperature,
            balanced=self.balanced,
        )


def _of_all(clustering: Clustering, encoded: Tensor, bag: Tensor) -> Clustering:
    """The clustering with an answer for every item of bags (episodes, n), those that took no part included."""
    if clustering.labels.shape != bag.shape:
        clustering.labels, clustering.confidence = clustering.assign(encoded, bag)
    return clustering
