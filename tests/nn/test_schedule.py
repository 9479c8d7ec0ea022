import pytest

from medi.core.errors import InputError
from medi.nn.schedule import Schedule


def test_a_rate_drops_at_its_shares_of_the_length():
    schedule = Schedule(steps=50, rate=0.2, shape="drops", drop_at=(0.6, 0.8), drop=0.1)
    for step in range(50):
        assert schedule.rate_at(step) == pytest.approx(0.2 * 0.1 ** ((step >= 30) + (step >= 40)))


@pytest.mark.parametrize("wrong", [{"steps": -1}, {"steps": 3, "rate": -1.0}, {"steps": 3, "decay": -0.1}])
def test_lengths_and_rates_that_mean_nothing_are_refused(wrong):
    with pytest.raises(InputError, match=r"step|negative"):
        Schedule(**wrong)
