"""What a method is: it learns from known classes, then discovers in an unlabelled bag.

    learner    = method.fit(known, plan)                       once
    encoded    = learner.encode(images)                        once for each pool of images
    clustering = learner.discover(encoded, bag, k, generator)  for each bag; many bags at once
    labels     = clustering.assign(encoded, items)             honest: one by one
    labels     = clustering.refine(encoded, items)             transductive: all seen together

A bag is a row of indices into the pool, so a batch of episodes is one (episodes, n) tensor. A learner that only
embeds does its work in `encode`; one that trains on the observations leaves `encode` as it is (the images themselves)
and trains in `discover`. Neither needs a special case anywhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from medi.core.errors import InputError, refuse_unknown
from medi.core.progress import Reporter
from medi.data.benchmarks import Benchmark
from medi.data.facts import QUERIES, Augmentation
from medi.data.imageset import ImageSet
from medi.methods.cata_views import ViewsConfig, find_views, views_for
from medi.nn.context import Context
from medi.nn.embed import Embedding
from medi.presets import DEFAULT, Presets, resolve
from medi.registry import SAMPLER_NAMES
from medi.tasks.cata import CataSampler
from medi.tasks.episodes import UniformSampler

BagPartition = Callable[[Tensor, int, torch.Generator, bool], Tensor]
"""From points (episodes, n, d), k, a generator and whether groups are equally large to labels (episodes, n)."""
AT_DISCOVERY: Mapping[str, str] = MappingProxyType({"matters": "at discovery"})
"""Metadata of a setting that training does not depend on: presets that differ in such alone share a training."""
MOST_OBSERVATIONS = 5
"""Observations of a training task at most: where more images are observed, or all, more teach nothing else."""


@dataclass(frozen=True)
class Plan:
    """What a learner is trained for, and where.

    Attributes:
        way: Number of novel classes it will be asked to tell apart.
        observations: Unlabelled images of each in a training task.
        queries: Items of each class asked about in a training task.
        augmentation: What leaves the class of an image alone.
        sampler: How training tasks are drawn.
        views: Settings of CATA's network, where that is the sampler.
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
    context: Context = field(default_factory=Context)
    observed: Tensor | None = None

    @classmethod
    def of(
        cls,
        benchmark: Benchmark,
        observations: int | str = 5,
        *,
        way: int | None = None,
        sampler: str = "uniform",
        context: Context | None = None,
    ) -> Plan:
        """The plan by which `medi bench run` trains for a benchmark.

        Args:
            benchmark: Whose novel classes will be asked for.
            observations: Unlabelled images of each, or "all".
            way: Number of novel classes in a task; None for the benchmark's own.
            sampler: How training tasks are drawn: uniform or cata.
            context: Device, seed, folder and progress; None for a CPU, seed 0, and progress on the terminal.
        """
        everything = observations == "all"
        train, context = benchmark.novel_train, context or Context(reporter=Reporter())
        return cls(
            way=benchmark.facts.way if way is None or everything else way,
            observations=MOST_OBSERVATIONS if everything else min(int(observations), MOST_OBSERVATIONS),
            augmentation=benchmark.facts.augmentation,
            sampler=sampler,
            views=views_for(benchmark.facts, context.device),
            context=context,
            observed=train.images if everything and train is not None else None,
        )

    def make_sampler(self, known: ImageSet, way: int, observations: int, queries: int) -> UniformSampler:
        """The sampler of training tasks; for CATA, its network is trained on the known classes first."""
        refuse_unknown("sampler", self.sampler, SAMPLER_NAMES)
        size = (way, observations, queries, known.class_names)
        uniform = UniformSampler(known.labels, *size)  # says at once if a task asks for too much
        if self.sampler == "uniform":
            return uniform
        return CataSampler(known.labels, find_views(known, self.views, self.context, self.augmentation), *size)


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
            equal_sizes: Every class has equally many of these items and of the bag's, and that is to be used.
        """
        raise InputError("this method has no transductive form: leave `transductive` out of --regime.")


class Learner(ABC):
    """What a method has learnt from the known classes.

    Attributes:
        embedding: How one item becomes a point, by itself; `medi discover` compares photos by it and saves it.
        network: Name of the network, None where there is none.
        balanced: Whether its settings use that classes have equally many items, where that is so.
        training_seconds: What learning took, over all sessions of an interrupted one.
    """

    embedding: Embedding
    network: str | None = None
    balanced: bool = False
    training_seconds: float = 0.0

    def encode(self, images: Tensor) -> Tensor:
        """What can be computed for each item (n, …) before any bag is seen; the items themselves by default."""
        return images

    @abstractmethod
    def discover(
        self, encoded: Tensor, bag: Tensor, k: int, generator: torch.Generator, *, equal_sizes: bool = False
    ) -> Clustering:
        """Group each bag (episodes, n) of unlabelled items into k classes.

        Args:
            encoded: What `encode` made of the pool.
            bag: Indices into it; their order must not matter.
            k: Number of classes.
            generator: Source of random draws.
            equal_sizes: Every class has equally many of these items, and that is to be used.
        """

    def oracle(self, encoded: Tensor, bag: Tensor, groups: Tensor, k: int) -> Clustering:
        """The clustering that the true groups (episodes, n) of the bag would give: uses labels, a ceiling only."""
        raise InputError("this method has no oracle: leave `grouped` out of --regime.")


class Method(ABC):
    """A way to learn to discover: a frozen dataclass of its settings.

    Attributes:
        name: The class's own, in small letters.
        version: Raised when the same settings learn something else than before: earlier trainings are then not used.
        takes_sampler: Whether it trains on tasks, so that --sampler means something.
        one_way: Whether a learner tells only as many classes apart as its plan says.
        assumes_equal_sizes: Whether its loss makes clusters of unequal size cost more, whatever it is told of sizes.
        trains_on_observations: Whether clusters come from training on the bag, not from the embedding alone.
        presets: Its named settings, as changes of what its fields say, which is the preset `default` of a method
            without any. One named like a dataset is the default there.
        default_for_all: The preset that `default` stands for where everything is observed, by dataset.
    """

    name: ClassVar[str]
    version: ClassVar[int | str] = 1
    takes_sampler: ClassVar[bool] = False
    one_way: ClassVar[bool] = False
    assumes_equal_sizes: ClassVar[bool] = False
    trains_on_observations: ClassVar[bool] = False
    presets: ClassVar[Presets] = MappingProxyType({DEFAULT: {}})
    default_for_all: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = cls.__name__.lower()

    @property
    def code(self) -> str:
        """Where the method is written, so that nothing that another one trained is taken for its own."""
        return f"{type(self).__module__}:{type(self).__qualname__}"

    @classmethod
    def preset(
        cls, name: str = DEFAULT, dataset: str | None = None, *, on_cpu: bool = False, everything: bool = False
    ) -> Self:
        """The method with the settings of a name; `medi.presets.preset_for` says which these are."""
        return resolve(cls, name, dataset, on_cpu=on_cpu, everything=everything)

    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """Learn from the known classes, or find what was learnt before."""
        before = plan.context.stopwatch.seconds
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(plan.context.seed)  # layers made on the CPU follow from the seed
            learner = self.make_learner(known, plan)
        learner.training_seconds = plan.context.stopwatch.seconds - before
        learner.balanced = self.balanced
        return learner

    @property
    def balanced(self) -> bool:
        """Whether its settings use that classes have equally many items, where that is so."""
        return False

    @property
    def learns(self) -> bool:
        """Whether known classes teach it anything; where not, items are compared as they are."""
        return True

    def own_grouping(self) -> BagPartition | None:
        """The method's own way to group points, where it has one; None to leave that to whoever asks."""
        return None

    @abstractmethod
    def make_learner(self, known: ImageSet, plan: Plan) -> Learner:
        """Train what does not depend on the observations; `fit` adds how long that took."""

    def identity(self, known: ImageSet, plan: Plan, **task: int) -> dict[str, Any]:
        """All that a training of this method depends on beside schedule and seed: it is kept, and found, under this.

        Settings that matter only at discovery are left out, so that presets which differ in these share a training.

        Args:
            known: What is learnt from.
            plan: What for.
            **task: The size of training tasks, where there are any.
        """
        settings = asdict(self)  # type: ignore[call-overload]
        after = [one.name for one in fields(self) if one.metadata == AT_DISCOVERY]  # type: ignore[arg-type]
        return {
            "code": self.code,
            "version": self.version,
            "config": {name: value for name, value in settings.items() if name not in after},
            "known": known.fingerprint(),
            "augmentation": asdict(plan.augmentation),
            "task": task or None,
            "sampler": plan.sampler if task else None,
            "views": asdict(plan.views) if task and plan.sampler != "uniform" else None,
        }
