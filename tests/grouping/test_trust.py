"""From what the posterior says to the probability that a line is right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from medi.grouping.engine import GUESS
from medi.grouping.trust import SURE, TEMPERATURES, UNTESTED, RehearsedLines, Trust, fit_trust

PLACES = 7
"""Groups and known classes of every pool here: the clue of them is 0."""

shares = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(np.array)


@pytest.fixture(scope="module")
def rehearsed():
    """Clues of 4,000 lines, and whether they are right: the second clue says something at one temperature alone."""
    generator = np.random.default_rng(0)
    sampled, own = generator.uniform(0.02, 0.98, 4000), generator.uniform(0.02, 0.98, (4000, len(TEMPERATURES)))
    chance = expit(0.5 * logit(sampled) + 0.8 * logit(own[:, 2]) - 0.3)  # all in pools alike
    return sampled, own, generator.random(4000) < chance, chance


def test_probabilities_are_those_with_which_rehearsed_lines_are_right(rehearsed):
    sampled, own, right, chance = rehearsed
    trust = fit_trust([RehearsedLines(sampled, own, PLACES, right)])
    assert trust.temperature == TEMPERATURES[2]
    found = trust(sampled, own[:, 2], PLACES)
    assert np.abs(found - chance).mean() < 0.03
    for low in np.arange(0.1, 0.9, 0.1):
        inside = (found >= low) & (found < low + 0.1)
        assert right[inside].mean() == pytest.approx(found[inside].mean(), abs=0.07)


@pytest.mark.parametrize("right", [True, False])
def test_a_few_lines_that_agree_do_not_make_it_sure(right):
    few, many = (
        fit_trust([RehearsedLines(np.full(n, 0.7), np.full((n, len(TEMPERATURES)), 0.7), PLACES, np.full(n, right))])
        for n in (3, 500)
    )
    one = np.array([0.7])
    assert 0.5 < few(one, one, PLACES)[0] < 0.95
    assert many(one, one, PLACES)[0] > 0.95 if right else many(one, one, PLACES)[0] < 0.1


def test_lines_of_pools_that_went_badly_as_a_whole_are_trusted_less():
    generator = np.random.default_rng(2)
    pools = []
    for level in (0.3, 0.9) * 10:
        sampled = np.clip(generator.normal(level, 0.15, 60), 0.02, 0.98)
        chance = expit(0.2 * logit(sampled) + logit(level))
        right = generator.random(60) < chance
        pools.append(RehearsedLines(sampled, np.full((60, len(TEMPERATURES)), 0.5), PLACES, right))
    trust = fit_trust(pools)
    badly, well = (trust(np.array([0.6, level]), np.full(2, 0.5), PLACES)[0] for level in (0.1, 0.95))
    assert badly < well


@given(shares, st.floats(-3, 30), st.floats(-3, 30), st.floats(-20, 20))
@settings(max_examples=60, deadline=None)
def test_no_line_is_ever_surer_than_rehearsals_can_tell(sampled, a, b, c):
    found = Trust(0.2, (a, b, c))(sampled, sampled[::-1], PLACES)
    assert (found <= SURE).all()
    assert (found >= 1 - SURE).all()


@given(shares)
@settings(max_examples=60, deadline=None)
def test_without_rehearsals_a_line_is_a_guess_at_best_and_in_the_posteriors_order(sampled):
    found = UNTESTED(np.sort(sampled), np.full(len(sampled), 0.9), PLACES)
    assert (found <= GUESS).all()
    assert (np.diff(found) >= 0).all()
