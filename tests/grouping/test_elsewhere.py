"""Where an item may be if its line is wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import LinearConstraint, minimize
from scipy.special import log_softmax

from medi.grouping.elsewhere import (
    SHARES_HELD,
    USUAL_ELSEWHERE,
    USUAL_SHARES,
    Elsewhere,
    RehearsedPlaces,
    fit_elsewhere,
    log_shares,
    place_clues,
)

LINES, PLACES = 400, 5


def made_up(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Own places and clues of lines."""
    generator = np.random.default_rng(seed)
    seen = generator.dirichlet(np.ones(PLACES + 1), LINES) + 1e-3
    fits = log_softmax(generator.normal(0, 3, (LINES, PLACES)), axis=1)
    return generator.integers(0, PLACES, LINES), place_clues(seen, fits)


@given(arrays(float, LINES, elements=st.floats(0.01, 1)), st.integers(0, 9))
def test_no_place_is_likelier_than_that_of_the_line_and_the_probabilities_are_the_nearest_such(sure, seed):
    own, clues = made_up(seed)
    found = USUAL_ELSEWHERE(own, sure, clues)
    assert np.array_equal(found.max(1), found[np.arange(LINES), own])
    assert found.min() >= 0
    assert found.sum(1).max() <= 1 + 1e-9
    for line in range(0, LINES, 40):
        shares = np.exp(log_shares(own, clues, np.array(USUAL_SHARES)))[line, :-1] * (1 - sure[line])
        wanted = np.where(np.arange(PLACES) == own[line], sure[line], shares)
        nearest = minimize(
            lambda p, wanted=wanted: np.square(p - wanted).sum(),
            wanted,
            constraints=[
                LinearConstraint(np.eye(PLACES)[own[line]] - np.eye(PLACES)[place], 0) for place in range(PLACES)
            ],
        ).x
        assert found[line] == pytest.approx(nearest, abs=1e-3)


def test_what_a_wrong_line_leaves_is_shared_out_by_the_softmax_of_the_clues():
    own, clues = made_up(1)
    sure = np.full(LINES, 0.6)
    found = Elsewhere((0.3, 0.5, -1.0))(own, sure, clues)
    for line in range(LINES):
        others = [place for place in range(PLACES + 1) if place != own[line]]
        shares = np.exp(log_softmax(clues[line, others] @ np.array([0.3, 0.5, -1.0])))
        expected = {place: 0.4 * share for place, share in zip(others, shares, strict=True) if place < PLACES}
        assert {place: found[line, place] for place in expected} == pytest.approx(expected)


def drawn(weights: tuple[float, float, float], bags: int) -> list[RehearsedPlaces]:
    """Wrong lines whose right places are as probable as the weights say."""
    found, generator = [], np.random.default_rng(7)
    for seed in range(bags):
        own, clues = made_up(seed)
        shares = np.exp(log_shares(own, clues, np.array(weights)))
        right = np.array([generator.choice(PLACES + 1, p=row) for row in shares])
        found.append(RehearsedPlaces(clues, own, right))
    return found


def test_many_wrong_lines_teach_the_weights_and_none_leave_the_usual_ones():
    assert fit_elsewhere(drawn((0.6, 0.2, 0.5), 20)).weights == pytest.approx((0.6, 0.2, 0.5), abs=0.1)
    assert fit_elsewhere([]).weights == pytest.approx(USUAL_SHARES)


def test_the_weights_found_are_those_of_the_largest_likelihood_held_to_usual_ones():
    bags = drawn((1.0, 0.1, -1.0), 1)

    def loss(weights: np.ndarray) -> float:
        held = np.array(SHARES_HELD) @ np.square(weights - np.array(USUAL_SHARES))
        return held - sum(log_shares(bag.own, bag.clues, weights)[np.arange(LINES), bag.right].sum() for bag in bags)

    best = np.array(fit_elsewhere(bags).weights)
    slopes = [(loss(best + step) - loss(best - step)) / 2e-4 for step in 1e-4 * np.eye(3)]
    assert slopes == pytest.approx([0, 0, 0], abs=0.05)
