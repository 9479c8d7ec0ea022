"""Learners that train on each bag: lengths, ramps, and what all of them owe to the protocol."""

import io
import math
from contextlib import contextmanager
from dataclasses import replace
from time import sleep

import pytest
import torch
from rich.console import Console
from small_sets import KNOWN, NOVEL, bags, generator, patterns
from torch import nn

from medi.core.errors import InputError
from medi.core.progress import Reporter
from medi.data.facts import Augmentation
from medi.methods import Plan, bag_training
from medi.methods.bag_training import BagLearner, BagMethod, Bags, BagStage, ramp
from medi.methods.dtc import DTC
from medi.methods.kcl import KCL
from medi.methods.mcl import MCL
from medi.methods.pretraining import Pretraining
from medi.methods.rs import RS
from medi.methods.simgcd import SimGCD
from medi.methods.similarity import Similarity
from medi.methods.uno import UNO
from medi.metrics import score_episodes
from medi.nn import Network, build
from medi.nn.context import Context
from medi.nn.schedule import Schedule

CLASSES = Pretraining("classes", "mlp", batch=64, schedule=Schedule(steps=60, rate=1e-2))
PAIRS = {
    "similarity": Similarity("mlp", classes=4, schedule=Schedule(steps=60, rate=5e-3)),
    "hidden": 32,
    "stage": BagStage(epochs=1, batch=100, least_steps=50, schedule=Schedule(steps=1, rate=2e-2)),
}
BY_ADAM = BagStage(1, 100, least_steps=50, schedule=Schedule(steps=1, rate=1e-2))
QUICK = {
    method.name: method
    for method in (
        KCL(**PAIRS),
        MCL(**PAIRS),
        DTC(CLASSES, BagStage(1, 100, least_steps=20, schedule=Schedule(steps=1, rate=0.01, optimiser="sgd"))),
        RS(CLASSES, BY_ADAM, supervised=None, known=32, top=3, consistency=1.0),
        UNO(CLASSES, replace(BY_ADAM, least_steps=20), known=16, hidden=32),
        SimGCD(CLASSES, replace(BY_ADAM, least_steps=20), known=16, hidden=32),
    )
}
PLAN = Plan(way=3, observations=5)


@pytest.fixture(scope="module", params=QUICK)
def learner(request) -> BagLearner:
    return QUICK[request.param].fit(KNOWN, PLAN)


def test_a_bag_is_passed_over_as_often_as_asked_and_not_less_than_the_least():
    stage = BagStage(epochs=3, batch=100, least_steps=20)
    for items in (1, 25, 100, 101, 15_000):
        passes = sum(1 for _ in range(0, items, 100))
        assert stage.steps_of_a_pass(items) == passes
        assert stage.schedule_for(items).steps == max(20, 3 * passes)
    assert stage.schedule_for(25).rate == stage.schedule.rate
    slow = replace(stage, enough_items=100, schedule=Schedule(steps=1, rate=0.1))
    assert [slow.schedule_for(items).rate for items in (5, 25, 100, 5000)] == pytest.approx([0.005, 0.025, 0.1, 0.1])


def test_a_step_draws_distinct_items_and_all_where_they_fit():
    stage = BagStage(epochs=1, batch=10)
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
    trained = learner.cluster(Bags(NOVEL.images, torch.cat([bag, query], 1), 3, clustering.bags.seeds))
    assert torch.equal(refined.labels, trained.labels[:, 15:])


def test_the_oracle_goes_by_the_groups_it_is_told(learner):
    bag, query = bags(1)
    told = learner.oracle(NOVEL.images, bag, NOVEL.labels[bag], 3)
    lied = learner.oracle(NOVEL.images, bag, (NOVEL.labels[bag] + torch.arange(15)) % 3, 3)
    answers = told.assign(NOVEL.images, query)
    assert score_episodes(NOVEL.labels[query].numpy(), answers.labels.numpy()).acc[0] > 0.9
    assert not torch.allclose(answers.confidence, lied.assign(NOVEL.images, query).confidence, atol=0.01)


@pytest.mark.parametrize("bag", [[0, 10, 20], [0, 0, 0, 0]], ids=["one of each class", "one alone"])
def test_the_fewest_observations_give_finite_answers(learner, bag):
    clustering = learner.discover(NOVEL.images, torch.tensor([bag]), 3, generator())
    answers = clustering.assign(NOVEL.images, torch.arange(30)[None])
    assert answers.confidence.isfinite().all()
    assert clustering.confidence.isfinite().all()


