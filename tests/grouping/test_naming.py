"""How known items are named, against places computed one by one."""

import numpy as np
import pytest
from groupings import problem
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from medi.grouping.bags import Bag
from medi.grouping.engine import ALONE, known_label
from medi.grouping.lines import right_lines
from medi.grouping.moves import Places, place_scores
from medi.grouping.naming import BY_PLACE, DISCRIMINANT, Naming, choose_naming
from medi.grouping.posterior import Posterior
from medi.grouping.search import Grouped

ONCE = np.ones(12, np.int64)


def grouped(labels: np.ndarray, *, singles: bool, seed: int) -> tuple[Grouped, np.ndarray]:
    """Points of two groups beside two known classes, with any labels."""
    case = problem(12, 2, singles=singles, seed=seed)
    posterior = Posterior.of(case.branches(), case.model, case.terms.log_rate, singles=singles, most=12)
    return Grouped(labels, posterior, posterior.numbers()[0], case.terms), case.points


def any_labels(seed: int, *, singles: bool) -> np.ndarray:
    generator = np.random.default_rng(seed)
    labels = generator.choice([0, 1, known_label(0), known_label(1)] + ([] if singles else [ALONE]), 12)
    labels[:4] = 0, 0, 1, 1
    return labels


@given(st.integers(0, 99), st.booleans(), st.floats(0, 1), st.floats(-5, 5))
@settings(max_examples=40, deadline=None)
def test_a_name_is_given_where_a_class_is_far_enough_ahead_and_groups_never_run_empty(seed, singles, own, lead):
    assume(Naming(own, lead) != BY_PLACE)
    labels = any_labels(seed, singles=singles)
    found, points = grouped(labels, singles=singles, seed=seed)
    named = Naming(own, lead)(found, points, ONCE)
    scores = place_scores(points, labels, found.terms)
    alone = Places.of(points[:0], labels[:0], found.terms.anchors).all_scores(points, found.terms.model)
    least = 1 if singles else 2
    assert np.bincount(named[named >= 0], minlength=2).min() >= least
    assert not (singles and (named == ALONE).any())
    for i in range(12):
        others = np.append(scores[i, :2], -np.inf if singles else scores[i, -1])
        ahead = (1 - own) * (scores[i, 2:4] - others.max()) + own * (alone[i, :2] - alone[i, 2])
        is_named = ahead.max() > lead
        if is_named and named[i] <= known_label(0):
            assert named[i] == known_label(int(ahead.argmax()))
        elif is_named:
            assert named[i] == labels[i] >= 0, "a group that would have lost its items keeps them"
        elif labels[i] > known_label(0):
            assert named[i] == labels[i]
        else:
            assert named[i] == labels[i] or named[i] == (int(others.argmax()) if others.argmax() < 2 else ALONE)


def test_the_place_alone_changes_nothing():
    found, points = grouped(any_labels(3, singles=False), singles=False, seed=3)
    assert BY_PLACE(found, points, ONCE) is found.labels


@pytest.mark.parametrize("better", [True, False])
def test_another_way_is_chosen_where_it_is_clearly_better_and_only_there(better):
    bags, every = [], []
    for seed in range(12):
        found, points = grouped(any_labels(seed, singles=False), singles=False, seed=seed)
        itself = Naming(DISCRIMINANT, 0.0)(found, points, ONCE)
        truth = itself if better else found.labels
        bags.append(Bag(points, truth, np.ones(12, bool), found.terms.anchors, points[:0], truth[:0]))
        every.append(found)
    chosen = choose_naming(bags, every)
    right = [right_lines(bag.truth, chosen(one, bag.points, ONCE)).mean() for bag, one in zip(bags, every, strict=True)]
    before = [right_lines(bag.truth, one.labels).mean() for bag, one in zip(bags, every, strict=True)]
    assert (chosen != BY_PLACE) == better
    assert (np.mean(right) > np.mean(before)) == better
