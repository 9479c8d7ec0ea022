"""Learners that train on each bag: lengths, ramps, and what all four of them owe to the protocol."""

import io
import math
from contextlib import contextmanager
from dataclasses import replace
from time import sleep

import pytest
import torch
from medi.methods.dtc_config import DTCConfig
from medi.methods.pairs_config import PairConfig, Similarity
from medi.methods.rs_config import RSConfig
from rich.console import Console
from torch import nn
from vectors import KNOWN, NOVEL, bags, generator

from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods import METHODS, Plan, bag_training
from medi.methods.bag_training import AdaptingLearner, ScaledStage, Stage, ramp
from medi.methods.pretraining import Start
from medi.metrics import score_episodes
from medi.runtime.context import Context
from medi.runtime.progress import Reporter
from medi.train.schedule import Schedule

START = Start("classes", "mlp", batch=64, schedule=Schedule(steps=60, rate=1e-2))
PAIRS = PairConfig(
    Similarity("mlp", classes=6, schedule=Schedule(steps=60, rate=5e-3)),
    hidden=32,
    stage=Stage(epochs=1, batch=100, least=50, schedule=Schedule(steps=1, rate=2e-2)),
)
QUICK = {
    "kcl": PAIRS,
    "mcl": PAIRS,
    "dtc": DTCConfig(START, Stage(1, 100, 20, Schedule(steps=1, rate=0.01, optimiser="sgd"))),
    "rs": RSConfig(
        START, None, stage=Stage(1, 100, 50, Schedule(steps=1, rate=1e-2)), known=32, top=3, consistency=1.0
    ),
}


@pytest.fixture(scope="module", params=QUICK)
def learner(request) -> AdaptingLearner:
    return METHODS[request.param](QUICK[request.param]).fit(KNOWN, Plan(way=3, observations=5))


def test_a_bag_is_passed_over_as_often_as_asked_and_not_less_than_the_least():
    stage = Stage(epochs=3, batch=100, least=20)
    for items in (1, 25, 100, 101, 15_000):
        passes = sum(1 for _ in range(0, items, 100))
        assert stage.steps_of_a_pass(items) == passes
        assert stage.schedule_for(items).steps == max(20, 3 * passes)
    assert stage.schedule_for(25).rate == stage.schedule.rate


def test_scaled_rates_fall_in_proportion_where_bags_are_small():
    stage = ScaledStage(epochs=1, batch=50, schedule=Schedule(steps=1, rate=0.1), enough=100)
    assert [stage.schedule_for(items).rate for items in (5, 25, 100, 5000)] == pytest.approx([0.005, 0.025, 0.1, 0.1])


def test_a_step_draws_distinct_items_and_all_where_they_fit():
    stage = Stage(epochs=1, batch=10)
    assert stage.draw(7, generator()).tolist() == list(range(7))
    drawn = stage.draw(50, generator()).tolist()
    assert len(drawn) == len(set(drawn)) == 10
    assert max(drawn) < 50


def test_a_ramp_rises_as_its_formula_says_and_then_stays():
    assert ramp(0.0, 0.5) == pytest.approx(math.exp(-5))
    assert ramp(0.25, 0.5) == pytest.approx(math.exp(-5 * 0.25))
    assert ramp(0.5, 0.5) == ramp(0.9, 0.5) == 1.0
    assert ramp(0.0, 0.0) == 1.0


def test_groups_that_are_plainly_there_are_found(learner):
    bag, query = bags(3)
    clustering = learner.discover(NOVEL.images, bag, 3, generator())
    answers = clustering.assign(NOVEL.images, query)
    assert answers.labels.shape == query.shape
    assert ((answers.confidence > 0) & (answers.confidence <= 1)).all()
    scores = score_episodes(NOVEL.labels[query].numpy(), answers.labels.numpy())
    assert scores.acc.mean() > 0.8  # chance is about 0.45


def test_an_honest_answer_does_not_depend_on_the_other_queries(learner):
    bag, query = bags()
    clustering = learner.discover(NOVEL.images, bag, 3, generator())
    together = clustering.assign(NOVEL.images, query)
    alone = torch.cat([clustering.assign(NOVEL.images, query[:, i : i + 1]).labels for i in range(15)], 1)
    assert torch.equal(together.labels, alone)


def test_the_generator_decides_everything_and_the_start_stays_as_it_was(learner):
    bag, query = bags()
    first = learner.discover(NOVEL.images, bag, 3, generator(1))
    learner.discover(NOVEL.images, bag, 3, generator(2))
    again = learner.discover(NOVEL.images, bag, 3, generator(1))
    assert torch.equal(first.assign(NOVEL.images, query).confidence, again.assign(NOVEL.images, query).confidence)


