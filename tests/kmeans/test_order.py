import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.kmeans.order import content_order, take


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([torch.float32, torch.uint8]))
def test_reordered_points_are_put_in_the_same_order_bit_for_bit(seed, n, kind):
    draw = torch.Generator().manual_seed(seed)
    points = (255 * torch.rand(3, n, 4, 5, generator=draw)).to(kind)
    order = torch.rand(3, n, generator=draw).argsort(1)
    shuffled = take(points, order)
    assert torch.equal(take(points, content_order(points)), take(shuffled, content_order(shuffled)))


def test_points_that_are_alike_stay_in_the_order_in_which_they_come():
    assert torch.equal(content_order(torch.ones(2, 6, 3)), torch.arange(6).expand(2, -1))
