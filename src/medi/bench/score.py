"""Scoring a learner on novel classes, by the regimes and scoring sets of the protocol.

Draws depend on the seed, the dataset and the setting alone, so that every method and regime answers the same
questions.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medi.bench.grid import ALL, REGIMES, Run
from medi.data.benchmarks import Benchmark
from medi.data.facts import QUERIES
from medi.errors import InputError, unknown_name
from medi.methods.base import Learner
from medi.metrics import chance, score_episodes
from medi.runtime.progress import Reporter, Silent
from medi.tasks.episodes import Task, UniformSampler

EPISODES = 600
"""Scoring episodes, where none are asked for."""
CHUNK_NUMBERS = 32_000_000
"""Feature numbers looked at together: bounds memory (128 MB) whatever the number of episodes."""


class Asked(NamedTuple):
    """What decides which questions are drawn; a `Run` has all of it.

    Attributes:
        way: Novel classes in a task.
        observations: Unlabelled images of each, or `ALL`.
        score: Of `medi.bench.grid.SCORES`.
        seed: Of the draws.
    """

    way: int
    observations: int | str
    score: str
    seed: int


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
    """Mean scores over episodes, as fractions, and half the width of ACC's 95 % interval (None for one episode).

    `acc_observed` is the ACC on the observations themselves, `filled` the share of clusters that have any of them: it
    shows a collapse without labels. Both are from before queries are seen, and None for the oracle, which was told.
    """

    acc: float
    nmi: float
    ari: float
    acc_ci95: float | None
    acc_observed: float | None
    filled: float | None
    episodes: int


def evaluate(
    learner: Learner,
    benchmark: Benchmark,
    observations: int | str = 5,
    *,
    way: int | None = None,
    regimes: Sequence[str] = ("honest",),
    score: str = "episode",
    seed: int = 0,
    episodes: int = EPISODES,
    reporter: Reporter | None = None,
) -> dict[str, Score]:
    """Score a learner on the novel classes of a benchmark, as `medi bench run` does.

    Args:
        learner: What a method's `fit` returned.
        benchmark: Whose novel classes are asked about.
        observations: Unlabelled images of each novel class in a task, or "all".
        way: Novel classes in a task; None for the benchmark's own.
        regimes: What the learner may see: honest, transductive, grouped (an oracle).
        score: Where ACC is computed: episode or pooled; everything observed is always pooled.
        seed: Of the draws.
        episodes: How many, where it is scored by episodes.
        reporter: Shows progress; on the terminal where there is none.

    Returns:
        Scores by regime.
    """
    everything = observations == ALL
    way = way or (benchmark.facts.novel if everything else benchmark.facts.way)
    asked = Asked(way, observations, "pooled" if everything else score, seed)
    for regime in regimes:
        if regime not in REGIMES:
            raise unknown_name("regime", regime, REGIMES)
    tasks = draw_tasks(benchmark, asked, episodes)
    return answer_tasks(learner, tasks, regimes, seed=seed, reporter=reporter or Reporter())


def answer_tasks(
    learner: Learner, tasks: Sequence[Questions], regimes: Sequence[str], *, seed: int, reporter: Reporter
) -> dict[str, Score]:
    """Mean scores by regime, over tasks that are all about one pool of images."""
    encoded = learner.encode(tasks[0].images)
    scores = []
    with (reporter if len(tasks) > 1 else Silent()).track("tasks", len(tasks)) as tick:
        for questions in tasks:
            scores.append(score_regimes(learner, encoded, questions, regimes, seed=seed, reporter=reporter))
            tick(len(scores))
    return {regime: mean_score([of_task[regime] for of_task in scores]) for regime in regimes}


def draw_tasks(benchmark: Benchmark, run: Run | Asked, episodes: int) -> list[Questions]:
    """What a run asks: one batch of questions, or one for each family of classes where those are observed whole."""
    if run.observations == ALL and benchmark.facts.families and benchmark.novel_train is None:
        return _families(benchmark, run)
    return [draw_questions(benchmark, run, episodes)]


def draw_questions(benchmark: Benchmark, run: Run | Asked, episodes: int) -> Questions:
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
    query, answers = (task.query.flatten(1), task.query_labels) if run.score == "episode" else _all_others(task, labels)
    bag, groups = _shuffled(task.support.flatten(1), task.support_labels, generator)
    query, answers = _shuffled(query, answers, generator)
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


def families(class_names: Sequence[str]) -> list[list[int]]:
    """The classes of each family, by what their names have before the stroke."""
    members: dict[str, list[int]] = {}
    for number, name in enumerate(class_names):
        members.setdefault(name.partition("/")[0], []).append(number)
    return list(members.values())


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
    observed: list[Tensor] = []
    with reporter.track("scoring", episodes) as tick:
        for start in range(0, episodes, chunk):
            part = slice(start, start + chunk)
            bag, query = questions.bag[part], questions.query[part]
            if answers.keys() - {"grouped"}:
                clustering = learner.discover(encoded, bag, questions.way, generator)
                observed.append(clustering.labels.cpu())
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
    return {
        regime: _summarise(questions, torch.cat(parts), None if regime == "grouped" else torch.cat(observed))
        for regime, parts in answers.items()
    }


def mean_score(scores: Sequence[Score]) -> Score:
    """The mean over tasks of different sizes, and how much they differ; a single task's own score."""
    if len(scores) == 1:
        return scores[0]
    observed = [score.acc_observed for score in scores if score.acc_observed is not None]
    filled = [score.filled for score in scores if score.filled is not None]
    return Score(
        acc=fmean(score.acc for score in scores),
        nmi=fmean(score.nmi for score in scores),
        ari=fmean(score.ari for score in scores),
        acc_ci95=half_width(np.array([score.acc for score in scores])),
        acc_observed=fmean(observed) if observed else None,
        filled=fmean(filled) if filled else None,
        episodes=sum(score.episodes for score in scores),
    )


