"""What a method is: it learns from known classes, then discovers in an unlabelled bag.

    learner    = method.fit(known, plan)                       once
    encoded    = learner.encode(images)                        once for each pool of images
    clustering = learner.discover(encoded, bag, k, generator)  for each bag; many bags at once
    labels     = clustering.assign(encoded, items)             honest: one by one
    labels     = clustering.refine(encoded, items)             transductive: all seen together

A bag is a row of indices into the pool, so a batch of episodes is one (episodes, n) tensor. A learner that only
embeds does its work in `encode`; one that keeps training on the observations leaves `encode` as it is (the images
themselves) and trains in `discover`. Neither needs a special case anywhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from medi.data.facts import QUERIES, Augmentation
from medi.data.imageset import ImageSet
from medi.errors import InputError, unknown_name
from medi.methods.cata_views import ViewsConfig
from medi.runtime.context import Context

AFTER_TRAINING = ("grouping", "readout", "restarts", "steady")
"""Settings of a method that say how clusters are read off what was learnt, or what is done with several trainings."""


@dataclass(frozen=True)
class Plan:
    """What a learner is trained for, and where.

    Attributes:
        way: Number of novel classes it will be asked to tell apart.
        observations: Unlabelled images of each.
        queries: Items of each class asked about in a training task.
        augmentation: What leaves the class of an image alone.
        sampler: How training tasks are drawn.
        views: Settings of CATA's network, where that is the sampler.
        equal_sizes: Every novel class has equally many observations, as in the paper; a method may use that.
        context: Device, seed, folder and progress.
        observed: (n, …), the images of the one bag there will be, where everything is observed: a stage that needs no
            labels may learn from these, too. None where there may be many bags.
    """

    way: int
    observations: int
    queries: int = QUERIES
    augmentation: Augmentation = field(default_factory=Augmentation)
    sampler: str = "uniform"
    views: ViewsConfig = field(default_factory=ViewsConfig)
    equal_sizes: bool = False
    context: Context = field(default_factory=Context)
    observed: Tensor | None = None

    def settings(self, known: ImageSet, config: Any, **task: int) -> dict[str, Any]:
        """All that a training depends on: its checkpoint is kept under these, and found again by them.

        How clusters are read off comes after training, so configs that differ in that alone share one; so do plans
        that lead to the same training tasks.

        Args:
            known: What is learnt from.
            config: The method's settings.
            **task: The size of training tasks, where there are any.
        """
        return {
            "known": known.fingerprint(),
            "config": {name: value for name, value in asdict(config).items() if name not in AFTER_TRAINING},
            "augmentation": asdict(self.augmentation),
            "task": task | {"sampler": self.sampler} if task else None,
            "views": asdict(self.views) if task and self.sampler != "uniform" else None,
        }


class Assignment(NamedTuple):
    """Which cluster each item belongs to, and how sure that is.

    Attributes:
        labels: (episodes, items) int64.
        confidence: (episodes, items) float in 0 to 1.
    """

    labels: Tensor
    confidence: Tensor


class Clustering(ABC):
    """Discovered classes of a batch of bags.

    Attributes:
        labels: (episodes, n) int64, the cluster of each item of the bag.
        confidence: (episodes, n) float in 0 to 1.
    """

    labels: Tensor
    confidence: Tensor

    @abstractmethod
    def assign(self, encoded: Tensor, items: Tensor) -> Assignment:
        """Assign further items (episodes, m), each on its own, as if the others did not exist."""

    def refine(self, encoded: Tensor, items: Tensor, *, equal_sizes: bool = False) -> Assignment:
        """Assign further items (episodes, m) that are seen together and may move the clusters.

        Args:
            encoded: What `Learner.encode` made of the pool.
            items: Indices into it.
            equal_sizes: Every class has equally many of these items; a method may use that.
        """
        raise InputError("this method has no transductive form: leave `transductive` out of --regime.")


class Learner(ABC):
    """What a method has learnt from the known classes.

    Attributes:
        network: Name of the network, None where there is none.
        balanced: Whether discovery uses that the classes of a bag have equally many items.
        training_seconds: What learning took, over all sessions of an interrupted one.
    """

    network: str | None = None
    balanced: bool = False
    training_seconds: float = 0.0

    def encode(self, images: Tensor) -> Tensor:
        """What can be computed for each item (n, …) before any bag is seen; the items themselves by default."""
        return images

    @abstractmethod
    def discover(self, encoded: Tensor, bag: Tensor, k: int, generator: torch.Generator) -> Clustering:
        """Group each bag (episodes, n) of unlabelled items into k classes."""

    def oracle(self, encoded: Tensor, bag: Tensor, groups: Tensor, k: int) -> Clustering:
        """The clustering that the true groups (episodes, n) of the bag would give: uses labels, a ceiling only."""
        raise InputError("this method has no oracle: leave `grouped` out of --regime.")


class Method(ABC):
    """A way to learn to discover.

    Attributes:
        name: Its name on the command line.
        takes_sampler: Whether it trains on tasks, so that --sampler means something.
        one_way: Whether a learner tells only as many classes apart as its plan says.
        embeds: Whether its learning ends in an encoder; the others group a bag by training on it.
        configs: Its named settings, frozen dataclasses; `default` must be among them.
        chosen: The settings that `default` stands for on a dataset where held-out known classes chose others.
        abundant: The same where everything is observed, for datasets where that was chosen apart.
        recipes: The settings that `full` stands for on a dataset for which others were published.
    """

    name: ClassVar[str]
    takes_sampler: ClassVar[bool] = False
    one_way: ClassVar[bool] = False
    embeds: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Any]]
    chosen: ClassVar[Mapping[str, str]] = {}
    abundant: ClassVar[Mapping[str, str]] = {}
    recipes: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def preset(cls, name: str, dataset: str | None = None, *, everything: bool = False) -> Any:
        """The settings of a name; `default` and `full` may differ from dataset to dataset.

        Args:
            name: Of a config.
            dataset: Of a benchmark; None for settings that are not for any.
            everything: Whether all images of the novel classes are observed, not a few.
        """
        if name not in cls.presets:
            raise unknown_name(f"config of {cls.name}", name, cls.presets)
        chosen = {**cls.chosen, **cls.abundant} if everything else cls.chosen
        by_dataset = {"default": chosen, "full": cls.recipes}.get(name, {})
        return cls.presets[by_dataset.get(dataset, name) if dataset is not None else name]

    @abstractmethod
    def __init__(self, config: Any) -> None: ...

    @abstractmethod
    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """Learn from the known classes."""
