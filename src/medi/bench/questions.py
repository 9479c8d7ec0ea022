"""What learners are asked: the questions of the protocol's scoring sets.

Draws depend on the seed, the dataset and the setting alone, so that every method and regime answers the same
questions.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from medi.bench.grid import ALL, Run
from medi.core.errors import InputError
from medi.data.benchmarks import Benchmark
from medi.data.facts import QUERIES
from medi.metrics import chance
from medi.tasks.episodes import Task, UniformSampler

UNEQUAL_QUERIES = (5, 25)
"""Fewest and most items of a class that are asked about in a task of unequal sizes; fewer where a class has fewer."""
SIZE_DRAWS = 60
"""How often sizes are drawn, at most; the tasks in between share them, so that they can be answered together."""


@dataclass(frozen=True)
class Questions:
    """What a learner is asked: episodes over one pool of novel images (n, …).

    Attributes:
        bag: (episodes, items) the unlabelled observations, in random order.
        groups: (episodes, items) their true classes, for the oracle alone.
        query: (episodes, m) the items to assign.
        labels: (episodes, m) their true classes, for scoring alone.
        equal_sizes: Episodes ask about equally many items of each class; a pool of test images is as it is.
    """

    images: Tensor
    way: int
    bag: Tensor
    groups: Tensor
    query: Tensor
    labels: Tensor
    equal_sizes: bool = False

    def chance(self) -> float:
        """ACC of random clusters on the same queries."""
        sizes = torch.bincount(self.labels[0], minlength=self.way).tolist()
        return chance(sizes, self.way)


def draw_tasks(benchmark: Benchmark, run: Run, episodes: int) -> list[Questions]:
    """What a run asks: one batch of questions, or several of different sizes.

    Those are of families of classes that are observed whole, or of classes of unequal sizes.
    """
    if run.observations == ALL and benchmark.facts.families and benchmark.novel_train is None:
        return _families(benchmark, run)
    if run.sizes == "unequal":
        return _unequal(benchmark, run, episodes)
    return [draw_questions(benchmark, run, episodes)]


def draw_questions(benchmark: Benchmark, run: Run, episodes: int) -> Questions:
    """The questions of a run: `episodes` small ones, or one over all test images (`pooled`)."""
    novel = benchmark.novel
    if run.way > novel.n_classes:
        raise InputError(f"--way {run.way}: {benchmark.facts.name} has {novel.n_classes} novel classes; ask for fewer.")
    generator = _generator(benchmark, run)
    if run.observations == ALL:
        return _everything(benchmark, run.way, generator)
    labels = novel.labels.cpu()
    queries = QUERIES if run.score == "episode" else 1
    sampler = UniformSampler(labels, run.way, int(run.observations), queries, novel.class_names)
    task = sampler.sample(episodes if run.score == "episode" else 1, generator)
    query = (task.query.flatten(1), task.query_labels) if run.score == "episode" else _all_others(task, labels)
    equal = run.score == "episode"
    return _questions(novel.images, run.way, (task.support.flatten(1), task.support_labels), query, generator, equal)


def _questions(
    images: Tensor,
    way: int,
    bag: tuple[Tensor, Tensor],
    query: tuple[Tensor, Tensor],
    generator: torch.Generator,
    equal_sizes: bool,
) -> Questions:
    """Questions about items (episodes, n) and their classes, in random order."""
    (bag_items, groups), (items, labels) = (
        (part.to(images.device) for part in _shuffled(*some, generator)) for some in (bag, query)
    )
    return Questions(images, way, bag_items, groups, items, labels, equal_sizes)


def _unequal(benchmark: Benchmark, run: Run, episodes: int) -> list[Questions]:
    """Questions about classes of 1 to 2K observations and 5 to 25 queries each; all others, where they are pooled.

    Sizes are drawn anew for every batch, and whose they are for every episode.
    """
    novel, labels, generator = benchmark.novel, benchmark.novel.labels.cpu(), _generator(benchmark, run)
    fewest, most = UNEQUAL_QUERIES
    most_observed, pooled = 2 * int(run.observations), run.score != "episode"
    there = int(torch.bincount(labels[labels >= 0]).min())
    most = 1 if pooled else max(fewest, min(most, there - most_observed))
    sampler = UniformSampler(labels, run.way, most_observed, most, novel.class_names)
    draws = 1 if pooled else min(episodes, SIZE_DRAWS)
    tasks = []
    for number in range(draws):
        count = 1 if pooled else len(range(number, episodes, draws))
        observed = torch.randint(1, most_observed + 1, (run.way,), generator=generator)
        task = sampler.sample(count, generator)
        shown = torch.arange(most_observed) < observed[:, None]
        bag = task.support[:, shown], task.support_labels.view(task.support.shape)[:, shown]
        if pooled:
            query = _all_others(task, labels, bag[0])
        else:
            asked = torch.arange(most) < torch.randint(fewest, most + 1, (run.way, 1), generator=generator)
            query = task.query[:, asked], task.query_labels.view(task.query.shape)[:, asked]
        tasks.append(_questions(novel.images, run.way, bag, query, generator, False))
    return tasks


def families(class_names: Sequence[str]) -> list[list[int]]:
    """The classes of each family, by what their names have before the stroke."""
    members: dict[str, list[int]] = {}
    for number, name in enumerate(class_names):
        members.setdefault(name.partition("/")[0], []).append(number)
    return list(members.values())


def _generator(benchmark: Benchmark, run: Run) -> torch.Generator:
    # Drawn on the CPU, so that a seed means the same questions on every device.
    unequal = "/unequal" if run.sizes == "unequal" else ""
    stream = zlib.crc32(f"{benchmark.facts.name}/{run.way}/{run.observations}/{run.score}{unequal}".encode())
    return torch.Generator().manual_seed(run.seed * 1_000_003 + stream)


def _shuffled(items: Tensor, classes: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Items (episodes, n) in random order: how a sampler lays them out must not tell the classes."""
    order = torch.rand(items.shape, generator=generator).argsort(1)
    return items.gather(1, order), classes.gather(1, order)


