"""Presets, plans, and under what a training is found again."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from small_sets import KNOWN, NOVEL, bags, generator, patterns

from medi.data.benchmarks import Benchmark
from medi.data.facts import BENCHMARKS
from medi.errors import InputError
from medi.methods import METHODS, Method, Plan
from medi.methods.bag_training import Stage
from medi.methods.embedding import Grouping
from medi.methods.kcl import KCL
from medi.methods.kmeans import KMeans
from medi.methods.medi import Medi, Member
from medi.methods.mm import MM
from medi.methods.mp import MP
from medi.methods.pair_losses import likelihood_loss
from medi.methods.pretraining import Pretraining
from medi.methods.readout import Readout
from medi.methods.rs import RS
from medi.methods.similarity import PairLoss, Similarity
from medi.runtime.context import Context
from medi.train.schedule import Schedule

SMALL = MP(network="mlp", queries=4, schedule=Schedule(steps=2))


@pytest.mark.parametrize(
    ("method", "dataset", "everything", "preset"),
    [
        (RS, "svhn", False, "svhn"),
        (RS, "svhn", True, "full-svhn"),
        (RS, "cifar10", True, "full"),
        (RS, "omniglot", True, "omniglot"),
        (RS, "glyphs", True, "cpu"),
        (Medi, "glyphs", False, "glyphs"),
        (Medi, "rules", False, "cpu"),
        (Medi, "folder:photos", False, "default"),
        (KMeans, "glyphs", False, "cpu"),
        (MP, None, True, "default"),
    ],
)
def test_default_is_the_preset_of_the_dataset(method, dataset, everything, preset):
    assert method.preset("default", dataset, everything=everything) is method.presets[preset]


def test_the_published_recipe_may_differ_from_dataset_to_dataset():
    assert RS.preset("full", "svhn") is RS.presets["full-svhn"]
    assert RS.preset("full", "cifar10") is RS.presets["full"]
    assert RS.preset("svhn", "cifar10") is RS.presets["svhn"]


def test_presets_are_few_and_can_be_written_down():
    for method in METHODS.values():
        assert len(method.presets) < 10
        for preset in method.presets.values():
            assert type(preset) is method
            assert json.loads(json.dumps(asdict(preset)))


def test_unknown_presets_suggest_the_nearest_and_unknown_settings_are_refused():
    with pytest.raises(InputError, match=r"unknown config of mp 'papre'.*did you mean 'paper'"):
        MP.preset("papre")
    with pytest.raises(TypeError):
        MP(netwrk="conv4")


def test_a_method_is_named_like_its_class_and_without_presets_its_fields_are_all_of_them():
    assert (Mine.name, MyPairs.name) == ("mine", "mypairs")
    plain = type("Plain", (KMeans,), {"presets": {}})
    assert plain.preset("default") == plain.preset("default", "glyphs") == plain.preset("cpu") == plain()
    with pytest.raises(InputError, match="unknown config of plain 'full'"):
        plain.preset("full")


BENCHMARK = Benchmark(BENCHMARKS["omniglot"], patterns(), patterns())


def test_a_plan_has_what_the_benchmark_says():
    plan, facts = Plan.of(BENCHMARK, observations=5), BENCHMARK.facts
    assert (plan.way, plan.observations) == (facts.way, 5)
    assert plan.augmentation == facts.augmentation
    assert plan.observed is None
    assert Plan.of(BENCHMARK, observations=1, way=7).way == 7


def test_views_are_found_by_a_small_network_where_the_set_or_the_device_is_small():
    def network(dataset: str, device: str) -> str:
        plan = Plan.of(replace(BENCHMARK, facts=BENCHMARKS[dataset]), context=Context(torch.device(device)))
        return plan.views.network

    assert network("omniglot", "cpu") == network("glyphs", "cuda") == network("rules", "cpu") == "conv4"
    assert network("omniglot", "cuda") == "resnet18"


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


@dataclass(frozen=True)
class MyPairs(KCL):
    loss: ClassVar[PairLoss] = staticmethod(likelihood_loss)


def test_methods_of_equal_settings_share_what_comes_before_but_no_training_on_a_bag(tmp_path, monkeypatch):
    monkeypatch.setattr("medi.methods.bag_training.KEPT_FROM_STEPS", 1)
    plan = Plan(3, 5, context=Context(folder=tmp_path))
    for method in (KCL, MyPairs):
        learner = method(Similarity("mlp", schedule=Schedule(2)), stage=Stage(epochs=2, batch=15)).fit(KNOWN, plan)
        learner.discover(NOVEL.images, bags(1)[0], 3, generator())
    assert kept(tmp_path, "similarity-") == 1
    assert kept(tmp_path) == 3


CLASSES = Pretraining(network="mlp", batch=16, schedule=Schedule(steps=2))


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        (SMALL, [{"grouping": Grouping(unit=True)}]),
        (Medi((Member((CLASSES,), "none"),)), [{"readout": Readout(whiten=0.1)}, {"grouping": Grouping()}]),
        (MM(network="mlp", tasks=2, schedule=Schedule(steps=1)), [{"readout": "cluster"}, {"grouping": Grouping()}]),
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
