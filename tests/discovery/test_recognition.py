"""How further items are recognised, and the trade-off between missed items and strangers."""

import numpy as np
import pytest
from groupings import sampled_classes
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from medi.cluster.class_model import Anchors, ClassModel
from medi.cluster.moves import Places
from medi.discovery.recognition import NONE_RATE, POINTS, Recognition, curve, fit_recognition, lead

WIDTH, SHARE = 12, 0.7
MODEL = ClassModel(SHARE, float(WIDTH))


def bag(classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of further items of so many groups and one known class, and of strangers; and their places."""
    world = sampled_classes(classes + 6, 14, share=SHARE, width=WIDTH, seed=seed)
    known = Anchors(world[classes : classes + 1, :8].mean(1), np.array([8.0]))
    labels = np.repeat(np.arange(classes), 6)
    places = Places.of(world[:classes, :6].reshape(-1, WIDTH), labels, known)
    further = world[: classes + 6, 8:]
    truth = np.minimum(np.arange(classes + 6), classes + 1).repeat(6)
    return places.all_scores(further.reshape(-1, WIDTH), MODEL), truth


@pytest.fixture(scope="module")
def bags():
    return [bag(classes, seed) for seed, classes in enumerate([2, 3, 5, 4, 2, 3] * 2)]


@pytest.fixture(scope="module")
def recognition(bags):
    return fit_recognition(bags)


def belonging(bags, recognition, rate):
    """Which items that belong somewhere are called none, over all bags, and which strangers are."""
    answers = [
        (recognition.is_none(scores, rate), truth == scores.shape[1] - 1) for scores, truth in bags
    ]  # fmt: skip
    none, strange = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    return none[~strange].mean(), none[strange].mean()


@pytest.mark.parametrize("rate", [0.0, 0.02, NONE_RATE, 0.3, 0.7])
def test_of_rehearsed_items_as_many_are_called_none_as_may_be(bags, recognition, rate):
    missed, found_out = belonging(bags, recognition, rate)
    assert missed == pytest.approx(rate, abs=0.02)
    assert recognition.found_out(rate) == pytest.approx(found_out, abs=0.03)


def test_the_more_may_be_called_none_the_more_strangers_are_found_out(recognition):
    rates = np.linspace(0, 1, 23)
    assert (np.diff([recognition.threshold(rate) for rate in rates]) >= 0).all()
    found = [recognition.found_out(rate) for rate in rates]
    assert (np.diff(found) >= 0).all()
    assert found[0] == 0
    assert recognition.found_out(NONE_RATE) > 0.8, "strangers lie far away in this world"


def test_probabilities_sum_to_one_and_follow_the_scores(bags, recognition):
    scores, truth = bags[0]
    before = scores.copy()
    found = recognition.probabilities(scores)
    assert np.array_equal(scores, before)
    assert found.sum(1) == pytest.approx(1)
    raised = recognition.power * scores
    raised[:, -1] += recognition.none
    assert found == pytest.approx(softmax(raised, axis=1))
    assert (found.argmax(1) == truth).mean() > 0.8


def test_probabilities_are_about_as_often_right_as_they_say(bags, recognition):
    best = [
        (found.max(1), found.argmax(1) == truth)
        for scores, truth in bags
        for found in [recognition.probabilities(scores)]
    ]
    said, right = (np.concatenate(parts) for parts in zip(*best, strict=True))
    assert said.mean() == pytest.approx(right.mean(), abs=0.05)


@given(
    st.floats(0.01, 3), st.floats(-5, 5),
    st.lists(st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=1, max_size=9),
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_probabilities_sum_to_one_whatever_the_scores(power, none, rows):
    found = Recognition(power, none, np.zeros(POINTS), np.zeros(0)).probabilities(np.array(rows))
    assert found.sum(1) == pytest.approx(1)
    assert (found >= 0).all()


def test_a_place_that_is_impossible_has_no_probability(recognition):
    found = recognition.probabilities(np.array([[-np.inf, 1.0, 0.0]]))
    assert found[0, 0] == 0
    assert found.sum() == pytest.approx(1)


def test_bags_with_different_numbers_of_groups_count_alike(bags):
    alone, together = fit_recognition(bags[:1]), fit_recognition([bags[0], (bags[1][0][:0], bags[1][1][:0])])
    assert (alone.power, alone.none) == (together.power, together.none)


def test_leads_are_over_none_and_a_curve_leaves_out_what_is_impossible():
    assert lead(np.array([[3.0, 1.0, 2.0], [0.0, 1.0, 5.0]])).tolist() == [1, -4]
    assert lead(np.zeros((2, 1))).tolist() == [-np.inf, -np.inf], "nothing but none is left"
    assert curve(np.array([-np.inf, 1.0, 3.0]))[[0, -1]].tolist() == [1, 3]
    assert len(curve(np.arange(5.0))) == POINTS
    assert len(curve(np.array([-np.inf]))) == 0


def test_where_nothing_could_be_rehearsed_nothing_is_none():
    blank = Recognition(1.0, 0.0, np.zeros(0), np.zeros(0))
    for rate in (0.0, NONE_RATE, 1.0):
        assert not blank.is_none(np.array([[-9.0, 5.0]]), rate).any()


def test_without_strangers_it_is_not_said_how_many_are_found_out(recognition):
    assert Recognition(1.0, 0.0, recognition.leads, np.zeros(0)).found_out(0.1) is None