def _summarise(questions: Questions, answers: Tensor, observed: Tensor | None) -> Score:
    """Mean scores of answers (episodes, m) and of the clusters (episodes, items) of the bags."""
    scores = score_episodes(questions.labels.cpu().numpy(), answers.numpy())
    episodes = len(answers)
    of_bags = None if observed is None else score_episodes(questions.groups.cpu().numpy(), observed.numpy())
    return Score(
        acc=float(scores.acc.mean()),
        nmi=float(scores.nmi.mean()),
        ari=float(scores.ari.mean()),
        acc_ci95=half_width(scores.acc) if episodes > 1 else None,
        acc_observed=None if of_bags is None else float(of_bags.acc.mean()),
        filled=None if observed is None else fmean(len(bag.unique()) / questions.way for bag in observed),
        episodes=episodes,
    )


def half_width(values: NDArray[np.float64]) -> float:
    """Half the width of the 95 % interval of a mean."""
    return float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


def _generator(benchmark: Benchmark, run: Run | Asked) -> torch.Generator:
    # Drawn on the CPU, so that a seed means the same questions on every device.
    stream = zlib.crc32(f"{benchmark.facts.name}/{run.way}/{run.observations}/{run.score}".encode())
    return torch.Generator().manual_seed(run.seed * 1_000_003 + stream)


def _shuffled(items: Tensor, classes: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Items (episodes, n) in random order: how a sampler lays them out must not tell the classes."""
    order = torch.rand(items.shape, generator=generator).argsort(1)
    return items.gather(1, order), classes.gather(1, order)


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
    _check_every_class(way, test.n_classes)
    if train.class_names != test.class_names:
        raise InputError("--observations all: have the same classes in the training and the test split.")
    images = torch.cat([train.images, test.images])
    places = torch.arange(len(images), device=images.device)
    bag, groups = _shuffled(places[None, : len(train)].cpu(), train.labels[None].cpu(), generator)
    query, answers = _shuffled(places[None, len(train) :].cpu(), test.labels[None].cpu(), generator)
    bag, groups, query, answers = (part.to(images.device) for part in (bag, groups, query, answers))
    return Questions(images, way, bag, groups, query, answers)


def _check_every_class(way: int, there: int) -> None:
    if way != there:
        raise InputError(
            f"--observations all is about all novel classes, {there} here, not {way}: "
            "leave --way out, and have the whole set."
        )


def _families(benchmark: Benchmark, run: Run | Asked) -> list[Questions]:
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
