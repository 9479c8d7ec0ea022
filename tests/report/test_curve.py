from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medi.discover.result import ClassCount
from medi.report.curve import BOX_HEIGHT, BOX_WIDTH, LEAST, TICK_GAP, curve

CHANCES = st.dictionaries(st.integers(0, 500), st.floats(0, 1), min_size=1, max_size=60)


def count(chances: dict[int, float], k: int, low: int, high: int) -> ClassCount:
    return ClassCount(k, low, high, tuple(chances), tuple(chances.values()), True, "So.")


@given(CHANCES, st.data())
def test_more_groups_lie_further_right_and_the_more_probable_is_higher_and_all_inside(chances, data):
    k = data.draw(st.sampled_from(sorted(chances)))
    laid = curve(count(chances, k, k, k))
    assert k in {bar.k for bar in laid.bars}
    assert all(0 < bar.x - laid.width / 2 < bar.x + laid.width / 2 < BOX_WIDTH for bar in laid.bars)
    assert all(0 < bar.y < BOX_HEIGHT for bar in laid.bars)
    assert all(right.x - left.x >= laid.width for left, right in pairwise(laid.bars)), "bars do not overlap"
    by_chance = sorted(laid.bars, key=lambda bar: bar.probability)
    assert all(less.y >= more.y for less, more in pairwise(by_chance))
    assert laid.peak.probability == max(chances.values()) or max(chances.values()) < LEAST


@given(CHANCES, st.data())
def test_only_improbable_numbers_at_the_ends_are_left_off(chances, data):
    k = data.draw(st.sampled_from(sorted(chances)))
    shown = [bar.k for bar in curve(count(chances, k, k, k)).bars]
    assert shown == [number for number in sorted(chances) if shown[0] <= number <= shown[-1]]
    assert all(chances[number] < LEAST for number in chances if number not in shown)


@given(CHANCES, st.integers(0, 500), st.integers(0, 500))
def test_the_band_covers_the_interval_and_nothing_else(chances, low, more):
    laid = curve(count(chances, low, low, low + more))
    if laid is None:
        assert max(chances.values()) < LEAST
        return
    left, width = laid.band
    for bar in laid.bars:
        assert (left < bar.x < left + width) == (low <= bar.k <= low + more)


@given(CHANCES, st.data())
def test_the_number_used_is_written_below_and_no_two_texts_touch(chances, data):
    k = data.draw(st.sampled_from(sorted(chances)))
    laid = curve(count(chances, k, k, k))
    assert k in dict(laid.ticks)
    assert all(right - left >= TICK_GAP for (_, left), (_, right) in pairwise(laid.ticks))
    labelled = [bar.x for bar in laid.bars if bar.k in laid.labelled]
    assert labelled
    assert all(right - left >= TICK_GAP for left, right in pairwise(labelled))


def test_heights_are_in_proportion_to_probabilities():
    laid = curve(count({2: 0.2, 3: 0.4, 4: 0.4}, 3, 2, 4))
    floor = curve(count({2: 0.0, 3: 1.0}, 3, 2, 3)).bars[0].y
    heights = [floor - bar.y for bar in laid.bars]
    assert heights[1] == heights[2] == pytest.approx(2 * heights[0])


def test_what_is_not_a_number_is_left_out():
    nan = float("nan")
    laid = curve(count({2: nan, 3: 0.5, 4: 0.5}, 4, 3, 4))
    assert [bar.k for bar in laid.bars] == [3, 4]
    assert curve(count({2: nan}, 2, 2, 2)) is None
    assert curve(ClassCount(2, 2, 2, (), (), True, "Given.")) is None