def test_a_refined_answer_comes_from_training_on_observations_and_queries_together(learner):
    bag, query = bags(1)
    clustering = learner.discover(NOVEL.images, bag, 3, generator())
    refined = clustering.refine(NOVEL.images, query)
    trained = learner.cluster(NOVEL.images, torch.cat([bag, query], 1), 3, clustering.seeds)
    assert torch.equal(refined.labels, trained.labels[:, 15:])


def test_the_oracle_goes_by_the_groups_it_is_told(learner):
    bag, query = bags(1)
    told = learner.oracle(NOVEL.images, bag, NOVEL.labels[bag], 3)
    lied = learner.oracle(NOVEL.images, bag, (NOVEL.labels[bag] + torch.arange(15)) % 3, 3)
    answers = told.assign(NOVEL.images, query)
    assert score_episodes(NOVEL.labels[query].numpy(), answers.labels.numpy()).acc[0] > 0.9
    assert not torch.allclose(answers.confidence, lied.assign(NOVEL.images, query).confidence, atol=0.01)


def test_one_observation_a_class_gives_finite_answers(learner):
    bag = torch.tensor([[0, 10, 20]])
    clustering = learner.discover(NOVEL.images, bag, 3, generator())
    answers = clustering.assign(NOVEL.images, torch.arange(30)[None])
    assert answers.confidence.isfinite().all()
    assert clustering.confidence.isfinite().all()


def test_identical_observations_give_finite_answers(learner):
    clustering = learner.discover(NOVEL.images, torch.zeros(1, 4, dtype=torch.int64), 3, generator())
    assert clustering.confidence.isfinite().all()


def test_fewer_observations_than_classes_are_refused(learner):
    with pytest.raises(InputError, match="2 observations cannot show 3 classes"):
        learner.discover(NOVEL.images, torch.tensor([[0, 10]]), 3, generator())


def test_a_collapse_is_said_and_counted():
    class Collapsed(AdaptingLearner):
        def adapt(self, images, k, groups, context):
            head = nn.Linear(8, k)
            nn.init.zeros_(head.weight)
            return head

    text = io.StringIO()
    context = Context(reporter=Reporter(Console(file=text, width=200)))
    clustering = Collapsed("kcl", context, "mlp").discover(NOVEL.images, bags()[0], 3, generator())
    assert clustering.used.tolist() == [1, 1]
    assert "kcl: the observations of 2 of 2 bags ended in fewer than 3 clusters (the fewest: 1)" in text.getvalue()


@pytest.mark.parametrize("name", QUICK)
def test_what_does_not_depend_on_the_observations_is_trained_once(name, tmp_path):
    plan = Plan(way=3, observations=5, context=Context(folder=tmp_path))
    method = METHODS[name]
    method(QUICK[name]).fit(KNOWN, plan)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    assert kept
    other = replace(QUICK[name], stage=replace(QUICK[name].stage, epochs=7))
    learner = method(other).fit(KNOWN, replace(plan, way=2, observations=1))
    learner.discover(NOVEL.images, bags(1)[0], 3, generator())
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")} == kept


def test_kcl_and_mcl_share_their_similarity_and_dtc_and_rs_their_start(tmp_path):
    plan = Plan(way=3, observations=5, context=Context(folder=tmp_path))
    for name, config in QUICK.items():
        METHODS[name](config).fit(KNOWN, plan)
    assert sorted(path.name.split("-")[0] for path in tmp_path.glob("*.safetensors")) == ["classifier", "similarity"]


@pytest.mark.parametrize("name", QUICK)
def test_every_trained_parameter_learns_in_mixed_precision_too(name):
    config = QUICK[name]
    schedule = replace(config.stage.schedule, precision="bfloat16")
    config = replace(config, stage=replace(config.stage, least=1, schedule=schedule))
    learner = METHODS[name](config).fit(KNOWN, Plan(way=3, observations=5))
    (one,) = learner.discover(NOVEL.images, bags(1)[0], 3, generator()).models
    config = replace(config, stage=replace(config.stage, schedule=replace(schedule, rate=0.0)))
    learner = METHODS[name](config).fit(KNOWN, Plan(way=3, observations=5))
    (start,) = learner.discover(NOVEL.images, bags(1)[0], 3, generator()).models
    for (title, before), after in zip(start.named_parameters(), one.parameters(), strict=True):
        assert after.isfinite().all()
        assert before.requires_grad != torch.equal(before, after), title


