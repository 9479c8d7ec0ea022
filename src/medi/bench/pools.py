"""Scoring what people use: pools of a benchmark go the road of `medi discover`, number, known classes and all.

A pool holds a few images of some novel classes; a mixed one also holds images of known classes that nobody learnt
from, and one-offs. Every statement of the engine is scored: groups, number, names, lines, and further images one by
one, as `medi assign` would recognise them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from time import monotonic
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from medi.bench.grid import GIVEN, MIXED, ONLY_NOVEL, Run, config_of
from medi.bench.rows import no_scores
from medi.bench.score import half_width
from medi.bench.setup import Setup
from medi.core.arrays import Ints
from medi.core.errors import InputError
from medi.core.progress import Reporter, Silent
from medi.core.workplace import Workplace
from medi.data.benchmarks import Benchmark
from medi.data.facts import QUERIES
from medi.data.items import Items
from medi.discover.config import DiscoveryConfig
from medi.discover.learning import Learnt, learn
from medi.discover.pipeline import GroupedPool, group_pool
from medi.grouping.engine import ALONE, known_label
from medi.grouping.lines import right_lines
from medi.methods.base import Learner, Method, Plan
from medi.methods.teacher import MethodTeacher, as_image_set, as_items, sized_by_plan, task_size
from medi.metrics import ari, calibration_error, chance, nmi
from medi.nn.context import Context
from medi.nn.devices import choose_device
from medi.nn.loop import Diverged
from medi.registry import PLAIN

NEAR = 0.2
"""A number of groups is near the true one if it is off by no more than this share."""
KEPT_FOR_POOLS = 4
"""One in so many images of a known class, at most, is kept for mixed pools and never learnt from."""


@dataclass(frozen=True)
class Pools:
    """What pools are drawn from: what is learnt from, further images of the same classes, and those of novel ones."""

    known: Items
    kept: Items
    novel: Items

    @classmethod
    def of(cls, known: Items, novel: Items, observations: int, seed: int) -> Pools:
        """Keep so many images of each known class back, fewer where it has few."""
        generator, back = np.random.default_rng(seed), np.zeros(len(known), bool)
        for label in range(known.n_classes):
            members = generator.permutation(np.flatnonzero(known.labels == label))
            back[members[: min(2 * observations, len(members) // KEPT_FOR_POOLS)]] = True
        return cls(known.where(~back), known.where(back), novel)


@dataclass(frozen=True)
class PoolDraw:
    """One pool (n, …) and further images (m, …) of the novel classes, with their classes.

    Truth is a class from 0 on, `known_label` of known ones, `ALONE` for one-offs.
    """

    pool: NDArray[Any]
    truth: Ints
    query: NDArray[Any]
    labels: Ints


def draw_pools(pools: Pools, run: Run, count: int) -> Iterator[PoolDraw]:
    """The pools of a run: its seed, dataset and setting alone decide them, so every method gets the same."""
    stream = zlib.crc32(f"{run.dataset}/{run.way}/{run.observations}/{run.sizes}".encode())
    generator = np.random.default_rng([run.seed, stream])
    novel, each = pools.novel, int(run.observations)
    if run.way > novel.n_classes:
        raise InputError(f"--way {run.way}: {run.dataset} has {novel.n_classes} novel classes; ask for fewer.")
    for _ in range(count):
        classes = generator.permutation(novel.n_classes)
        chosen, others = classes[: run.way].tolist(), classes[run.way : 2 * run.way].tolist()
        sizes = generator.integers(1, 2 * each + 1, run.way) if run.sizes == "unequal" else np.full(run.way, each)
        drawn = [generator.permutation(np.flatnonzero(novel.labels == c)) for c in chosen]
        parts = [novel.values[some[:size]] for some, size in zip(drawn, sizes, strict=True)]
        truth = [np.full(len(part), number) for number, part in enumerate(parts)]
        further = [some[size : size + QUERIES] for some, size in zip(drawn, sizes, strict=True)]
        if run.pool == MIXED:
            for c in generator.permutation(pools.kept.n_classes)[: run.way].tolist():
                some = generator.permutation(np.flatnonzero(pools.kept.labels == c))[:each]
                parts.append(pools.kept.values[some])
                truth.append(np.full(len(some), known_label(c)))
            alone = [generator.choice(np.flatnonzero(novel.labels == c)) for c in others]
            parts.append(novel.values[np.array(alone, np.int64)])
            truth.append(np.full(len(alone), ALONE))
        order = generator.permutation(sum(map(len, truth)))
        labels = np.repeat(np.arange(run.way), [len(some) for some in further])
        yield PoolDraw(
            np.concatenate(parts)[order], np.concatenate(truth)[order], novel.values[np.concatenate(further)], labels
        )


def score_pools(
    learnt: Learnt, draws: Sequence[PoolDraw], config: DiscoveryConfig, reporter: Reporter
) -> dict[str, float | None]:
    """Discover in every pool, recognise the further images, and score what was said, as the fields of a row.

    The row's schema says what each of them is; those of kinds of items that were in no pool are left out.
    """
    scored, learnt = [], replace(learnt, work=replace(learnt.work, reporter=Silent()))
    with reporter.track("pools", len(draws)) as tick:
        for number, draw in enumerate(draws, 1):
            scored.append(_scored(group_pool(learnt, draw.pool, config), draw))
            tick(number)
    return _means(scored, told=config.classes != "auto")


def chance_of(draws: Sequence[PoolDraw]) -> float:
    """ACC of random groups, as many as there are classes, on the further images."""
    return fmean(chance(np.bincount(draw.labels).tolist(), int(draw.labels.max()) + 1) for draw in draws)


@dataclass(frozen=True)
class _Scored:
    """What was said of one pool, item by item."""

    truth: Ints
    labels: Ints
    right: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    asked: Ints
    recognised: Ints
    sure: NDArray[np.float64]
    number: tuple[int, int, int]


def _scored(found: GroupedPool, draw: PoolDraw) -> _Scored:
    names = {name: known_label(c) for c, name in enumerate(found.recogniser.names)}
    guesses = found.recogniser.recognise(draw.query)
    recognised = [int(one.label) if one.kind == "novel" else names.get(one.label, ALONE) for one in guesses]
    return _Scored(
        truth=draw.truth,
        labels=found.labels,
        right=right_lines(draw.truth, found.labels),
        confidence=found.confidence,
        asked=draw.labels,
        recognised=np.array(recognised, np.int64),
        sure=np.array([one.confidence for one in guesses]),
        number=(found.count.k, found.count.low, found.count.high),
    )


def _means(scored: Sequence[_Scored], *, told: bool) -> dict[str, float | None]:
    truth, labels, right, confidence = (
        np.concatenate([getattr(one, name) for one in scored]) for name in ("truth", "labels", "right", "confidence")
    )
    answers = [right_lines(one.asked, one.recognised) for one in scored]
    accs = np.array([float(one.mean()) for one in answers])
    sure = np.concatenate([one.sure for one in scored])
    true = [int(one.asked.max()) + 1 for one in scored]
    k, low, high = np.array([one.number for one in scored]).T
    novel, known, alone = truth >= 0, truth <= known_label(0), truth == ALONE

    def share(what: NDArray[np.bool_], where: NDArray[np.bool_]) -> float | None:
        return float(what[where].mean()) if where.any() else None

    found: dict[str, float | None] = {
        "acc": float(accs.mean()),
        "nmi": fmean(nmi(one.asked, one.recognised) for one in scored),
        "ari": fmean(ari(one.asked, one.recognised) for one in scored),
        "acc_ci95": half_width(accs) if len(accs) > 1 else None,
        "confidence": float(sure.mean()),
        "ece": calibration_error(sure, np.concatenate(answers)),
        "acc_observed": float(right.mean()),
        "line_confidence": float(confidence.mean()),
        "line_ece": calibration_error(confidence, right),
        "number": float(k.mean()),
        "number_near": None if told else float((np.abs(k - true) <= NEAR * np.array(true)).mean()),
        "interval_holds": None if told else float(((low <= true) & (true <= high)).mean()),
        "novel_right": float(right[novel].mean()),
        "novel_called_known": share(labels <= known_label(0), novel) if known.any() else None,
        "known_named": share(right, known),
        "alone_right": share(right, alone),
        "episodes": len(scored),
    }
    return {name: value for name, value in found.items() if value is not None or name == "acc_ci95"}


class RunTeacher(MethodTeacher):
    """A method with the settings of a run, trained as every run of it is."""

    def __init__(self, run: Run, benchmark: Benchmark) -> None:
        super().__init__(run.method, "conv4", None, run.sampler or "uniform", benchmark.facts.augmentation)
        self.run, self.benchmark = run, benchmark

    def configured(self, device: torch.device, *, vectors: bool) -> Method:
        """The run's settings; vectors have settings of their own, as in every discovery."""
        if vectors:
            return super().configured(device, vectors=True)
        method: Method = config_of(self.run)
        return method

    def _teach(self, known: Items, way: int, work: Workplace) -> Learner:
        if known.values.ndim == 2:
            return super()._teach(known, way, work)
        context = Context(choose_device(work.device), work.seed, work.folder, work.reporter)
        way = min(self.run.way, known.n_classes)
        plan = Plan.of(self.benchmark, self.run.observations, way=way, sampler=self.sampler, context=context)
        method = self.configured(context.device, vectors=False)
        if int(known.counts().min()) < plan.observations + plan.queries:  # some are kept for pools, or held out
            known, observations, queries = task_size(known)
            plan = replace(plan, observations=min(observations, plan.observations), queries=queries)
            method = sized_by_plan(method)
        return method.fit(as_image_set(known).to(context.device), plan)


