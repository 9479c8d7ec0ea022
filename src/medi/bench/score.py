"""Scoring a learner on novel classes, by the regimes of the protocol."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medi.bench.grid import ALL, BALANCES, REGIMES, SCORES, SIZES
from medi.bench.questions import Asked, Questions, draw_tasks
from medi.data.benchmarks import Benchmark
from medi.errors import InputError, unknown_name
from medi.methods.base import Assignment, Learner
from medi.metrics import calibration_error, rightly_assigned, score_episodes
from medi.runtime.progress import Reporter, Silent

EPISODES = 600
"""Scoring episodes, where none are asked for."""
CHUNK_NUMBERS = 32_000_000
"""Feature numbers looked at together: bounds memory (128 MB) whatever the number of episodes."""


@dataclass(frozen=True)
class Score:
    """Mean scores over episodes, as fractions, and half the width of ACC's 95 % interval (None for one episode).

    Attributes:
        confidence: Mean confidence that the method states for its answers.
        ece: Its expected calibration error, over all items that were asked about.
        acc_observed: ACC on the observations themselves, before queries are seen; None for the oracle, which was told.
        filled: Share of clusters that have any observation: it shows a collapse without labels. None for the oracle.
    """

    acc: float
    nmi: float
    ari: float
    acc_ci95: float | None
    confidence: float
    ece: float
    acc_observed: float | None
    filled: float | None
    episodes: int


@dataclass(frozen=True)
class Answers:
    """What a learner said in one regime to one batch of questions.

    Attributes:
        questions: The batch.
        labels: (episodes, m) clusters of the queries.
        confidence: (episodes, m) how sure it was.
        observed: (episodes, items) clusters of the bags; None for the oracle, which was told.
    """

    questions: Questions
    labels: Tensor
    confidence: Tensor
    observed: Tensor | None


def evaluate(
    learner: Learner,
    benchmark: Benchmark,
    observations: int | str = 5,
    *,
    way: int | None = None,
    regimes: Sequence[str] = ("honest",),
    score: str = "episode",
    balance: str = "preset",
    sizes: str = "equal",
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
        balance: Whether the learner is told that classes are equally large: on, off, or preset, as its settings say.
        sizes: Whether they are: equal or unequal.
        seed: Of the draws.
        episodes: How many, where it is scored by episodes.
        reporter: Shows progress; on the terminal where there is none.

    Returns:
        Scores by regime.
    """
    chosen = (("score", score, SCORES), ("balance", balance, BALANCES), ("sizes", sizes, SIZES))
    for kind, value, allowed in (*chosen, *(("regime", regime, REGIMES) for regime in regimes)):
        if value not in allowed:
            raise unknown_name(kind, value, allowed)
    everything = observations == ALL
    told = balance == "on" or (balance == "preset" and learner.balanced)
    if balance == "on" and (everything or sizes == "unequal"):
        raise InputError("balance='on' says that classes are equally large, and they are not: leave it out.")
    way = (benchmark.facts.novel if everything else benchmark.facts.way) if way is None else way
    asked = Asked(way, observations, "pooled" if everything else score, seed, sizes)
    tasks = draw_tasks(benchmark, asked, episodes)
    balanced = told and not everything and sizes == "equal"
    return answer_tasks(learner, tasks, regimes, balance=balanced, seed=seed, reporter=reporter or Reporter())


def answer_tasks(
    learner: Learner,
    tasks: Sequence[Questions],
    regimes: Sequence[str],
    *,
    balance: bool,
    seed: int,
    reporter: Reporter,
) -> dict[str, Score]:
    """Mean scores by regime, over batches of questions that are all about one pool of images."""
    encoded = learner.encode(tasks[0].images)
    answers: dict[str, list[Answers]] = {regime: [] for regime in regimes}
    with (reporter if len(tasks) > 1 else Silent()).track("tasks", len(tasks)) as tick:
        for number, questions in enumerate(tasks, 1):
            of_batch = reporter if len(tasks) == 1 else Silent()
            found = ask(learner, encoded, questions, regimes, balance=balance, seed=seed, reporter=of_batch)
            for regime in regimes:
                answers[regime].append(found[regime])
            tick(number)
    return {regime: summarise(said) for regime, said in answers.items()}


