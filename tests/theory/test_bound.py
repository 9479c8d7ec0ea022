import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medi import theory
from medi.core.errors import InputError

counts = st.integers(1, 10**6)
deltas = st.floats(1e-6, 0.999)
losses = st.floats(1e-3, 1e3)


def test_the_bound_is_theorem_3_worked_out_by_hand():
    # log(1 / delta) = 2, n = 100: the root is 0.1, so 2 * 0.01 + (4 + 1) * 0.1.
    assert theory.generalisation_bound(100, 0.01, 1.0, math.exp(-2)) == pytest.approx(0.52)
    assert theory.generalisation_bound(100, 0.0, 3.0, math.exp(-2)) == pytest.approx(0.3)


@given(counts, st.floats(0, 1), losses, deltas)
def test_the_bound_grows_with_instability_with_the_loss_and_with_certainty(n, beta, loss, delta):
    here = theory.generalisation_bound(n, beta, loss, delta)
    assert here >= theory.generalisation_bound(n, beta / 2, loss, delta)
    assert here >= theory.generalisation_bound(n, beta, loss / 2, delta)
    assert here <= theory.generalisation_bound(n, beta, loss, delta / 2)


@given(st.integers(10, 10**6), losses, st.floats(0.01, 0.999))
def test_at_the_largest_useful_stability_the_bound_is_the_largest_loss(n, loss, delta):
    assert theory.generalisation_bound(n, theory.largest_useful_beta(n, loss, delta), loss, delta) == pytest.approx(
        loss
    )


def test_with_too_few_tasks_no_stability_is_useful():
    assert theory.largest_useful_beta(1, 1.0, 0.05) < 0


@given(st.floats(0.05, 2), st.floats(0, 3), st.floats(0.1, 2), st.floats(0.01, 0.9))
def test_tasks_needed_are_the_first_that_a_search_comes_to(epsilon, scaled, loss, delta):
    def enough(n: int) -> bool:
        return theory.generalisation_bound(n, scaled / n, loss, delta) <= epsilon

    found = theory.tasks_needed(epsilon, scaled, loss, delta)
    assert enough(found)
    below = range(1, found) if found < 300 else [1, found // 2, found - 2, found - 1]
    assert not any(enough(n) for n in below)


@pytest.mark.parametrize(
    ("function", "arguments", "culprit"),
    [
        (theory.generalisation_bound, (0, 0.1, 1, 0.1), "0 tasks"),
        (theory.generalisation_bound, (10, -0.1, 1, 0.1), "beta is -0.1"),
        (theory.generalisation_bound, (10, math.nan, 1, 0.1), "beta is nan"),
        (theory.generalisation_bound, (10, 0.1, 0, 0.1), "max_loss is 0"),
        (theory.generalisation_bound, (10, 0.1, math.inf, 0.1), "max_loss is inf"),
        (theory.generalisation_bound, (10, 0.1, 1, 0), "delta is 0"),
        (theory.generalisation_bound, (10, 0.1, 1, 1), "delta is 1"),
        (theory.tasks_needed, (0.0, 1.0, 1.0, 0.05), "epsilon is 0"),
        (theory.tasks_needed, (math.nan, 1.0, 1.0, 0.05), "epsilon is nan"),
        (theory.tasks_needed, (0.1, -1.0, 1.0, 0.05), "scaled_beta is -1"),
        (theory.tasks_needed, (0.1, math.inf, 1.0, 0.05), "scaled_beta is inf"),
        (theory.tasks_needed, (1e-9, 1.0, 1.0, 0.05), "more than 10\\^12"),
        (theory.tasks_needed, (0.1, 1e200, 1.0, 0.05), "more than 10\\^12"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(function, arguments, culprit):
    with pytest.raises(InputError, match=culprit):
        function(*arguments)
