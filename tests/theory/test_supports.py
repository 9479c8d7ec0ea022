import math
from statistics import NormalDist

import numpy as np
import pytest
from convergence import balls, boxes, gaussians
from small_sets import generator as seeded

from medi.core.errors import InputError
from medi.theory import overlap


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def three_intervals(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes uniform on 0 to 1, 0.5 to 1.5 and 0.6 to 1.4."""
    y = np.arange(n) % 3
    z = np.array([0.0, 0.5, 0.6])[y] + np.array([1.0, 1.0, 0.8])[y] * np.random.default_rng(0).random(n)
    return z[:, None], y


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize(
    "pair",
    [boxes(0.5), boxes(0.8), boxes(1.2), balls(0.6, 1), balls(1.2, 1), gaussians(0.7), gaussians(1.3)],
    ids=["boxes 0.5", "boxes 0.8", "boxes 1.2", "balls 0.6", "balls 1.2", "gaussians 0.7", "gaussians 1.3"],
)
def test_known_overlaps_are_found(pair, dimension):
    if pair.draw.__qualname__.startswith("balls"):
        pair = balls(pair.shift, dimension)
    found = overlap(*pair.sample(3000, dimension, seeded(3)), seed=1)
    assert found.tau == pytest.approx(pair.tau, abs=0.06)
    assert found.low <= found.tau <= found.high
    assert found.pair == (0, 1)


@pytest.mark.parametrize("apart", [0.0, 2.0, 6.0])
def test_of_gaussians_the_overlap_of_what_holds_nearly_all_of_each_is_found_not_that_of_their_endless_supports(apart):
    y = np.arange(4000) % 2
    found = [overlap(normal(4000, 1, seed=seed) + apart * y[:, None], y, resamples=20).tau for seed in range(3)]
    left_out = 0.5 / math.sqrt(1000)  # by the 1,000 held-out points of a class
    reach = NormalDist().inv_cdf(1 - left_out / 2)
    inside = NormalDist(apart).cdf(reach) - NormalDist(apart).cdf(-reach)
    assert np.mean(found) == pytest.approx(inside, abs=0.04)  # 0.98, 0.66 and 0.0002; by Definition 1 always 1


def test_points_of_a_third_class_count_too():
    # The third support lies inside the second: (0.4 + 0.8 + 1) / 3 of all points are in both.
    found = overlap(*three_intervals(3000))
    assert found.pair == (1, 2)
    assert found.tau == pytest.approx(2.2 / 3, abs=0.03)


def test_the_interval_holds_the_truth_nearly_always_where_supports_are_plain():
    found = [overlap(*boxes(0.5).sample(400, 1, seeded(s)), seed=s + 99, resamples=100) for s in range(20)]
    assert sum(one.low <= 0.5 <= one.high for one in found) >= 16
    found = [overlap(*boxes(2.0).sample(400, 1, seeded(s)), resamples=100) for s in range(5)]
    for one in found:
        assert one.tau == one.low == 0
        assert one.high == pytest.approx(1 - 0.025 ** (1 / 400))  # never seen in 400 points is not impossible


def test_moving_turning_and_scaling_change_nothing():
    y = np.arange(300) % 3
    z = normal(300, 5) + y[:, None]
    turn = np.linalg.qr(normal(5, 5, seed=1)).Q
    here, there = overlap(z, y), overlap(3 * z @ turn + 7, y)
    assert (here.tau, here.low, here.high) == pytest.approx((there.tau, there.low, there.high))


def test_classes_keep_their_numbers_and_unknown_items_are_left_out():
    z, y = three_intervals(300)
    plain = overlap(z, y)
    names = np.array([4, 10, 70])
    renamed = overlap(np.concatenate([z, z[:50]]), np.append(names[y], np.full(50, -1)))
    assert renamed.pair == tuple(names[list(plain.pair)])
    assert (renamed.tau, renamed.low, renamed.high) == (plain.tau, plain.low, plain.high)


def test_classes_of_different_sizes_and_equal_points_are_no_trouble():
    y = np.repeat([0, 1, 2], [12, 31, 50])
    assert overlap(np.eye(3)[y], y).tau == 0
    assert overlap(np.zeros((len(y), 3)), y).tau > 0.9


ZEROS, ONE, TWO = np.zeros((30, 2)), np.zeros(30, np.int64), np.arange(30) % 2


@pytest.mark.parametrize(
    ("z", "y", "options", "parts"),
    [
        (np.zeros(30), ONE, {}, ("(n, d)", "(30,)")),
        (ZEROS.astype(int), ONE, {}, ("floats", "int64")),
        (ZEROS, ONE[1:], {}, ("30 integers", "(29,)")),
        (ZEROS, np.zeros(30), {}, ("integers", "float64")),
        (ZEROS, ONE, {}, ("1 class", "two")),
        (ZEROS, np.arange(30) % 3, {}, ("class 0", "10 points", "12", "fewer neighbours")),
        (ZEROS + np.nan, TWO, {}, ("30 rows", "NaN")),
        (ZEROS, TWO, {"neighbours": 0}, ("neighbours 0",)),
        (ZEROS, TWO, {"resamples": 1}, ("1 resamples",)),
    ],
)
def test_bad_input_is_named_with_its_cure(z, y, options, parts):
    with pytest.raises(InputError) as error:
        overlap(z, y, **options)
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)
