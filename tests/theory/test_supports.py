import math
from statistics import NormalDist

import pytest
import torch
from convergence import balls, boxes, gaussians

from medi.errors import InputError
from medi.theory import overlap
from medi.theory.supports import _halve


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def three_intervals(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Classes uniform on 0 to 1, 0.5 to 1.5 and 0.6 to 1.4."""
    y = torch.arange(n) % 3
    z = torch.rand(n, 1, generator=seeded(seed))
    z[:, 0] = torch.tensor([0.0, 0.5, 0.6])[y] + torch.tensor([1.0, 1.0, 0.8])[y] * z[:, 0]
    return z, y


def test_shares_are_those_of_a_plain_count():
    z, y = torch.randn(90, 3, generator=seeded()), torch.arange(90) % 3
    z += y[:, None]
    halves = _halve(z, y, 3, 4, seeded(1))
    assert [int(((y == c) & (halves.half == 0)).sum()) for c in range(3)] == [15, 15, 15]
    count = torch.zeros(3, 3, dtype=torch.float64)
    radius = {}
    for side in (0, 1):
        for c in range(3):
            own = sorted(nth_nearest(z, y, halves.half, i, c) for i in range(90) if (halves.half[i], y[i]) == (side, c))
            radius[side, c] = own[14 - 1]  # of 15 held-out points all but a share 0.5 / sqrt(15): at least 13.06
    for i in range(90):
        inside = {c for c in range(3) if nth_nearest(z, y, halves.half, i, c) <= radius[int(halves.half[i]), c] + 1e-6}
        inside.add(int(y[i]))
        for a in inside:
            for b in inside - {a}:
                count[a, b] += 1
    torch.testing.assert_close(halves.overlaps(), count / 90)


def nth_nearest(z, y, half, item, label) -> float:
    """Distance of an item to its fourth nearest neighbour of a class in the other half."""
    others = z[(half != half[item]) & (y == label)]
    return float((z[item] - others).norm(dim=1).sort().values[3])


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
    y = torch.arange(4000) % 2
    z = torch.randn(4000, 1, generator=seeded(5)) + apart * y[:, None]
    left_out = 0.5 / math.sqrt(1000)  # by the 1,000 held-out points of a class
    reach = NormalDist().inv_cdf(1 - left_out / 2)
    inside = NormalDist(apart).cdf(reach) - NormalDist(apart).cdf(-reach)
    assert overlap(z, y).tau == pytest.approx(inside, abs=0.04)  # 0.98, 0.66 and 0.0002; by Definition 1 always 1


def test_the_estimate_comes_nearer_as_points_are_added():
    errors = []
    for n in (60, 500, 4000):
        found = [overlap(*boxes(0.6).sample(n, 2, seeded(s)), seed=s + 9, bootstrap=20).tau for s in range(3)]
        errors.append(sum(abs(tau - 0.4) for tau in found) / 3)
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.02


def test_points_of_a_third_class_count_too():
    # The third support lies inside the second: (0.4 + 0.8 + 1) / 3 of all points are in both.
    found = overlap(*three_intervals(3000))
    assert found.pair == (1, 2)
    assert found.tau == pytest.approx(2.2 / 3, abs=0.03)


def test_the_interval_holds_the_truth_nearly_always_where_supports_are_plain():
    found = [overlap(*boxes(0.5).sample(400, 1, seeded(s)), seed=s + 99, bootstrap=100) for s in range(20)]
    assert sum(one.low <= 0.5 <= one.high for one in found) >= 16
    found = [overlap(*boxes(2.0).sample(400, 1, seeded(s)), bootstrap=100) for s in range(5)]
    for one in found:
        assert one.tau == one.low == 0
        assert one.high == pytest.approx(1 - 0.025 ** (1 / 400))  # never seen in 400 points is not impossible


def test_a_wider_confidence_gives_a_wider_interval():
    z, y = three_intervals(300)
    narrow, wide = overlap(z, y, confidence=0.5), overlap(z, y, confidence=0.99)
    assert narrow.tau == wide.tau
    assert wide.low < narrow.low < narrow.high < wide.high
    slim = overlap(z, y, confidence=1e-6)
    assert slim.low <= slim.tau <= slim.high


def test_one_distribution_under_two_names_overlaps_wholly():
    z, y = torch.randn(2000, 2, generator=seeded()), torch.arange(2000) % 2
    assert overlap(z, y).tau > 0.96


def test_moving_turning_and_scaling_change_nothing():
    z, y = torch.randn(300, 5, generator=seeded(), dtype=torch.float64), torch.arange(300) % 3
    z += y[:, None]
    turn = torch.linalg.qr(torch.randn(5, 5, generator=seeded(1), dtype=torch.float64)).Q
    here, there = overlap(z, y), overlap(3 * z @ turn + 7, y)
    assert (here.tau, here.low, here.high) == pytest.approx((there.tau, there.low, there.high))


def test_classes_keep_their_numbers_and_unknown_items_are_left_out():
    z, y = three_intervals(300)
    plain = overlap(z, y)
    more, named = torch.cat([z, z[:50]]), torch.cat([torch.tensor([4, 10, 70])[y], torch.full((50,), -1)])
    renamed = overlap(more, named)
    assert renamed.pair == tuple(torch.tensor([4, 10, 70])[list(plain.pair)].tolist())
    assert (renamed.tau, renamed.low, renamed.high) == (plain.tau, plain.low, plain.high)


def test_classes_of_different_sizes_and_equal_points_are_no_trouble():
    y = torch.tensor([0] * 12 + [1] * 31 + [2] * 50)
    apart = overlap(torch.eye(3)[y], y)
    assert apart.tau == 0
    together = overlap(torch.zeros(len(y), 3), y)
    assert together.tau > 0.9


@pytest.mark.parametrize(
    ("z", "y", "options", "parts"),
    [
        (torch.zeros(30), torch.zeros(30).long(), {}, ("(n, d)", "(30,)")),
        (torch.zeros(30, 2).long(), torch.zeros(30).long(), {}, ("floats", "int64")),
        (torch.zeros(30, 2), torch.zeros(29).long(), {}, ("30 integers", "(29,)")),
        (torch.zeros(30, 2), torch.zeros(30), {}, ("integers", "float32")),
        (torch.zeros(30, 2), torch.zeros(30).long(), {}, ("1 class", "two")),
        (torch.zeros(30, 2), torch.arange(30) % 3, {}, ("class 0", "10 points", "12", "fewer neighbours")),
        (torch.full((30, 2), torch.nan), torch.arange(30) % 2, {}, ("30 rows", "NaN")),
        (torch.zeros(30, 2), torch.arange(30) % 2, {"neighbours": 0}, ("neighbours 0",)),
        (torch.zeros(30, 2), torch.arange(30) % 2, {"bootstrap": 1}, ("bootstrap 1",)),
        (torch.zeros(30, 2), torch.arange(30) % 2, {"confidence": 1.0}, ("confidence 1.0",)),
    ],
)
def test_bad_input_is_named_with_its_cure(z, y, options, parts):
    with pytest.raises(InputError) as error:
        overlap(z, y, **options)
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)