def ask(
    learner: Learner,
    encoded: Tensor,
    questions: Questions,
    regimes: Collection[str],
    *,
    balance: bool,
    seed: int,
    reporter: Reporter,
) -> dict[str, Answers]:
    """Ask a learner every question under some regimes; honest and transductive start from the same clustering.

    Args:
        learner: What was trained on the known classes.
        encoded: `learner.encode(questions.images)`.
        questions: The episodes.
        regimes: Of `medi.bench.grid.REGIMES`.
        balance: Whether it is told that classes have equally many observations, and queries where they do.
        seed: Start of the clustering's random draws.
        reporter: Shows progress.
    """
    episodes, items = questions.bag.shape
    size = (items + questions.query.shape[1]) * max(1, encoded[0].numel())
    chunk = max(1, CHUNK_NUMBERS // size)
    generator = torch.Generator(encoded.device).manual_seed(seed)
    answers: dict[str, list[Assignment]] = {regime: [] for regime in regimes}
    observed: list[Tensor] = []
    with reporter.track("scoring", episodes) as tick:
        for start in range(0, episodes, chunk):
            part = slice(start, start + chunk)
            bag, query = questions.bag[part], questions.query[part]
            if answers.keys() - {"grouped"}:
                clustering = learner.discover(encoded, bag, questions.way, generator, equal_sizes=balance)
                observed.append(clustering.labels.cpu())
            if "honest" in answers:
                answers["honest"].append(clustering.assign(encoded, query))
            if "transductive" in answers:
                equal = balance and questions.equal_sizes
                answers["transductive"].append(clustering.refine(encoded, query, equal_sizes=equal))
            if "grouped" in answers:
                oracle = learner.oracle(encoded, bag, questions.groups[part], questions.way)
                answers["grouped"].append(oracle.assign(encoded, query))
            tick(min(start + chunk, episodes))
    return {
        regime: Answers(
            questions,
            torch.cat([part.labels.cpu() for part in parts]),
            torch.cat([part.confidence.float().cpu() for part in parts]),
            None if regime == "grouped" else torch.cat(observed),
        )
        for regime, parts in answers.items()
    }


def summarise(said: Sequence[Answers]) -> Score:
    """Scores of the answers to one batch of questions, or their mean over batches of different sizes.

    ACC's interval is over episodes, or over batches where there are several. Calibration is over all items.
    """
    scores = [score_episodes(one.questions.labels.cpu(), one.labels) for one in said]
    right = [rightly_assigned(one.questions.labels.cpu(), one.labels).ravel() for one in said]
    confidence = np.concatenate([one.confidence.numpy().ravel() for one in said]).clip(0, 1)
    means = {name: [float(getattr(one, name).mean()) for one in scores] for name in ("acc", "nmi", "ari")}
    of_bags = [
        float(score_episodes(one.questions.groups.cpu(), one.observed).acc.mean())
        for one in said
        if one.observed is not None
    ]
    filled = [
        fmean(len(bag.unique()) / one.questions.way for bag in one.observed) for one in said if one.observed is not None
    ]
    spread = scores[0].acc if len(said) == 1 else np.array(means["acc"])
    return Score(
        acc=fmean(means["acc"]),
        nmi=fmean(means["nmi"]),
        ari=fmean(means["ari"]),
        acc_ci95=half_width(spread) if len(spread) > 1 else None,
        confidence=float(confidence.mean(dtype=np.float64)),
        ece=calibration_error(confidence, np.concatenate(right)),
        acc_observed=fmean(of_bags) if of_bags else None,
        filled=fmean(filled) if filled else None,
        episodes=sum(len(one.labels) for one in said),
    )


def half_width(values: NDArray[np.float64]) -> float:
    """Half the width of the 95 % interval of a mean."""
    return float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))
