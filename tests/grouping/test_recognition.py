"""How further items are recognised, and the trade-off between missed items and strangers."""

import numpy as np
import pytest
from groupings import sampled_classes
from scipy.special import logit, softmax

from medi.grouping.class_model import ClassModel
from medi.grouping.engine import Anchors
from medi.grouping.moves import Places
from medi.grouping.recognition import Recognition, RehearsedItems, fit_recognition

WIDTH, SHARE = 12, 0.7
MODEL = ClassModel(SHARE, float(WIDTH))


def bag(classes: int, seed: int) -> RehearsedItems:
    """Further items of so many groups, all as sure, and one known class, and strangers."""
    world = sampled_classes(classes + 6, 14, share=SHARE, width=WIDTH, seed=seed)
    known = Anchors(world[classes : classes + 1, :8].mean(1), np.array([8.0]))
    labels = np.repeat(np.arange(classes), 6)
    places = Places.of(world[:classes, :6].reshape(-1, WIDTH), labels, known)
    further = world[: classes + 6, 8:]
    truth = np.minimum(np.arange(classes + 6), classes + 1).repeat(6)
    return RehearsedItems(places.all_scores(further.reshape(-1, WIDTH), MODEL), np.full(classes, 0.8), truth)


@pytest.fixture(scope="module")
def bags():
    return [bag(classes, seed) for seed, classes in enumerate([2, 3, 5, 4, 2, 3] * 2)]


@pytest.fixture(scope="module")
def recognition(bags):
    return fit_recognition(bags)


def probabilities(recognition, bag, rate=None):
    return recognition.probabilities(bag.scores, recognition.start(bag.confidence, classes=1), rate)


def called_none(bags, recognition, rate):
    """Share of the items that belong somewhere, and of the strangers, whose likeliest answer is none."""
    answers, strange = [], []
    for bag in bags:
        last = bag.scores.shape[1] - 1
        answers.append(probabilities(recognition, bag, rate).argmax(1) == last)
        strange.append(bag.right == last)
    none, stranger = np.concatenate(answers), np.concatenate(strange)
    return none[~stranger].mean(), none[stranger].mean()


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.05, 0.3, 0.7])
def test_of_rehearsed_items_as_many_are_called_none_as_may_be(bags, recognition, rate):
    missed, _ = called_none(bags, recognition, rate)
    assert missed == pytest.approx(rate, abs=0.02)


def test_the_more_may_be_called_none_the_more_strangers_are_found_out(bags, recognition):
    rates = np.linspace(0, 1, 23)
    assert (np.diff([recognition.threshold(rate) for rate in rates]) >= 0).all()
    found = [called_none(bags, recognition, rate)[1] for rate in rates]
    assert (np.diff(found) >= 0).all()
    assert found[0] == 0
    assert called_none(bags, recognition, 0.05)[1] > 0.8, "strangers lie far away in this world"


def test_probabilities_sum_to_one_and_follow_the_scores(bags, recognition):
    scores, right = bags[0].scores, bags[0].right
    before = scores.copy()
    start = np.array([*recognition.trust * logit(bags[0].confidence), recognition.known, recognition.none])
    found = probabilities(recognition, bags[0])
    assert np.array_equal(scores, before)
    assert found == pytest.approx(softmax(recognition.power * scores + start, axis=1))
    assert (found.argmax(1) == right).mean() > 0.8


def test_probabilities_are_about_as_often_right_as_they_say(bags, recognition):
    best = [(found.max(1), found.argmax(1) == bag.right) for bag in bags for found in [probabilities(recognition, bag)]]
    said, right = (np.concatenate(parts) for parts in zip(*best, strict=True))
    assert said.mean() == pytest.approx(right.mean(), abs=0.06)


def test_groups_that_are_less_sure_get_fewer_items_where_rehearsals_found_that_right():
    generator = np.random.default_rng(3)
    scores = np.concatenate([generator.normal(0, 1, (400, 2)), np.zeros((400, 1))], 1)
    confidence = np.array([0.9, 0.3])
    right = np.where(generator.random(400) < confidence[scores[:, :2].argmax(1)], scores[:, :2].argmax(1), 2)
    assert fit_recognition([RehearsedItems(scores, confidence, right)]).trust > 0.3


def test_a_place_that_is_impossible_has_no_probability(recognition):
    found = recognition.probabilities(np.array([[-np.inf, 1.0, 0.0]]), np.zeros(3))
    assert found[0, 0] == 0
    assert found.sum() == pytest.approx(1)


def test_bags_with_different_numbers_of_groups_count_alike(bags):
    alone, together = (
        fit_recognition(bags[:1]),
        fit_recognition([bags[0], RehearsedItems(bags[1].scores[:0], bags[1].confidence, bags[1].right[:0])]),
    )
    assert (alone.power, alone.none) == (together.power, together.none)


def test_where_no_lead_is_known_a_rate_calls_nothing_none():
    blank = Recognition(1.0, 0.0, 0.0, 0.0, np.zeros(0))
    for rate in (0.0, 0.05, 1.0):
        assert blank.probabilities(np.array([[-9.0, 5.0]]), np.zeros(2), rate)[0].tolist() == [1, 0]
