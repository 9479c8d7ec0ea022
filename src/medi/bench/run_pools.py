"""The rows of runs that score the engine of `medi discover` on a benchmark's pools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

import torch

from medi.bench.grid import GIVEN, ONLY_NOVEL, Run, config_of
from medi.bench.pools import PoolDraw, Pools, chance_of, draw_pools, score_pools
from medi.bench.rows import no_scores
from medi.bench.setup import Setup
from medi.core.workplace import Workplace
from medi.data.benchmarks import Benchmark
from medi.data.items import Items
from medi.discover.config import DiscoveryConfig
from medi.discover.learning import Learnt, learn
from medi.methods.base import Learner, Method, Plan
from medi.methods.teacher import MethodTeacher, as_image_set, as_items, sized_by_plan, task_size
from medi.nn.context import Context
from medi.nn.devices import choose_device
from medi.nn.loop import Diverged
from medi.registry import PLAIN


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