def _all_others(task: Task, labels: Tensor, observed: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Every item of the drawn classes that was not observed, and its class as a row of the task.

    Observed is the task's whole support, or a part of it.
    """
    row = torch.full((int(labels.max()) + 1,), -1)
    row[task.classes[0]] = torch.arange(task.way)
    answers = torch.where(labels >= 0, row[labels], -1)
    answers[(task.support if observed is None else observed).flatten()] = -1
    query = (answers >= 0).nonzero().squeeze(1)
    return query[None], answers[query][None]


def _everything(benchmark: Benchmark, way: int, generator: torch.Generator) -> Questions:
    """Observe the novel classes' whole training split, ask about their test split."""
    train, test = benchmark.novel_train, benchmark.novel
    if train is None:
        cure = "give a number" if benchmark.facts.generated else "fetch the whole set, or give a number"
        name = benchmark.facts.name
        raise InputError(f"--observations all: there are no training images of {name}'s novel classes; {cure}.")
    _check_every_class(way, test.n_classes)
    if train.class_names != test.class_names:
        raise InputError("--observations all: training and test split hold other novel classes; give both the same.")
    images = torch.cat([train.images, test.images])
    places = torch.arange(len(images))[None]
    bag = places[:, : len(train)], train.labels[None].cpu()
    query = places[:, len(train) :], test.labels[None].cpu()
    return _questions(images, way, bag, query, generator, equal_sizes=False)


def _check_every_class(way: int, there: int) -> None:
    if way != there:
        raise InputError(
            f"--observations all is about all novel classes, {there} here, not {way}: "
            "leave --way out, and have the whole set."
        )


def _families(benchmark: Benchmark, run: Run) -> list[Questions]:
    """Observe every image of a family of novel classes and ask about the same images, family by family.

    This is how clustering of Omniglot's alphabets is scored in the literature: there is no further image to ask about.
    """
    novel, generator = benchmark.novel, _generator(benchmark, run)
    _check_every_class(run.way, novel.n_classes)
    tasks = []
    for classes in families(novel.class_names):
        row = torch.full((novel.n_classes,), -1)
        row[classes] = torch.arange(len(classes))
        groups = row[novel.labels.cpu()]
        items = (groups >= 0).nonzero().squeeze(1)
        bag, groups = _shuffled(items[None], groups[items][None], generator)
        bag, groups = bag.to(novel.images.device), groups.to(novel.images.device)
        tasks.append(Questions(novel.images, len(classes), bag, groups, query=bag, labels=groups))
    return tasks
