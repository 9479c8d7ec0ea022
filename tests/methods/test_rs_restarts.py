"""RS trained on a bag several times: which training stays, what comes after it, and what is kept on disk."""

from dataclasses import replace

import pytest
import torch
from sklearn.neighbors import NearestNeighbors
from torch.nn import functional
from vectors import KNOWN, NOVEL, bags, blobs, generator

from medi.errors import InputError
from medi.methods import METHODS, Plan
from medi.methods.bag_training import Stage, ramp
from medi.methods.pretraining import Start
from medi.methods.rs import APART, NEARLY, NEIGHBOURS, STEADYING, RSLearner
from medi.methods.rs_config import RSConfig
from medi.methods.rs_loss import joint_loss
from medi.runtime.context import Context
from medi.runtime.progress import Silent
from medi.train.schedule import Schedule


class Heard(Silent):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def of(restarts: int, **settings) -> RSLearner:
    """A learner of vectors."""
    start = Start("classes", "mlp", batch=16, schedule=Schedule(steps=2))
    stage = Stage(1, 50, 6, Schedule(steps=1, rate=0.01))
    config = RSConfig(start, None, stage=stage, known=8, restarts=restarts, **settings)
    return METHODS["rs"](config).fit(KNOWN, Plan(3, 5, context=Context()))


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def agreement(labels: torch.Tensor, near: torch.Tensor) -> float:
    shared, chance = ((x == labels[:, None]).double().mean() for x in (labels[near], labels[None]))
    return float((shared - chance) / (1 - chance)) if chance < 1 else 0.0


@pytest.mark.parametrize(("each", "neighbours"), [(10, 5), (40, NEIGHBOURS)])
def test_of_several_trainings_on_a_bag_the_one_stays_whose_clusters_agree_best_with_neighbours(each, neighbours):
    learner, images = of(6), blobs(3, each=each, seed=5).images
    heard = Heard()
    context = Context(seed=5, reporter=heard)
    kept = learner.adapt(images, 3, None, context)
    tries = [learner.attempt(images, 3, None, replace(context, seed=5 + APART * number)) for number in range(6)]
    with torch.no_grad():
        points = functional.normalize(learner.start.eval()(images))
        clusters = [model.eval()(images).argmax(1) for model in tries]
    # As many as half the images of a class, where that is less than NEIGHBOURS.
    near = torch.tensor(NearestNeighbors(n_neighbors=neighbours).fit(points).kneighbors(return_distance=False))
    scores = [agreement(labels, near) for labels in clusters]
    best = scores.index(max(scores))
    assert [number for number, model in enumerate(tries) if same(kept, model)] == [best]
    *begun, line = heard.lines
    assert begun == [f"rs: training {number} of 6 on the observations" for number in range(1, 7)]
    assert f"{', '.join(f'{score:.3f}' for score in scores)}; {best + 1} stays" in line
    if each == 10:
        assert best > 0  # or the test would not tell


@pytest.mark.parametrize(("restarts", "steady", "observed"), [(1, None, 10), (4, None, 1), (4, 7.0, 1)])
def test_a_single_training_is_the_first_of_several_and_all_there_is_without_neighbours(restarts, steady, observed):
    learner, images = of(restarts, steady=steady), blobs(3, each=observed, seed=5).images
    heard = Heard()
    kept = learner.adapt(images, 3, None, Context(seed=5, reporter=heard))
    assert same(kept, learner.attempt(images, 3, None, Context(seed=5)))
    assert not heard.lines


def judged(learner: RSLearner, *fits: float) -> None:
    """Let a learner think so well of one model after the other."""
    values = iter(fits)
    learner.judge = lambda *_: lambda model: next(values)


