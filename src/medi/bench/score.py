"""Scoring a learner on novel classes, by the regimes of the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medi.bench.grid import ALL, BALANCES, EPISODES, REGIMES, SCORES, SIZES, Run
from medi.bench.questions import Questions, draw_tasks
from medi.core.errors import InputError, refuse_unknown
from medi.core.progress import Reporter, Silent
from medi.data.benchmarks import Benchmark
from medi.methods.base import Assignment, Learner
from medi.metrics import calibration_error, rightly_assigned, score_episodes

CHUNK_NUMBERS = 32_000_000
"""Feature numbers looked at together: bounds memory (128 MB) whatever the number of episodes."""


@dataclass(frozen=True)
class Score:
    """Mean scores over episodes, as fractions, and half the width of ACC's 95 % interval (None for one episode).

    Attributes:
        confidence: Mean confidence that the method states for its answers.
        ece: Its expected calibration error, over all items that were asked about.
        acc_observed: ACC on the observations themselves, before queries are seen; None for the oracle, which was told.
        filled: Share of clusters with at least one observation; a low share means a collapse. None for the oracle.
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

    Clusters of the queries (episodes, m), how sure it was, and clusters of the bags: None for the oracle, which was
    told.
    """

    questions: Questions
    labels: Tensor
    confidence: Tensor
    observed: Tensor | None


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How a learner is scored, in the words of `medi bench run`.

    Attributes:
        way: Novel classes in a task; None for the benchmark's own.
        score: Where ACC is computed: episode or pooled; everything observed is always pooled.
        balance: Whether the learner is told that classes are equally large: on, off, or preset, as its settings say.
        sizes: Whether they are: equal or unequal.
        seed: Of the draws.
        episodes: How many, where it is scored by episodes.
    """

    way: int | None = None
    score: str = "episode"
    balance: str = "preset"
    sizes: str = "equal"
    seed: int = 0
    episodes: int = EPISODES

    def __post_init__(self) -> None:
        refuse_unknown("score", self.score, SCORES)
        refuse_unknown("balance", self.balance, BALANCES)
        refuse_unknown("sizes", self.sizes, SIZES)


def evaluate(
    learner: Learner,
    benchmark: Benchmark,
    observations: int | str = 5,
    *,
    regimes: Sequence[str] = ("honest",),
    reporter: Reporter | None = None,
    **scoring: Any,
) -> dict[str, Score]:
    """Score a learner on the novel classes of a benchmark, as `medi bench run` does.

    Args:
        learner: What a method's `fit` returned.
        benchmark: Whose novel classes are asked about.
        observations: Unlabelled images of each novel class in a task, or "all".
        regimes: What the learner may see: honest, transductive, grouped (an oracle).
        reporter: Shows progress; on the terminal where there is none.
        scoring: Fields of `Scoring`: way, score, balance, sizes, seed, episodes.

    Returns:
        Scores by regime.

    >>> from medi.data.benchmarks import load
    >>> from medi.methods import METHODS, Plan
    >>> rules = load("rules")
    >>> learner = METHODS["kmeans"]().fit(rules.known, Plan.of(rules, observations=5))
    >>> score = evaluate(learner, rules, regimes=["honest"], episodes=20, seed=0, reporter=Silent())["honest"]
    >>> score.acc > 0.2, score.episodes
    (True, 20)
    """
    how = Scoring(**scoring)
    for regime in regimes:
        refuse_unknown("regime", regime, REGIMES)
    everything = observations == ALL
    equal = how.sizes == "equal" and not everything
    if how.balance == "on" and not equal:
        raise InputError("balance='on' says that classes are equally large, and they are not: leave it out.")
    told = how.balance == "on" or (how.balance == "preset" and learner.balanced)
    way = how.way or (benchmark.facts.novel if everything else benchmark.facts.way)
    score = "pooled" if everything else how.score
    asked = Run(  # of any method: what decides the questions
        benchmark.facts.name, "", "", None, way, observations, "", score, how.seed, sizes=how.sizes
    )
    conditions = Conditions(regimes, told and equal, how.seed)
    return answer_tasks(learner, draw_tasks(benchmark, asked, how.episodes), conditions, reporter or Reporter())


class Conditions(NamedTuple):
    """On what conditions a learner is asked: by what regimes, and from which seed.

    `balance`: it is told that classes have equally many observations, and queries where they do.
    """

    regimes: Sequence[str]
    balance: bool = False
    seed: int = 0


def answer_tasks(
    learner: Learner, tasks: Sequence[Questions], conditions: Conditions, reporter: Reporter
) -> dict[str, Score]:
    """Mean scores by regime, over batches of questions that are all about one pool of images."""
    encoded = learner.encode(tasks[0].images)
    of_tasks, of_episodes = (reporter, Silent()) if len(tasks) > 1 else (Silent(), reporter)
    said = []
    with of_tasks.track("tasks", len(tasks)) as tick:
        for number, questions in enumerate(tasks, 1):
            said.append(ask(learner, encoded, questions, conditions, of_episodes))
            tick(number)
    return {regime: summarise([answers[regime] for answers in said]) for regime in conditions.regimes}


def ask(
    learner: Learner, encoded: Tensor, questions: Questions, conditions: Conditions, reporter: Reporter
) -> dict[str, Answers]:
    """Ask a learner every question under some regimes; honest and transductive start from the same clustering.

    `encoded` is what it made of the questions' images.
    """
    episodes, items = questions.bag.shape
    size = (items + questions.query.shape[1]) * max(1, encoded[0].numel())
    chunk = max(1, CHUNK_NUMBERS // size)
    generator = torch.Generator(encoded.device).manual_seed(conditions.seed)
    answers: dict[str, list[Assignment]] = {regime: [] for regime in conditions.regimes}
    observed: list[Tensor] = []
    with reporter.track("scoring", episodes) as tick:
        for start in range(0, episodes, chunk):
            part = slice(start, start + chunk)
            bag, query = questions.bag[part], questions.query[part]
            if answers.keys() - {"grouped"}:
                clustering = learner.discover(encoded, bag, questions.way, generator, equal_sizes=conditions.balance)
                observed.append(clustering.labels.cpu())
            if "honest" in answers:
                answers["honest"].append(clustering.assign(encoded, query))
            if "transductive" in answers:
                equal = conditions.balance and questions.equal_sizes
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
    observed = [(one.questions, one.observed) for one in said if one.observed is not None]
    of_bags = [float(score_episodes(asked.groups.cpu(), bags).acc.mean()) for asked, bags in observed]
    filled = [fmean(len(bag.unique()) / asked.way for bag in bags) for asked, bags in observed]
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