def test_fewer_observations_than_classes_are_refused(learner):
    with pytest.raises(InputError, match="2 observations cannot show 3 classes"):
        learner.discover(NOVEL.images, torch.tensor([[0, 10]]), 3, generator())


@pytest.mark.parametrize("method", QUICK.values(), ids=QUICK)
def test_what_does_not_depend_on_the_observations_is_trained_once(method, tmp_path):
    plan = replace(PLAN, context=Context(folder=tmp_path))
    method.fit(KNOWN, plan)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    assert kept
    other = replace(method, stage=replace(method.stage, epochs=7))
    learner = other.fit(KNOWN, replace(plan, way=2, observations=1))
    learner.discover(NOVEL.images, bags(1)[0], 3, generator())
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")} == kept


def test_kcl_and_mcl_share_their_similarity_and_the_others_their_pretraining(tmp_path):
    for method in QUICK.values():
        method.fit(KNOWN, replace(PLAN, context=Context(folder=tmp_path)))
    assert sorted(path.name.split("-")[0] for path in tmp_path.glob("*.safetensors")) == ["classes", "similarity"]


@pytest.mark.parametrize("method", QUICK.values(), ids=QUICK)
def test_every_trained_parameter_learns_in_mixed_precision_too(method):
    def trained(rate: float) -> nn.Module:
        schedule = replace(method.stage.schedule, precision="bfloat16", rate=rate)
        once = replace(method, stage=replace(method.stage, least_steps=1, schedule=schedule))
        (model,) = once.fit(KNOWN, PLAN).discover(NOVEL.images, bags(1)[0], 3, generator()).models
        return model

    start, one = trained(0.0), trained(method.stage.schedule.rate)
    for (title, before), after in zip(start.named_parameters(), one.parameters(), strict=True):
        assert after.isfinite().all()
        assert before.requires_grad != torch.equal(before, after), title


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


SGD = Schedule(steps=1, rate=0.01, optimiser="sgd")
LONG = {
    "kcl": replace(QUICK["kcl"], stage=replace(QUICK["kcl"].stage, least_steps=100)),
    "dtc": replace(QUICK["dtc"], stage=BagStage(40, 10, schedule=SGD), first=BagStage(3, 10, schedule=SGD)),
    "rs": RS(
        Pretraining("classes", "conv4", batch=16, schedule=Schedule(steps=2)),
        supervised=None,
        stage=BagStage(1, 30, least_steps=60, schedule=Schedule(steps=1, rate=1e-2)),
        known=4,
        ramp=0.9,
    ),
    "simgcd": SimGCD(CLASSES, replace(BY_ADAM, least_steps=60), known=8, hidden=8, warm_up=0.9),
}


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("name", LONG)
def test_a_long_training_on_a_bag_continues_bit_for_bit(name, told, tmp_path, monkeypatch):
    monkeypatch.setattr(bag_training, "KEPT_FROM_STEPS", 60)
    known, novel = KNOWN, NOVEL
    if name == "rs":  # two views differ, and the ramp of their agreement counts, on images alone
        known = novel = patterns(classes=3, each=10, channels=1)

    def adapt(folder, reporter=None):
        context = Context(folder=folder, checkpoint_seconds=0)
        learner = LONG[name].fit(known, replace(PLAN, augmentation=Augmentation(crop=2), context=context))
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
    monkeypatch.setattr(bag_training, "KEPT_FROM_STEPS", 1)
    context = Context(folder=tmp_path)
    learner = QUICK["rs"].fit(KNOWN, replace(PLAN, context=context))

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


def test_layers_that_a_method_makes_for_a_bag_follow_from_its_seed():
    class Untrained(BagMethod[Network]):
        def learn(self, known, plan):
            return build("mlp", (8,))

        def adapt(self, learnt, bag):
            return nn.Linear(8, bag.k)

    before = torch.get_rng_state()
    answers = [
        Untrained().fit(KNOWN, PLAN).discover(NOVEL.images, bags()[0], 3, generator()).confidence for _ in range(2)
    ]
    assert torch.equal(*answers)
    assert torch.equal(torch.get_rng_state(), before)
