"""From what the posterior says to the probability that a line is right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from medi.discovery.trust import GUESS, SURE, TEMPERATURES, Trust, fit_trust, untested

shares = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(np.array)


@pytest.fixture(scope="module")
def rehearsed():
    """Clues of 4,000 lines, and whether they are right: the second clue says something at one temperature alone."""
    generator = np.random.default_rng(0)
    sampled, own = generator.uniform(0.02, 0.98, 4000), generator.uniform(0.02, 0.98, (4000, len(TEMPERATURES)))
    chance = expit(0.5 * logit(sampled) + 0.8 * logit(own[:, 2]) - 0.3)
    return sampled, own, generator.random(4000) < chance, chance


def test_probabilities_are_those_with_which_rehearsed_lines_are_right(rehearsed):
    sampled, own, right, chance = rehearsed
    trust = fit_trust(sampled, own, right)
    assert trust.temperature == TEMPERATURES[2]
    found = trust(sampled, own[:, 2])
    assert np.abs(found - chance).mean() < 0.03
    for low in np.arange(0.1, 0.9, 0.1):
        inside = (found >= low) & (found < low + 0.1)
        assert right[inside].mean() == pytest.approx(found[inside].mean(), abs=0.07)


def test_a_posterior_that_is_overconfident_is_taken_down(rehearsed):
    sampled, own, _, _ = rehearsed
    right = np.random.default_rng(1).random(len(sampled)) < expit(0.3 * logit(sampled))
    found = fit_trust(sampled, own, right)(np.array([0.95]), np.array([0.5]))
    assert found[0] == pytest.approx(expit(0.3 * logit(0.95)), abs=0.05)


@pytest.mark.parametrize("right", [True, False])
def test_a_few_lines_that_agree_do_not_make_it_sure(right):
    few = fit_trust(np.full(3, 0.7), np.full((3, len(TEMPERATURES)), 0.7), np.full(3, right))
    many = fit_trust(np.full(500, 0.7), np.full((500, len(TEMPERATURES)), 0.7), np.full(500, right))
    one = np.array([0.7])
    assert 0.5 < few(one, one)[0] < 0.95
    assert many(one, one)[0] > 0.95 if right else many(one, one)[0] < 0.1


@given(shares, st.floats(-3, 30), st.floats(-3, 30), st.floats(-20, 20))
@settings(max_examples=60, deadline=None)
def test_no_line_is_ever_surer_than_rehearsals_can_tell(sampled, a, b, c):
    found = Trust(0.2, (a, b, c))(sampled, sampled[::-1])
    assert (found <= SURE).all()
    assert (found >= 1 - SURE).all()


@given(shares)
@settings(max_examples=60, deadline=None)
def test_without_rehearsals_a_line_is_a_guess_at_best_and_in_the_posteriors_order(sampled):
    found = untested()(np.sort(sampled), np.full(len(sampled), 0.9))
    assert (found <= GUESS).all()
    assert (np.diff(found) >= 0).all()
