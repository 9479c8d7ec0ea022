"""What `complexity.py` measures: sizes of work, and the methods with their settings at each size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from medi.data.facts import BENCHMARKS
from medi.data.imageset import ImageSet
from medi.methods import Plan
from medi.methods.cata_views import ViewsConfig, find_views
from medi.methods.dtc import DTC
from medi.methods.kcl import KCL
from medi.methods.kmeans import KMeans
from medi.methods.mcl import MCL
from medi.methods.medi import Medi, Member
from medi.methods.mm import MM
from medi.methods.mp import MP
from medi.methods.pretraining import Pretraining
from medi.methods.readout import Readout
from medi.methods.rs import RS
from medi.nn.context import Context
from medi.nn.schedule import Schedule
from medi.presets import resolve

NETWORK, ITEM = "conv4", (3, 32, 32)
CLASSES, EACH = 20, 80
"""The random known images: enough for tasks of four times the way, or of four times the images."""
AXES = {"tasks": "tasks", "way": "way", "images": "images", "inner steps": "inner"}
"""What is doubled, and the field of `Shape` that holds it."""


@dataclass(frozen=True)
class Shape:
    """The size of the work.

    Attributes:
        tasks: Tasks in a step.
        way: Classes of a task, or of a bag.
        observations: Of each class.
        queries: Of each class.
        inner: Gradient steps on a task's observations.
        images: Factor on the images of each class, or of a batch.
        small: Use the settings made for a CPU.
    """

    tasks: int = 16
    way: int = 5
    observations: int = 5
    queries: int = 15
    inner: int = 10
    images: int = 1
    small: bool = False

    @property
    def preset(self) -> str:
        """Name of the baselines' settings."""
        return "cpu" if self.small else "default"

    @property
    def of_a_class(self) -> int:
        """Images of each class in a task."""
        return self.images * (self.observations + self.queries)

    def grown(self, axis: str, factor: int) -> Shape:
        """The same with one of `AXES` multiplied."""
        field = AXES[axis]
        return replace(self, **{field: factor * getattr(self, field)})

    def plan(self, device: torch.device) -> Plan:
        """What learners are trained for."""
        sizes = (self.way, self.images * self.observations, self.images * self.queries)
        return Plan(*sizes, BENCHMARKS["cifar10"].augmentation, context=Context(device))


SHAPES = {False: Shape(), True: Shape(tasks=2, inner=5, small=True)}
GROWTH = {False: Shape(tasks=8, inner=5), True: Shape(1, 3, 3, 5, 2, small=True)}
"""What the table is about, and where growth starts: by whether the small shape is asked for."""


@dataclass(frozen=True)
class Cata:
    """CATA's network, which finds the views that MM and MP draw tasks from."""

    config: ViewsConfig

    def fit(self, known: ImageSet, plan: Plan) -> None:
        """Train the network and find all views; nothing is discovered."""
        find_views(known, self.config, plan.context, plan.augmentation)


@dataclass(frozen=True)
class Entry:
    """A method to measure.

    Attributes:
        method: From a shape to something with `fit(known, plan)`.
        images: How many a training step sees, for a method, a shape and the title of a stage.
        training: Of `AXES`, those that a training step depends on.
        discovery: Those that a discovery depends on.
    """

    method: Callable[[Shape], Any]
    images: Callable[[Any, Shape, str], int]
    training: tuple[str, ...]
    discovery: tuple[str, ...]


def of_tasks(method: Any, shape: Shape, stage: str = "") -> int:
    """Images of a step of whole tasks."""
    return shape.tasks * shape.way * shape.of_a_class


def of_views(method: Cata, shape: Shape, stage: str) -> int:
    """Images of a step of CATA's network."""
    return method.config.batch


def of_medi(method: Medi, shape: Shape, stage: str) -> int:
    """Images of a step of either stage of medi, which are named for what they teach."""
    batches = {one.kind: one.batch for one in method.members[0].stages}
    return batches[stage]


def of_pretraining(method: Any, shape: Shape, stage: str) -> int:
    """Images of a step of the stages of K-means, DTC and RS."""
    return int(method.supervised_batch if stage == "last-stage" else method.pretraining.batch)


