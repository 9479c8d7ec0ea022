from dataclasses import replace

import numpy as np
import pytest
import torch

from medi.bench.choose import hold_out
from medi.bench.grid import Run
from medi.bench.questions import Questions, draw_questions, draw_tasks
from medi.bench.run import train_learner
from medi.bench.score import Answers, Conditions, ask, evaluate, half_width, summarise
from medi.core.errors import InputError
from medi.core.progress import Silent
from medi.data.benchmarks import Benchmark
from medi.methods import Learner
from medi.metrics import calibration_error, rightly_assigned, score_episodes
from medi.nn.context import Context

RUN = Run("glyphs", "kmeans", "default", None, 20, 5, "honest", "episode", 0)


@pytest.fixture(scope="module")
def learner(glyphs) -> Learner:
    return train_learner(RUN, glyphs, Context())


def scores_of(learner: Learner, questions: Questions, regimes) -> dict:
    said = ask(learner, learner.encode(questions.images), questions, Conditions(regimes), Silent())
    return {regime: summarise([answers]) for regime, answers in said.items()}


def test_observations_and_queries_share_no_image_and_have_the_labels_of_theirs(glyphs):
    questions = draw_questions(glyphs, RUN, 30)
    assert (questions.bag.shape, questions.query.shape) == ((30, 100), (30, 300))
    items = torch.cat([questions.bag, questions.query], 1)
    labels = torch.cat([questions.groups, questions.labels], 1)
    for some, own in zip(items, labels, strict=True):
        assert len(some.unique()) == 400
        assert len(set(zip(glyphs.novel.labels[some].tolist(), own.tolist(), strict=True))) == 20


def test_the_order_of_observations_and_queries_tells_nothing_of_their_classes(glyphs):
    questions = draw_questions(glyphs, RUN, 200)
    for classes, expected in ((questions.groups, 4 / 99), (questions.labels, 14 / 299)):
        neighbours = (classes[:, 1:] == classes[:, :-1]).float().mean()
        assert neighbours == pytest.approx(expected, abs=0.01)  # as often as in a random order


def test_a_seed_draws_the_same_questions_for_every_method_and_regime(glyphs):
    one = draw_questions(glyphs, RUN, 5)
    other = draw_questions(glyphs, replace(RUN, method="mp", regime="grouped", sampler="uniform"), 5)
    another_seed = draw_questions(glyphs, replace(RUN, seed=1), 5)
    assert torch.equal(one.bag, other.bag)
    assert not torch.equal(one.bag, another_seed.bag)


def test_pooled_asks_about_every_other_image_of_the_drawn_classes(glyphs):
    questions = draw_questions(glyphs, replace(RUN, score="pooled"), 600)
    assert questions.bag.shape == (1, 100)
    assert questions.query.shape == (1, 300)  # 20 classes of 20 images, 5 of each observed
    assert not set(questions.bag[0].tolist()) & set(questions.query[0].tolist())


def test_all_observes_the_training_split_and_asks_about_the_test_split(glyphs):
    split = hold_out(glyphs, range(4))
    train = replace(split.novel, images=255 - split.novel.images)
    benchmark = replace(split, novel_train=train)
    questions = draw_questions(benchmark, replace(RUN, way=4, observations="all", score="pooled"), 1)
    assert questions.bag.shape == (1, len(train))
    asked = questions.query[0].argsort()
    assert torch.equal(questions.images[questions.query[0, asked]], split.novel.images)
    assert torch.equal(questions.labels[0, asked], split.novel.labels)
    with pytest.raises(InputError, match="leave --way out"):
        draw_questions(benchmark, replace(RUN, way=3, observations="all", score="pooled"), 1)
    others = replace(split, novel_train=split.known.of_classes(range(4)))
    with pytest.raises(InputError, match="give both the same"):
        draw_questions(others, replace(RUN, way=4, observations="all", score="pooled"), 1)
    with pytest.raises(InputError, match="no training images"):
        draw_questions(glyphs, replace(RUN, observations="all", score="pooled"), 1)


