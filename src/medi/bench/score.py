"""Scoring a learner on novel classes, by the regimes and scoring sets of the protocol.

Draws depend on the seed, the dataset and the setting alone, so that every method and regime answers the same
questions.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medi.bench.grid import ALL, Run
from medi.data.benchmarks import Benchmark
from medi.data.facts import QUERIES
from medi.errors import InputError
from medi.methods.base import Learner
from medi.metrics import chance, score_episodes
from medi.progress import Reporter
from medi.tasks.episodes import Task, UniformSampler

CHUNK_NUMBERS = 32_000_000
"""Feature numbers looked at together: bounds memory (128 MB) whatever the number of episodes."""


@dataclass(frozen=True)
class Questions:
    """What a learner is asked: episodes over one pool of novel images.

    Attributes:
        images: (n, …) the pool.
        way: Number of classes.
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


@dataclass(frozen=True)
class Score:
    """Mean scores over episodes, as fractions, and half the width of ACC's 95 % interval (None for one episode)."""

    acc: float
    nmi: float
    ari: float
    acc_ci95: float | None
    episodes: int


def draw_questions(benchmark: Benchmark, run: Run, episodes: int) -> Questions:
    """The questions of a run: `episodes` small ones, or one over all test images (`pooled`)."""
    novel = benchmark.novel
    if run.way > novel.n_classes:
        raise InputError(f"--way {run.way}: {run.dataset} has {novel.n_classes} novel classes; ask for fewer.")
    # Drawn on the CPU, so that a seed means the same questions on every device.
    stream = zlib.crc32(f"{run.dataset}/{run.way}/{run.observations}/{run.score}".encode())
    generator = torch.Generator().manual_seed(run.seed * 1_000_003 + stream)
    if run.observations == ALL:
        return _everything(benchmark, run.way, generator)
    labels = novel.labels.cpu()
    queries = QUERIES if run.score == "episode" else 1
    sampler = UniformSampler(labels, run.way, int(run.observations), queries, novel.class_names)
    task = sampler.sample(episodes if run.score == "episode" else 1, generator)
    query, answers = (task.query.flatten(1), task.query_labels) if run.score == "episode" else _all_others(task, labels)
    bag, groups = _shuffled(task.support.flatten(1), task.support_labels, generator)
    device = novel.images.device
    return Questions(
        novel.images,
        run.way,
        bag=bag.to(device),
        groups=groups.to(device),
        query=query.to(device),
        labels=answers.to(device),
        equal_sizes=run.score == "episode",
    )


def score_regimes(
    learner: Learner, encoded: Tensor, questions: Questions, regimes: Collection[str], *, seed: int, reporter: Reporter
) -> dict[str, Score]:
    """Ask a learner every question under some regimes; honest and transductive start from the same clustering.

    Args:
        learner: What was trained on the known classes.
        encoded: `learner.encode(questions.images)`.
        questions: The episodes.
        regimes: Of `medi.bench.grid.REGIMES`.
        seed: Start of the clustering's random draws.
        reporter: Shows progress.
    """
    episodes, items = questions.bag.shape
    size = (items + questions.query.shape[1]) * max(1, encoded[0].numel())
    chunk = max(1, CHUNK_NUMBERS // size)
    generator = torch.Generator(encoded.device).manual_seed(seed)
    answers: dict[str, list[Tensor]] = {regime: [] for regime in regimes}
    with reporter.track("scoring", episodes) as tick:
        for start in range(0, episodes, chunk):
            part = slice(start, start + chunk)
            bag, query = questions.bag[part], questions.query[part]
            if answers.keys() - {"grouped"}:
                clustering = learner.discover(encoded, bag, questions.way, generator)
            if "honest" in answers:
                answers["honest"].append(clustering.assign(encoded, query).labels.cpu())
            if "transductive" in answers:
                answers["transductive"].append(
                    clustering.refine(encoded, query, equal_sizes=questions.equal_sizes).labels.cpu()
                )
            if "grouped" in answers:
                oracle = learner.oracle(encoded, bag, questions.groups[part], questions.way)
                answers["grouped"].append(oracle.assign(encoded, query).labels.cpu())
            tick(min(start + chunk, episodes))
    return {regime: _summarise(questions, torch.cat(parts)) for regime, parts in answers.items()}


def _summarise(questions: Questions, answers: Tensor) -> Score:
    """Mean scores of answers (episodes, m)."""
    scores = score_episodes(questions.labels.cpu().numpy(), answers.numpy())
    episodes = len(answers)
    return Score(
        acc=float(scores.acc.mean()),
        nmi=float(scores.nmi.mean()),
        ari=float(scores.ari.mean()),
        acc_ci95=half_width(scores.acc) if episodes > 1 else None,
        episodes=episodes,
    )


def half_width(values: NDArray[np.float64]) -> float:
    """Half the width of the 95 % interval of a mean."""
    return float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


def _shuffled(bag: Tensor, groups: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The bag in random order: how a sampler lays it out must not tell the classes."""
    order = torch.rand(bag.shape, generator=generator).argsort(1)
    return bag.gather(1, order), groups.gather(1, order)


def _all_others(task: Task, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Every item of the drawn classes that was not observed, and its class as a row of the task."""
    row = torch.full((int(labels.max()) + 1,), -1)
    row[task.classes[0]] = torch.arange(task.way)
    answers = torch.where(labels >= 0, row[labels], -1)
    answers[task.support.flatten()] = -1
    query = (answers >= 0).nonzero().squeeze(1)
    return query[None], answers[query][None]


def _everything(benchmark: Benchmark, way: int, generator: torch.Generator) -> Questions:
    """Observe the novel classes' whole training split, ask about their test split."""
    train, test = benchmark.novel_train, benchmark.novel
    if train is None:
        cure = "give a number" if benchmark.facts.generated else "fetch the whole set, or give a number"
        name = benchmark.facts.name
        raise InputError(f"--observations all: there are no training images of {name}'s novel classes; {cure}.")
    if way != test.n_classes or train.class_names != test.class_names:
        raise InputError(
            f"--observations all uses all {test.n_classes} novel classes: leave --way out, and have the same classes "
            "in the training and the test split."
        )
    images = torch.cat([train.images, test.images])
    places = torch.arange(len(images), device=images.device)
    bag, groups = _shuffled(places[None, : len(train)].cpu(), train.labels[None].cpu(), generator)
    bag, groups = bag.to(images.device), groups.to(images.device)
    return Questions(images, way, bag, groups, places[None, len(train) :], test.labels[None])