@pytest.mark.parametrize("name", QUICK)
def test_every_config_and_dataset_stands_for_settings(name):
    method = METHODS[name]
    for dataset in ("cifar10", "cifar100", "svhn", "omniglot", "glyphs", "rules"):
        for config in ("default", "full", "cpu"):
            assert type(method.preset(config, dataset)) is type(method.preset("default"))
    assert method.preset("default", "glyphs") == method.preset("cpu")
    assert method.preset("full", "omniglot") != method.preset("full")


def test_default_may_differ_between_few_observations_and_all():
    names = {"default": 0, "few": 1, "all": 2, "full": 3}
    chosen = {"svhn": "few", "omniglot": "few"}
    apart = type("Apart", (METHODS["kmeans"],), {"configs": names, "chosen": chosen, "abundant": {"svhn": "all"}})

    def configs(name, everything):
        return [apart.preset(name, dataset, everything=everything) for dataset in ("svhn", "omniglot", "rules", None)]

    assert configs("default", everything=False) == [1, 1, 0, 0]
    assert configs("default", everything=True) == [2, 1, 0, 0]
    assert configs("full", everything=True) == [3] * 4


class Interrupted(Reporter):
    """Interrupts a training once it has shown so many steps."""

    def __init__(self, after: int) -> None:
        super().__init__(Console(file=io.StringIO()))
        self.after = after

    @contextmanager
    def track(self, title, total):
        def tick(done, remark=""):
            sleep(0.2)  # or what is counted of it would be lost in what it takes to go on
            if done >= self.after:
                raise KeyboardInterrupt

        yield tick


LONG = {
    "kcl": replace(PAIRS, stage=replace(PAIRS.stage, least=100)),
    "dtc": replace(
        QUICK["dtc"],
        stage=Stage(40, 10, schedule=Schedule(steps=1, rate=0.01, optimiser="sgd")),
        first=Stage(3, 10, schedule=Schedule(steps=1, rate=0.01, optimiser="sgd")),
    ),
    "rs": RSConfig(
        Start("classes", "conv4", batch=16, schedule=Schedule(steps=2)),
        supervised=None,
        stage=Stage(1, 30, least=60, schedule=Schedule(steps=1, rate=1e-2)),
        known=4,
        ramp=0.9,
    ),
}


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("name", LONG)
def test_a_long_training_on_a_bag_continues_bit_for_bit(name, told, tmp_path, monkeypatch):
    monkeypatch.setattr(bag_training, "KEPT", 60)
    known, novel = KNOWN, NOVEL
    if name == "rs":  # two views differ, and the ramp of their agreement counts, on images alone
        pictures = torch.randint(0, 256, (30, 1, 16, 16), dtype=torch.uint8, generator=generator())
        known = novel = ImageSet(pictures, torch.arange(30) % 3, tuple("abc"))

    def adapt(folder, reporter=None):
        context = Context(folder=folder, checkpoint_seconds=0)
        plan = Plan(way=3, observations=5, augmentation=Augmentation(crop=2), context=context)
        learner = METHODS[name](LONG[name]).fit(known, plan)
        before = learner.training_seconds
        context = replace(context, seed=7, reporter=reporter or context.reporter)
        model = learner.adapt(novel.images, 3, novel.labels if told else None, context)
        return model.state_dict(), learner.training_seconds - before

    straight, none_before = adapt(tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        adapt(tmp_path / "parts", Interrupted(after=50))
    parts, seconds_before = adapt(tmp_path / "parts")
    assert parts.keys() == straight.keys()
    assert all(torch.equal(parts[key], straight[key]) for key in straight)
    assert none_before == 0 < seconds_before


def test_what_was_trained_on_one_bag_is_not_taken_for_another(tmp_path, monkeypatch):
    monkeypatch.setattr(bag_training, "KEPT", 1)
    context = Context(folder=tmp_path)
    learner = METHODS["rs"](QUICK["rs"]).fit(KNOWN, Plan(way=3, observations=5, context=context))

    def kept() -> int:
        return len(list(tmp_path.glob("rs-*.safetensors")))

    first, other = NOVEL.images[:20], NOVEL.images[1:21]
    told = NOVEL.labels[:20]
    for number, bag, k, groups in (
        (1, first, 3, None),
        (2, other, 3, None),
        (3, first, 3, told),
        (4, first, 4, None),
        (4, other, 3, None),
    ):
        learner.adapt(bag, k, groups, context)
        assert kept() == number


def test_short_trainings_on_bags_leave_nothing_on_disk(tmp_path):
    learner = METHODS["rs"](QUICK["rs"]).fit(KNOWN, Plan(way=3, observations=5, context=Context(folder=tmp_path)))
    learner.discover(NOVEL.images, bags()[0], 3, generator())
    assert not list(tmp_path.glob("rs-*"))