def alphabets(glyphs) -> Benchmark:
    """Two families of three and of five novel classes."""
    novel = glyphs.novel.of_classes(range(8))
    names = tuple(f"{'Greek' if i % 3 == 0 else 'Latin'}/{i}" for i in range(8))
    return replace(glyphs, novel=replace(novel, class_names=names), facts=replace(glyphs.facts, families=True))


def test_where_everything_is_observed_every_family_is_a_task_of_its_own(glyphs):
    benchmark = alphabets(glyphs)
    tasks = draw_tasks(benchmark, replace(RUN, way=8, observations="all", score="pooled"), 1)
    assert [task.way for task in tasks] == [3, 5]
    for task, family in zip(tasks, ((0, 3, 6), (1, 2, 4, 5, 7)), strict=True):
        assert len(set(task.bag[0].tolist())) == 20 * len(family)  # every image of the family, once
        assert torch.equal(task.bag, task.query)
        assert set(benchmark.novel.labels[task.bag[0]].tolist()) == set(family)
        pairs = set(zip(benchmark.novel.labels[task.bag[0]].tolist(), task.groups[0].tolist(), strict=True))
        assert len(pairs) == task.way
    with pytest.raises(InputError, match="leave --way out"):
        draw_tasks(benchmark, replace(RUN, way=3, observations="all", score="pooled"), 1)


def some_answers(questions: Questions, seed: int) -> Answers:
    """Random clusters and confidences."""
    draw = torch.Generator().manual_seed(seed)
    labels, observed = (
        torch.randint(questions.way, some.shape, generator=draw) for some in (questions.query, questions.bag)
    )
    return Answers(questions, labels, torch.rand(labels.shape, generator=draw), observed)


def test_the_score_of_several_tasks_is_their_mean_with_its_interval(glyphs):
    said = [
        some_answers(draw_questions(glyphs, replace(RUN, seed=seed, way=way), 3), seed)
        for seed, way in enumerate((3, 5, 8))
    ]
    mean, scores = summarise(said), [summarise([one]) for one in said]
    for name in ("acc", "nmi", "ari", "acc_observed", "filled"):
        assert getattr(mean, name) == pytest.approx(sum(getattr(one, name) for one in scores) / 3), name
    assert mean.acc_ci95 == pytest.approx(1.96 * np.std([one.acc for one in scores], ddof=1) / 3**0.5)
    assert mean.episodes == 9


def test_calibration_is_over_the_items_of_all_tasks(glyphs):
    said = [
        some_answers(draw_questions(glyphs, replace(RUN, seed=seed, way=way), 1), seed)
        for seed, way in enumerate((3, 8))
    ]
    right = [rightly_assigned(one.questions.labels, one.labels).ravel() for one in said]
    confidence = [one.confidence.numpy().ravel() for one in said]
    score = summarise(said)
    assert score.ece == pytest.approx(calibration_error(np.concatenate(confidence), np.concatenate(right)))
    assert score.confidence == pytest.approx(np.concatenate(confidence).mean())
    assert score.acc_ci95 == pytest.approx(half_width(np.array([one.mean() for one in right])))


def test_the_observations_are_scored_too_but_for_the_oracle(glyphs, learner):
    questions = draw_questions(glyphs, RUN, 3)
    encoded = learner.encode(questions.images)
    scores = scores_of(learner, questions, ["honest", "grouped"])
    found = learner.discover(encoded, questions.bag, 20, torch.Generator().manual_seed(0)).labels
    accuracies = score_episodes(questions.groups.numpy(), found.numpy()).acc
    assert scores["honest"].acc_observed == pytest.approx(accuracies.mean())
    assert scores["grouped"].acc_observed is None


