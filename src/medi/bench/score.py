"""Scoring a learner on novel classes, by the regimes of the protocol."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medi.bench.grid import ALL, REGIMES, SCORES
from medi.bench.questions import Asked, Questions, draw_tasks
from medi.data.benchmarks import Benchmark
from medi.errors import unknown_name
from medi.methods.base import Learner
from medi.metrics import score_episodes
from medi.runtime.progress import Reporter, Silent

EPISODES = 600
"""Scoring episodes, where none are asked for."""
CHUNK_NUMBERS = 32_000_000
"""Feature numbers looked at together: bounds memory (128 MB) whatever the number of episodes."""


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
    if score not in SCORES:
        raise unknown_name("score", score, SCORES)
    everything = observations == ALL
    way = (benchmark.facts.novel if everything else benchmark.facts.way) if way is None else way
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
