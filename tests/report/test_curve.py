from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from medi.discovery.result import ClassCount
from medi.report.curve import HEIGHT, TICK_GAP, WIDTH, curve

SCORES = st.dictionaries(st.integers(1, 500), st.floats(-1e6, 1e6), min_size=1, max_size=60)


def count(scores: dict[int, float], k: int, low: int, high: int) -> ClassCount:
    return ClassCount(k, low, high, tuple(scores), tuple(scores.values()), True, "So.")


@given(SCORES, st.data())
def test_more_groups_lie_further_right_and_better_scores_higher_and_all_inside(scores, data):
    k = data.draw(st.sampled_from(sorted(scores)))
    laid = curve(count(scores, k, k, k))
    assert [dot.k for dot in laid.dots] == sorted(scores)
    assert laid.chosen.k == k
    assert all(0 < dot.x < WIDTH and 0 < dot.y < HEIGHT for dot in laid.dots)
    assert all(left.x < right.x for left, right in pairwise(laid.dots))
    by_score = sorted(laid.dots, key=lambda dot: dot.score)
    assert all(worse.y >= better.y for worse, better in pairwise(by_score))


@given(SCORES, st.integers(1, 500), st.integers(0, 500))
def test_the_band_covers_the_interval_and_nothing_else(scores, low, more):
    left, width = (laid := curve(count(scores, low, low, low + more))).band
    for dot in laid.dots:
        assert (left < dot.x < left + width) == (low <= dot.k <= low + more)


@given(SCORES, st.data())
def test_the_number_used_is_written_below_and_no_two_numbers_touch(scores, data):
    k = data.draw(st.sampled_from(sorted(scores)))
    ticks = curve(count(scores, k, k, k)).ticks
    assert k in dict(ticks)
    assert all(right - left >= TICK_GAP for (_, left), (_, right) in pairwise(ticks))


def test_scores_that_are_not_numbers_are_left_out():
    nan, infinity = float("nan"), float("inf")
    laid = curve(count({2: nan, 3: 0.5, 4: 0.7, 5: -infinity}, 4, 3, 4))
    assert [dot.k for dot in laid.dots] == [3, 4]
    assert curve(count({2: nan}, 2, 2, 2)) is None
    assert curve(ClassCount(2, 2, 2, (), (), True, "Given.")) is None


def test_a_flat_curve_is_drawn_across_the_middle():
    heights = {dot.y for dot in curve(count({2: 0.5, 3: 0.5, 4: 0.5}, 3, 2, 4)).dots}
    assert len(heights) == 1
    assert HEIGHT / 4 < heights.pop() < 3 * HEIGHT / 4