def test_what_stays_is_trained_on_with_its_own_weight_of_consistency_from_nothing(monkeypatch):
    weights = []

    def noted(*outputs, consistency, **rest):
        weights.append(float(consistency))
        return joint_loss(*outputs, consistency=consistency, **rest)

    monkeypatch.setattr("medi.methods.rs_loss.joint_loss", noted)
    learner, images, context = of(3, steady=7.0), NOVEL.images, Context(seed=5)
    judged(learner, 1.0, 2.0, 1.5, 2.0)
    steadied = learner.adapt(images, 3, None, context)
    ramps = [ramp(step / 6, learner.config.ramp) for step in range(6)]
    assert weights == pytest.approx([weight * part for weight in (5, 5, 5, 7) for part in ramps])
    expected = learner.attempt(images, 3, None, replace(context, seed=5 + APART))
    assert not same(steadied, expected)
    expected.steps.taken.zero_()
    learner.learn(expected, 7.0, images, 3, None, replace(context, seed=5 + STEADYING))
    assert same(steadied, expected)


@pytest.mark.parametrize(("after", "stays"), [(2 * NEARLY + 0.01, True), (2 * NEARLY - 0.01, False)])
def test_where_the_fit_falls_what_there_was_before_stays(after, stays):
    learner, heard = of(3, steady=7.0), Heard()
    judged(learner, 1.0, 1.5, 2.0, after)
    kept = learner.adapt(NOVEL.images, 3, None, Context(seed=5, reporter=heard))
    best = learner.attempt(NOVEL.images, 3, None, Context(seed=5 + 2 * APART))
    assert same(kept, best) is not stays
    assert ("what there was before stays" in heard.lines[-1]) is not stays


def test_a_single_training_may_be_trained_on_too():
    learner = of(1, steady=7.0)
    judged(learner, 1.0, 1.0)
    kept = learner.adapt(NOVEL.images, 3, None, Context(seed=5))
    assert not same(kept, learner.attempt(NOVEL.images, 3, None, Context(seed=5)))


def test_told_the_groups_every_training_uses_them():
    learner, context = of(2, steady=7.0), Context(seed=5)
    found = []
    for groups in (None, NOVEL.labels):
        fit = learner.judge(NOVEL.images, 3)
        tried = learner.tries(fit, NOVEL.images, 3, groups, context)
        found.append((tried, learner.steadied(tried, 7.0, NOVEL.images, 3, groups, context)))
    (honest, steadied), (told, told_steadied) = found
    assert not any(same(one, other) for one, other in zip(honest.models, told.models, strict=True))
    assert not same(steadied, told_steadied)
    unlike = learner.steadied(told, 7.0, NOVEL.images, 3, None, context)
    assert not same(told_steadied, unlike)


def test_queries_seen_together_are_clustered_by_the_best_of_several_trainings_as_well():
    learner = of(3)
    bag, query = bags(1)
    clustering = learner.discover(NOVEL.images, bag, 3, generator())
    (seed,) = clustering.seeds
    together = learner.adapt(NOVEL.images[torch.cat([bag, query], 1)[0]], 3, None, replace(learner.context, seed=seed))
    labels = together.eval()(NOVEL.images[query[0]]).argmax(1)
    assert torch.equal(clustering.refine(NOVEL.images, query).labels[0], labels)


def test_trainings_are_shared_by_settings_that_differ_in_their_number_and_what_follows(tmp_path, monkeypatch):
    monkeypatch.setattr("medi.methods.bag_training.KEPT", 1)
    images, context = NOVEL.images, Context(seed=5, folder=tmp_path)

    def kept(restarts: int, steady: float | None, *fits: float) -> int:
        learner = of(restarts, steady=steady)
        models = []
        for _ in range(2):  # the second time, all of it is found again
            judged(learner, *fits)
            models.append(learner.adapt(images, 3, None, context))
        assert same(*models)
        return len(list(tmp_path.glob("rs-*.safetensors")))

    assert kept(1, None) == 1
    assert kept(3, None, 1, 2, 1) == 3
    assert kept(2, None, 1, 2) == 3
    assert kept(3, 7.0, 1, 2, 1, 2) == 4
    assert kept(2, 7.0, 1, 2, 2) == 4  # on from the same training
    assert kept(3, 7.0, 1, 1, 2, 2) == 5
    assert kept(3, 8.0, 1, 2, 1, 2) == 6


def test_something_has_to_be_trained():
    with pytest.raises(InputError, match="restarts=0"):
        RSConfig(restarts=0)
