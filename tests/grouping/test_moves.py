"""Single moves against the weight of whole groupings."""

from dataclasses import replace

import numpy as np
import pytest
from groupings import Problem, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from medi.grouping.engine import ALONE, known_label, place_numbers
from medi.grouping.judged import Judged
from medi.grouping.moves import Places, improve, place_of, place_scores


def any_labels(case: Problem, groups: int, seed: int) -> np.ndarray:
    """Labels with so many groups of two items or more, the others anywhere they may be."""
    generator = np.random.default_rng(seed)
    n = len(case.points)
    elsewhere = [known_label(c) for c in range(len(case.anchors))] + ([] if case.singles else [ALONE])
    labels = generator.choice([*range(groups), *elsewhere], n)
    labels[generator.permutation(n)[: 2 * groups]] = np.repeat(np.arange(groups), 2)
    return labels


def moved(case: Problem, labels: np.ndarray) -> np.ndarray:
    return improve(case.units, labels, case.terms)


def places_of(case: Problem, labels: np.ndarray) -> list[int]:
    """All labels that an item may have, its own place last."""
    return [*range(labels.max() + 1), *(known_label(c) for c in range(len(case.anchors))), ALONE]


@given(seed=st.integers(0, 10_000), groups=st.integers(1, 3), known=st.integers(0, 2), singles=st.booleans())
@settings(max_examples=40, deadline=None)
def test_moves_never_lower_the_weight_and_keep_the_number_of_groups(seed, groups, known, singles):
    case = problem(9, known, singles=singles, seed=seed)
    before = any_labels(case, groups, seed)
    after = moved(case, before)
    assert case.log_weight(after) >= case.log_weight(before) - 1e-9
    sizes = np.bincount(after[after >= 0], minlength=groups)
    assert len(sizes) == groups
    assert sizes.min() >= (1 if singles else 2)
    assert after.min() >= known_label(known - 1) if known else after.min() >= ALONE
    assert not (singles and (after == ALONE).any())


@pytest.mark.parametrize("singles", [True, False])
def test_where_nothing_moves_any_more_no_single_move_would_be_better(singles):
    case = problem(9, 1, singles=singles, seed=3)
    after = moved(case, any_labels(case, 3, seed=3))
    assert np.array_equal(moved(case, after), after)
    own, least = case.log_weight(after), 1 if singles else 2
    for i in range(9):
        if after[i] >= 0 and (after == after[i]).sum() <= least:
            continue
        for label in places_of(case, after)[: -1 if singles else None]:
            changed = after.copy()
            changed[i] = label
            assert case.log_weight(changed) <= own + 1e-8


@pytest.mark.parametrize("singles", [True, False])
def test_an_items_own_place_is_as_likely_as_the_weights_of_all_its_places_say(singles):
    case = problem(8, 2, singles=singles, seed=1)
    labels = any_labels(case, 2, seed=1)
    labels[0] = 2  # the only one of its group
    powers = np.array([0.3, 1.0])
    scores = place_scores(case.points, labels, case.terms)
    judged = Judged(5, place_numbers(labels, 2), np.full((8, 7), 0.5), scores, np.eye(3))
    found = judged.fits(powers)
    for i in range(8):
        rest = np.arange(8) != i
        others = replace(case, points=case.points[rest]).log_weight(labels[rest])
        weights, own = [], None
        for label in (0, 1, 2, known_label(0), known_label(1), "own"):
            if label == 2 and not (labels[rest] == 2).any():
                continue  # nobody else is there: that is a place of one's own
            changed = labels.copy()
            changed[i] = (99 if singles else ALONE) if label == "own" else label
            if label == labels[i]:
                own = len(weights)
            weights.append(case.log_weight(changed) - others)
        own = len(weights) - 1 if own is None else own
        expected = [softmax(power * np.array(weights))[own] for power in powers]
        assert found[i] == pytest.approx(expected)


def test_scores_of_further_points_are_the_evidence_they_add_whatever_the_size_of_a_group():
    case = problem(7, 2, singles=True, seed=2)
    labels = np.array([0, 0, 1, 1, 1, ALONE, known_label(0)])
    places = Places.of(case.points, labels, case.anchors)
    new = problem(3, 0, singles=True, seed=9).points
    scores = places.all_scores(new, case.model)
    assert scores.shape == (3, 2 + 2 + 1)
    model = case.model
    for point, row in zip(new, scores, strict=True):
        length = point @ point
        for place in range(4):
            total, count = places.sums[place], places.counts[place]
            joined = model.evidence(count + 1, np.square(total + point).sum())
            assert row[place] == pytest.approx(joined - model.evidence(count, total @ total))
        assert row[-1] == pytest.approx(model.evidence(1, length))


def test_places_hold_the_sums_of_their_items():
    case = problem(6, 2, singles=False)
    labels = np.array([0, 0, 1, ALONE, known_label(1), 1])
    places = Places.of(case.points, labels, case.anchors)
    assert places.groups == 2
    assert places.counts.tolist() == [2, 2, case.anchors.counts[0], case.anchors.counts[1] + 1]
    assert places.sums[1] == pytest.approx(case.points[[2, 5]].sum(0))
    expected = case.anchors.counts[1] * case.anchors.means[1] + case.points[4]
    assert places.sums[3] == pytest.approx(expected)
    assert place_of(labels, 2).tolist() == [0, 0, 1, -1, 3, 1]
