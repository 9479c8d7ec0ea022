"""What `complexity.py` measures: sizes of work, and the methods with their configs at each size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from medi.methods.recipe import Recipe, Tasks

from medi.data.facts import BENCHMARKS
from medi.data.imageset import ImageSet
from medi.methods import Plan
from medi.methods.cata_views import CONFIGS as VIEWS
from medi.methods.cata_views import ViewsConfig, find_views
from medi.methods.dtc import DTC
from medi.methods.kcl import KCL
from medi.methods.kmeans import KMeans, KMeansConfig
from medi.methods.mcl import MCL
from medi.methods.medi import READINGS, Medi, MediConfig
from medi.methods.mm import MM, MMConfig
from medi.methods.mp import MP, MPConfig
from medi.methods.pretraining import CPU
from medi.methods.rs import RS
from medi.runtime.context import Context

NETWORK, ITEM = "conv4", (3, 32, 32)
CLASSES, EACH = 20, 80
"""The random known images: enough for tasks of four times the way, or of four times the images."""
RECIPE = Recipe(NETWORK, tasks=Tasks())
"""How medi's network learns: cross-entropy on known classes and their rotations, then tasks."""
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
        small: Use the configs made for a CPU.
    """

    tasks: int = 16
    way: int = 5
    observations: int = 5
    queries: int = 15
    inner: int = 10
    images: int = 1
    small: bool = False

    @property
    def config(self) -> str:
        """Name of the baselines' configs."""
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
        return Plan(*sizes, BENCHMARKS["cifar10"].augmentation, equal_sizes=True, context=Context(device))


SHAPES = {False: Shape(), True: Shape(tasks=2, inner=5, small=True)}
GROWTH = {False: Shape(tasks=8, inner=5), True: Shape(1, 3, 3, 5, 2, small=True)}
"""What the table is about, and where growth starts: by whether the small shape is asked for."""


class Cata:
    """CATA's network, which finds the views that MM and MP draw tasks from."""

    def __init__(self, config: ViewsConfig) -> None:
        self.config = config

    def fit(self, known: ImageSet, plan: Plan) -> None:
        """Train the network and find all views; nothing is discovered."""
        find_views(known, self.config, plan.context, plan.augmentation)


@dataclass(frozen=True)
class Entry:
    """A method to measure.

    Attributes:
        make: From a config to something with `fit(known, plan)`.
        config: For a shape.
        images: How many a training step sees, for a config, a shape and the title of a stage.
        training: Of `AXES`, those that a training step depends on.
        discovery: Those that a discovery depends on.
    """

    make: Callable[[Any], Any]
    config: Callable[[Shape], Any]
    images: Callable[[Any, Shape, str], int]
    training: tuple[str, ...]
    discovery: tuple[str, ...]


def of_tasks(config: Any, shape: Shape, stage: str = "") -> int:
    """Images of a step of whole tasks."""
    return shape.tasks * shape.way * shape.of_a_class


def of_batch(config: Any, shape: Shape, stage: str = "") -> int:
    """Images of a step of single images."""
    return int(config.batch)


def of_recipe(config: MediConfig, shape: Shape, stage: str) -> int:
    """Images of a step of either stage of medi."""
    recipe = config.members[0]
    stages = {"medi-supervised": (recipe.supervised, "batch"), "medi-tasks": (recipe.tasks, "images")}
    return int(getattr(*stages[stage]))


def of_start(config: Any, shape: Shape, stage: str = "") -> int:
    """Images of a step of the first stage of DTC and RS."""
    return int(config.start.batch)


def of_pairs(config: Any, shape: Shape, stage: str = "") -> int:
    """Images of a step of the similarity network."""
    return min(config.similarity.classes, CLASSES) * int(config.similarity.each)


def cata_config(shape: Shape) -> ViewsConfig:
    """CATA's config."""
    config = VIEWS[shape.config]
    return replace(config, network=NETWORK, batch=shape.images * config.batch)


def kmeans_config(shape: Shape) -> KMeansConfig:
    """K-means on features of a classifier of the known classes; on a CPU, the baselines' classifier."""
    config = KMeans.presets["features"]
    batch, schedule = (CPU.batch, CPU.schedule) if shape.small else (config.batch, config.schedule)
    return replace(config, network=NETWORK, batch=shape.images * batch, schedule=schedule)


def mp_config(shape: Shape) -> MPConfig:
    """MP's config with the tasks of a shape."""
    return replace(MP.presets[shape.config], network=NETWORK, queries=None, images=of_tasks(None, shape))


def mm_config(shape: Shape) -> MMConfig:
    """MM's config with the tasks and inner steps of a shape."""
    config = MM.presets["cpu" if shape.small else "pairs"]
    return replace(config, network=NETWORK, tasks=shape.tasks, inner=replace(config.inner, steps=shape.inner))


def medi_config(shape: Shape) -> MediConfig:
    """The config of medi: one network that learns by `RECIPE`, shifted views of images, clusters of equal size.

    On a CPU its stages are the baselines' classifier and MP's tasks. Its tasks have a size of their own.
    """
    classifier, tasks = RECIPE.supervised, RECIPE.tasks
    if shape.small:
        classifier = replace(classifier, batch=CPU.batch, schedule=CPU.schedule)
        tasks = Medi.presets["cpu"].members[0].tasks
    classifier = replace(classifier, batch=shape.images * classifier.batch)
    tasks = replace(
        tasks, **{name: shape.images * getattr(tasks, name) for name in ("observations", "queries", "images")}
    )
    return MediConfig((replace(RECIPE, supervised=classifier, tasks=tasks),), *READINGS["views"])


def published_config(method: Any, first: str, size: str) -> Callable[[Shape], Any]:
    """A published method's config with our network and `size` of its first stage times the shape's images."""

    def config(shape: Shape) -> Any:
        whole = method.presets[shape.config]
        stage = getattr(whole, first)
        scaled = replace(stage, network=NETWORK, **{size: shape.images * getattr(stage, size)})
        return replace(whole, **{first: scaled})

    return config


# Axes of a step on a batch and of a step on tasks; axes of a discovery without and with steps on the bag.
BATCH, TASKS = ("images",), ("tasks", "way", "images")
BAG, STEPS = ("way", "images"), ("way", "images", "inner steps")
METHODS: Mapping[str, Entry] = {
    "CATA": Entry(Cata, cata_config, of_batch, BATCH, ()),
    "MM": Entry(MM, mm_config, of_tasks, (*TASKS, "inner steps"), STEPS),
    "MP": Entry(MP, mp_config, of_tasks, TASKS, BAG),
    "medi": Entry(Medi, medi_config, of_recipe, BATCH, BAG),
    "K-means on pixels": Entry(KMeans, lambda s: KMeansConfig(), lambda config, shape, stage: 0, (), BAG),
    "K-means": Entry(KMeans, kmeans_config, of_batch, BATCH, BAG),
    "KCL": Entry(KCL, published_config(KCL, "similarity", "each"), of_pairs, BATCH, STEPS),
    "MCL": Entry(MCL, published_config(MCL, "similarity", "each"), of_pairs, BATCH, STEPS),
    "DTC": Entry(DTC, published_config(DTC, "start", "batch"), of_start, BATCH, STEPS),
    "RS": Entry(RS, published_config(RS, "start", "batch"), of_start, BATCH, STEPS),
}