def first_pool(run: Run, benchmark: Benchmark) -> PoolDraw:
    """A pool of a run; what its dataset cannot give is an error."""
    return next(draw_pools(pools_of(run, benchmark), run, 1))


def pools_of(run: Run, benchmark: Benchmark) -> Pools:
    """What the pools of a run are drawn from."""
    known, novel = as_items(benchmark.known), as_items(benchmark.novel)
    return Pools.of(known, novel, int(run.observations), run.seed)


def score_on_pools(runs: Sequence[Run], benchmark: Benchmark, setup: Setup) -> Iterator[tuple[Run, dict[str, Any]]]:
    """The scores of runs that share what they learn; where training diverges, they say so, and a grid goes on."""
    first = runs[0]
    pools = pools_of(first, benchmark)
    work = Workplace(str(setup.device), first.seed, setup.models, setup.reporter)
    learnt: Learnt | Diverged | None = None
    learning = 0.0
    for run in runs:
        config = DiscoveryConfig(
            classes=run.way if run.classes == GIVEN else "auto",
            method=run.method,
            augmentation=benchmark.facts.augmentation,
            features="features",
            only_novel=run.pool == ONLY_NOVEL,
            grouping=run.grouping,
        )
        draws = list(draw_pools(pools, run, setup.episodes))
        start = monotonic()
        if learnt is None:
            teacher = None if run.method == PLAIN else RunTeacher(run, benchmark)
            try:
                learnt = learn(pools.known, draws[0].pool, config, work, teacher)
            except Diverged as error:
                learnt = error
            learning = monotonic() - start
            start = monotonic()
        network = getattr(config_of(run), "network", None)
        asked = {"chance": chance_of(draws), "episodes": len(draws), "network": network}
        try:
            if isinstance(learnt, Diverged):
                raise learnt
            scores = score_pools(learnt, draws, config, setup.reporter) | {"compared_by": learnt.choice.representation}
        except Diverged as error:
            scores = no_scores(error)
        yield run, asked | scores | {"seconds": round(learning + monotonic() - start, 3)}
