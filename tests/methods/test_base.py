"""Presets, plans, and under what a training is found again."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from small_sets import KNOWN, NOVEL, patterns

from medi.data.benchmarks import Benchmark
from medi.data.facts import BENCHMARKS
from medi.methods import Method, Plan
from medi.methods.embedding import GroupingConfig
from medi.methods.medi import Medi, Member
from medi.methods.mm import MM
from medi.methods.mp import MP
from medi.methods.pretraining import Pretraining
from medi.methods.readout import Readout
from medi.nn.context import Context
from medi.nn.schedule import Schedule

SMALL = MP(network="mlp", queries=4, schedule=Schedule(steps=2))


BENCHMARK = Benchmark(BENCHMARKS["omniglot"], patterns(), patterns())


def test_a_plan_has_what_the_benchmark_says():
    plan, facts = Plan.of(BENCHMARK, observations=5), BENCHMARK.facts
    assert (plan.way, plan.observations) == (facts.way, 5)
    assert plan.augmentation == facts.augmentation
    assert plan.observed is None
    assert Plan.of(BENCHMARK, observations=1, way=7).way == 7


def test_a_plan_for_everything_sees_the_training_split_alone():
    train = patterns(each=3)
    plan = Plan.of(replace(BENCHMARK, novel_train=train), observations="all", way=7)
    assert plan.way == BENCHMARK.facts.way
    assert plan.observed is train.images
    assert Plan.of(BENCHMARK, observations="all").observed is None


def kept(folder: Path, title: str = "") -> int:
    return len(list(folder.glob(f"{title}*.safetensors")))


@dataclass(frozen=True)
class Mine(MP):
    pass


@dataclass(frozen=True)
class Newer(MP):
    version: ClassVar[int] = MP.version + 1


@pytest.mark.parametrize("other", [Mine, Newer])
def test_methods_of_equal_settings_but_another_name_or_version_share_no_training(other, tmp_path, monkeypatch):
    plan = Plan(3, 2, context=Context(folder=tmp_path))
    learnt = SMALL.fit(KNOWN, plan).encode(NOVEL.images)
    same = other(**{name: getattr(SMALL, name) for name in asdict(SMALL)})
    assert SMALL.identity(KNOWN, plan) != same.identity(KNOWN, plan)
    monkeypatch.setattr("medi.methods.mp.task_loss", lambda network, *_, **__: lambda _: _penalty(network))
    assert torch.equal(SMALL.fit(KNOWN, plan).encode(NOVEL.images), learnt), "found again"
    assert not torch.allclose(same.fit(KNOWN, plan).encode(NOVEL.images), learnt, atol=1e-3)
    assert kept(tmp_path) == 2


def _penalty(network: torch.nn.Module) -> torch.Tensor:
    return sum(parameter.square().sum() for parameter in network.parameters())


CLASSES = Pretraining(network="mlp", batch=16, schedule=Schedule(steps=2))


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        (SMALL, [{"grouping": GroupingConfig(unit=True)}]),
        (Medi((Member((CLASSES,), "none"),)), [{"readout": Readout(whiten=0.1)}, {"grouping": GroupingConfig()}]),
        (
            MM(network="mlp", tasks=2, schedule=Schedule(steps=1)),
            [{"readout": "cluster"}, {"grouping": GroupingConfig()}],
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_settings_that_matter_at_discovery_alone_share_the_training(method: Method, changes, tmp_path):
    plan = Plan(3, 2, queries=4, context=Context(folder=tmp_path))
    for one in (method, *(replace(method, **change) for change in changes)):
        one.fit(KNOWN, plan)
    assert kept(tmp_path) == 1
    one.fit(KNOWN, replace(plan, context=replace(plan.context, seed=1)))
    assert kept(tmp_path) == 2