def of_pairs(method: KCL | MCL, shape: Shape, stage: str) -> int:
    """Images of a step of the similarity network."""
    return min(method.similarity.classes, CLASSES) * method.similarity.each


def cata_at(shape: Shape) -> Cata:
    """CATA."""
    config = resolve(ViewsConfig, shape.preset)
    return Cata(replace(config, network=NETWORK, batch=shape.images * config.batch))


def mm_at(shape: Shape) -> MM:
    """MM without pretraining, clusters read off its head, with the tasks and inner steps of a shape."""
    method = replace(MM.preset("cpu"), prototypes=0.0, readout="head") if shape.small else MM()
    return replace(method, network=NETWORK, tasks=shape.tasks, inner=replace(method.inner, steps=shape.inner))


def mp_at(shape: Shape) -> MP:
    """MP with the tasks of a shape."""
    return replace(MP.preset(shape.preset), network=NETWORK, queries=None, images=of_tasks(None, shape))


def medi_at(shape: Shape) -> Medi:
    """One network that learns classes and their rotations, then tasks; shifted views of images.

    On a CPU its stages are the baselines' classifier and MP's tasks. Its tasks have a size of their own.
    """
    if shape.small:
        classes, (tasks,) = resolve(Pretraining, "cpu"), Medi.preset("cpu").members[0].stages
    else:
        classes = resolve(Pretraining, "supervised")
        tasks = Pretraining("prototypes", batch=400, queries=15, temperature=16.0, schedule=Schedule(400, rate=3e-4))
    tasks = replace(tasks, observations=shape.images * tasks.observations, queries=shape.images * tasks.queries)
    stages = tuple(replace(one, network=NETWORK, batch=shape.images * one.batch) for one in (classes, tasks))
    return Medi((Member(stages),), Readout(shift=1))


def kmeans_at(shape: Shape) -> KMeans:
    """K-means on features of a classifier of the known classes; on a CPU, the baselines' classifier."""
    return with_network(KMeans(resolve(Pretraining, shape.preset)), shape)


def pairs_at(method: type[KCL | MCL]) -> Callable[[Shape], KCL | MCL]:
    """KCL or MCL with our network."""

    def at(shape: Shape) -> KCL | MCL:
        whole = method.preset(shape.preset)
        judge = replace(whole.similarity, network=NETWORK, each=shape.images * whole.similarity.each)
        return replace(whole, similarity=judge)

    return at


def dtc_at(shape: Shape) -> DTC:
    """DTC with our network."""
    return with_network(DTC.preset(shape.preset), shape)


def rs_at(shape: Shape) -> RS:
    """RS with our network; both stages before the bag grow."""
    method = with_network(RS.preset(shape.preset), shape)
    return replace(method, supervised_batch=shape.images * method.supervised_batch)


def with_network(method: Any, shape: Shape) -> Any:
    """A method whose pretraining has our network, in batches that grow with the shape's images."""
    before = method.pretraining
    return replace(method, pretraining=replace(before, network=NETWORK, batch=shape.images * before.batch))


# Axes of a step on a batch and of a step on tasks; axes of a discovery without and with steps on the bag.
BATCH, TASKS = ("images",), ("tasks", "way", "images")
BAG, STEPS = ("way", "images"), ("way", "images", "inner steps")
METHODS: Mapping[str, Entry] = {
    "CATA": Entry(cata_at, of_views, BATCH, ()),
    "MM": Entry(mm_at, of_tasks, (*TASKS, "inner steps"), STEPS),
    "MP": Entry(mp_at, of_tasks, TASKS, BAG),
    "medi": Entry(medi_at, of_medi, BATCH, BAG),
    "K-means on pixels": Entry(lambda shape: KMeans(), lambda method, shape, stage: 0, (), BAG),
    "K-means": Entry(kmeans_at, of_pretraining, BATCH, BAG),
    "KCL": Entry(pairs_at(KCL), of_pairs, BATCH, STEPS),
    "MCL": Entry(pairs_at(MCL), of_pairs, BATCH, STEPS),
    "DTC": Entry(dtc_at, of_pretraining, BATCH, STEPS),
    "RS": Entry(rs_at, of_pretraining, BATCH, STEPS),
}