def test_the_share_of_clusters_with_observations_shows_a_collapse(glyphs):
    questions = draw_questions(glyphs, RUN, 2)
    observed = torch.stack([torch.zeros(100, dtype=torch.int64), torch.arange(100) % 20])
    said = replace(some_answers(questions, 0), observed=observed)
    assert summarise([said]).filled == pytest.approx((1 / 20 + 1) / 2)
    assert summarise([replace(said, observed=None)]).filled is None


def test_scores_order_as_the_regimes_do_and_lie_above_chance(glyphs, learner):
    questions = draw_questions(glyphs, RUN, 40)
    regimes = ("honest", "transductive", "grouped")
    scores = scores_of(learner, questions, regimes)
    assert questions.chance() < scores["honest"].acc < scores["grouped"].acc
    assert scores["honest"].acc < scores["transductive"].acc
    assert scores["honest"].episodes == 40
    alone = scores_of(learner, questions, ["honest"])
    assert alone["honest"] == scores["honest"]  # a regime does not depend on which others are asked for


def test_labels_that_lie_cannot_change_an_honest_answer(glyphs, learner):
    questions = draw_questions(glyphs, RUN, 4)
    lying = replace(questions, groups=questions.groups.flip(1))
    truth, lie = (scores_of(learner, q, ["honest", "grouped"]) for q in (questions, lying))
    answers = [replace(scores["honest"], acc_observed=None) for scores in (truth, lie)]  # that one is scored by groups
    assert answers[0] == answers[1]
    assert truth["grouped"] != lie["grouped"]


def test_unequal_classes_have_one_to_twice_as_many_observations_and_five_to_25_queries(glyphs):
    tasks = draw_tasks(glyphs, replace(RUN, observations=2, sizes="unequal"), 130)
    assert sum(len(task.bag) for task in tasks) == 130
    there = int(torch.bincount(glyphs.novel.labels).min())
    seen = set[int]()
    for task in tasks:
        for items, classes, low, high in (
            (task.bag, task.groups, 1, 4),
            (task.query, task.labels, 5, min(25, there - 4)),
        ):
            for episode, of_items in zip(classes, items, strict=True):
                sizes = torch.bincount(episode, minlength=20)
                assert low <= int(sizes.min()) <= int(sizes.max()) <= high
                assert len(set(of_items.tolist())) == len(of_items)
                pairs = set(zip(episode.tolist(), glyphs.novel.labels[of_items].tolist(), strict=True))
                assert len(pairs) == 20  # a row of the task is a class
        assert not set(task.bag[0].tolist()) & set(task.query[0].tolist())
        assert not task.equal_sizes
        seen |= set(torch.bincount(task.groups[0]).tolist())
    assert seen == {1, 2, 3, 4}


def test_a_pool_of_unequal_observations_asks_about_everything_else(glyphs):
    (task,) = draw_tasks(glyphs, replace(RUN, score="pooled", sizes="unequal"), 1)
    classes = glyphs.novel.labels[task.bag[0]].unique()
    of_classes = torch.isin(glyphs.novel.labels, classes).nonzero().squeeze(1)
    assert len(task.bag[0]) + len(task.query[0]) == len(of_classes)
    assert set(task.bag[0].tolist()) | set(task.query[0].tolist()) == set(of_classes.tolist())


def test_evaluating_tells_sizes_only_where_they_are_equal(glyphs, learner):
    def score(**options):
        return evaluate(learner, glyphs, 5, episodes=8, reporter=Silent(), **options)["honest"].acc

    assert score(balance="on") > score(balance="off") == score()  # k-means' own settings do not use it
    for options, culprit in (
        ({"balance": "on", "sizes": "unequal"}, "equally large"),
        ({"balance": "yes"}, "balance 'yes'"),
        ({"sizes": "odd"}, "sizes 'odd'"),
    ):
        with pytest.raises(InputError, match=culprit):
            score(**options)
