"""How many groups, which, and what is known or alone, in pools made of the model itself."""

from itertools import permutations

import numpy as np
import pytest
from groupings import sampled_classes
from hypothesis import example, given, settings
from hypothesis import strategies as st

from medi.grouping.branches import Units
from medi.grouping.class_model import ClassModel
from medi.grouping.engine import ALONE, Anchors, Ask, known_label, place_numbers
from medi.grouping.lines import right_lines
from medi.grouping.numbers import NumberError, median, quantile
from medi.grouping.search import Grouped, Odds, group_units, sampled_places
from medi.metrics import acc

WIDTH, SHARE, BEHIND = 16, 0.75, 20
MODEL = ClassModel(SHARE, float(WIDTH))


def grouped(points: np.ndarray, anchors: Anchors, ask: Ask, model: ClassModel = MODEL) -> Grouped:
    return group_units(Units.single(points), anchors, model, ask, Odds())


def test_a_quantile_is_the_smallest_number_with_so_much_at_it_or_below():
    numbers = np.array([0.0, 0.1, 0.4, 0.3, 0.2])
    assert [quantile(numbers, level) for level in (0.05, 0.1, 0.11, 0.5, 0.51, 0.95, 1.0)] == [1, 1, 2, 2, 3, 4, 4]
    assert median(numbers) == 2
    assert median(np.array([1.0])) == 0


@given(
    st.lists(st.floats(0, 1), min_size=3, max_size=40).filter(lambda values: sum(values) > 0.1),
    st.floats(-1e3, 1e3),
    st.floats(0, 1e3),
)
@example([1.0, 1.0, 1.0], 0.0, 5e-324)
@settings(max_examples=40, deadline=None)
def test_blurring_keeps_all_probability_and_what_is_said_of_no_group(values, shift, spread):
    numbers = np.array(values) / sum(values)
    found = NumberError(shift, spread).blur(numbers)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    assert found[0] == numbers[0]
    assert np.array_equal(NumberError().blur(numbers), numbers)


@pytest.mark.parametrize(("k", "shift", "expected"), [(1, 0.0, 1), (5, 0.0, 5), (40, 0.0, 40), (20, np.log(1.5), 30)])
def test_blurring_moves_the_middle_by_the_shift_and_widens_by_the_spread_in_logarithms(k, shift, expected):
    found = NumberError(shift, 0.2).blur(np.eye(400)[k])
    assert median(found) == expected
    logs = np.log(np.arange(1, 400))
    if k >= 20:
        mean = found[1:] @ logs
        assert mean == pytest.approx(np.log(expected), abs=0.01)
        assert np.sqrt(found[1:] @ np.square(logs - mean)) == pytest.approx(0.2, rel=0.05)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_without_known_and_lone_items_right_lines_are_the_acc(data):
    n = data.draw(st.integers(1, 12))
    truth, labels = (np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))) for _ in range(2))
    truth, labels = np.unique(truth, return_inverse=True)[1], np.unique(labels, return_inverse=True)[1]
    assert right_lines(truth, labels).mean() == pytest.approx(acc(truth, labels))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_right_lines_are_those_of_the_best_matching_of_all(data):
    n = data.draw(st.integers(1, 9))
    values = st.lists(st.sampled_from([-3, -2, -1, 0, 1, 2]), min_size=n, max_size=n)
    truth, labels = np.array(data.draw(values)), np.array(data.draw(values))
    found = right_lines(truth, labels)
    for i, label in enumerate(labels.tolist()):
        only_one = (truth == truth[i]).sum() == 1
        if label == ALONE:
            assert found[i] == (truth[i] == ALONE or (truth[i] >= 0 and only_one))
        elif label <= -2:
            assert found[i] == (truth[i] == label)
    novel = labels >= 0
    best = max((np.array([order[label] for label in labels[novel]]) == truth[novel]).sum()
               for order in permutations(range(3)))  # fmt: skip
    assert found[novel].sum() == best
    for label in set(labels[novel & found].tolist()):
        assert len(set(truth[found & (labels == label)].tolist())) == 1


@pytest.fixture(scope="module")
def mixed():
    """Four new classes of six, three further items of each of two known classes, three one-offs; in that order."""
    world = sampled_classes(20, 30, share=SHARE, width=WIDTH, seed=3)
    anchors = Anchors(world[:6, :BEHIND].mean(1), np.full(6, float(BEHIND)))
    parts = [*world[6:10, :6], *world[:2, BEHIND : BEHIND + 6], *world[10:13, :1]]
    truth = np.concatenate([np.repeat(np.arange(4), 6), np.repeat([known_label(0), known_label(1)], 6), [ALONE] * 3])
    return np.concatenate(parts), truth, anchors


def test_in_a_mixed_pool_known_things_are_named_one_offs_are_alone_and_the_rest_is_grouped(mixed):
    points, truth, anchors = mixed
    found = grouped(points, anchors, Ask(only_novel=False))
    right = right_lines(truth, found.labels)
    assert right[truth <= -2].mean() > 0.9
    assert right[truth >= 0].mean() > 0.9
    assert right[truth == ALONE].mean() > 0.5
    assert found.labels.max() == 3
    assert found.numbers.argmax() == 4
    assert found.numbers.sum() == pytest.approx(1)
    only_new, without = (grouped(points, known, Ask()).labels for known in (anchors, Anchors.none(WIDTH)))
    assert np.array_equal(only_new, without), "known classes take nothing"
    assert (only_new >= 0).all()


def test_the_share_of_known_things_is_estimated_from_the_pool(mixed):
    points, truth, anchors = mixed
    with_known, without = (grouped(points[part], anchors, Ask(only_novel=False)) for part in (truth < 99, truth >= 0))
    assert with_known.terms.log_rate > without.terms.log_rate + 1
    assert with_known.terms.model.log_alone > without.terms.model.log_alone
    assert (without.labels >= 0).all(), "nothing new is called known"


def test_of_a_pool_of_known_things_no_more_groups_are_made_than_there_are_items():
    world = sampled_classes(4, 30, share=0.95, width=WIDTH, seed=1)
    anchors = Anchors(world[:, :BEHIND].mean(1), np.full(4, float(BEHIND)))
    found = grouped(world[:, BEHIND:].reshape(-1, WIDTH), anchors, Ask(3, only_novel=False), ClassModel(0.95, WIDTH))
    assert found.labels.max() + 1 == 3


def test_a_line_is_right_less_often_where_the_number_of_groups_may_be_another(mixed):
    points, truth, anchors = mixed
    found = grouped(points[truth >= 0], anchors, Ask(4))

    def sure(*numbers: int) -> np.ndarray:
        chances = np.zeros(len(found.numbers))
        chances[list(numbers)] = 1 / len(numbers)
        seen = sampled_places(found, chances, 60, np.random.default_rng(0))
        return seen[np.arange(len(seen)), place_numbers(found.labels, len(anchors))]

    assert sure(4).mean() > 0.95
    assert sure(2).mean() == pytest.approx(0.5, abs=0.1), "of two groups that are one, one is right"
    assert sure(2).mean() < sure(2, 4).mean() < sure(4).mean()
    assert (sure(4) < 1).all(), "however many draws agree"
