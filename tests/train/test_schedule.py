import pytest

from medi.errors import InputError
from medi.train.schedule import Schedule


def test_a_rate_drops_at_its_shares_of_the_length():
    schedule = Schedule(steps=50, rate=0.2, shape="drops", drop_at=(0.6, 0.8), drop=0.1)
    for step in range(50):
        assert schedule.rate_at(step) == pytest.approx(0.2 * 0.1 ** ((step >= 30) + (step >= 40)))


def test_a_drop_every_tenth_is_a_power_of_the_tenths_done():
    schedule = Schedule(steps=1000, rate=0.1, shape="drops", drop_at=tuple(i / 10 for i in range(1, 10)), drop=0.5)
    for step in range(1000):
        assert schedule.rate_at(step) == pytest.approx(0.1 * 0.5 ** (step // 100))


@pytest.mark.parametrize("wrong", [{"steps": -1}, {"steps": 3, "rate": -1.0}, {"steps": 3, "decay": -0.1}])
def test_lengths_and_rates_that_mean_nothing_are_refused(wrong):
    with pytest.raises(InputError, match=r"step|negative"):
        Schedule(**wrong)
