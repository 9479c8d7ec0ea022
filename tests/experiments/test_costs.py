"""FLOPs are those that a count by hand gives; memory and seconds are those of the work."""

import costs
import pytest
import torch
from flops import conv4
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from medi.methods.inner_steps import Clusterer, InnerSteps
from medi.methods.mm import MM, MetaLoss
from medi.nets import build
from medi.nets.per_task_conv import batch_over_tasks

CPU = torch.device("cpu")


def meta_step(tasks: int, steps: int, *, ours: bool = True, side: int = 0):
    """A step of MM: 4 observations and 6 queries a task."""
    body = build("conv4", (3, 16, 16), norm="batch")
    model = Clusterer(body, body.width, 2)
    batch_over_tasks(model, side, on=ours)
    loss = MetaLoss(model, MM(inner=InnerSteps(steps=steps)), way=2)
    images, labels = torch.randn(tasks, 10, 3, 16, 16), torch.arange(2).repeat(2)
    return lambda: loss(images, labels.repeat(tasks, 1), torch.arange(2).repeat(tasks, 3)).backward()


@pytest.mark.parametrize("side", [16, 32])
def test_conv4s_forward_pass_costs_what_the_papers_formula_says(side):
    network, images = build("conv4", (3, side, side)).eval(), torch.randn(3, 3, side, side)
    with torch.inference_mode():
        assert costs.count(lambda: network(images)) == 3 * conv4(side)[0]


def test_a_training_step_costs_three_forward_passes_but_for_the_gradient_of_the_images():
    network, images = build("conv4", (3, 16, 16)), torch.randn(3, 3, 16, 16)
    whole, first = conv4(16)
    assert costs.count(lambda: network(images).sum().backward()) == 3 * (3 * whole - first)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_convolutions_in_groups_cost_what_each_group_costs_alone(groups, kind):
    def cost(channels: int, groups: int) -> int:
        layer = kind(channels, 2 * channels, 3, stride=2, groups=groups)
        images = torch.randn(2, channels, 9, 9, requires_grad=True)
        return costs.count(lambda: layer(images).sum().backward())

    assert cost(4 * groups, groups) == groups * cost(4, 1)


def test_a_second_order_step_costs_what_a_count_by_hand_gives():
    (whole, first), shown, asked, tasks, steps = conv4(16), 4, 6, 2, 2
    # A forward pass, its gradients (not of the images), and of each of these products both gradients that are wanted.
    inner = (3 * whole - first) + (2 * whole - first) + 2 * (whole - first) + (2 * whole - first)
    convolutions = tasks * (steps * shown * inner + (shown + asked) * (3 * whole - first))
    assert costs.count(meta_step(tasks, steps)) == pytest.approx(convolutions, rel=1e-3)  # and a head and pairs


def test_a_second_order_step_grows_linearly_with_inner_steps_and_with_tasks():
    one, two, three = (costs.count(meta_step(1, steps)) for steps in (1, 2, 3))
    assert three - two == two - one > 0
    assert costs.count(meta_step(2, 1)) == 2 * one


def test_every_way_to_convolve_is_counted_alike():
    ours = costs.count(meta_step(2, 1))
    assert costs.count(meta_step(2, 1, side=8)) == ours
    # Torch's own also takes a gradient with respect to the images at the inner step, and drops it.
    assert costs.count(meta_step(2, 1, ours=False)) == ours + 2 * 4 * conv4(16)[1]


@given(p=st.floats(-3, 3), c=st.floats(1e-3, 1e3))
def test_the_exponent_of_a_power_is_found(p, c):
    assert costs.exponent((1, 2, 4), [c * n**p for n in (1, 2, 4)]) == pytest.approx(p, abs=1e-9)


def test_memory_is_the_peak_of_tensors_that_live_together():
    before = torch.zeros(1000)

    def work():
        first, second = torch.zeros(2**18), torch.zeros(2**18)
        del first
        third = torch.zeros(2**17)
        return second, third, before

    assert costs.peak(work, CPU) == 2 * 4 * 2**18
    kept: list[torch.Tensor] = []
    assert costs.peak(lambda: kept.append(torch.zeros(2**20)), CPU) == 4 * 2**20
    kept.clear()
    assert costs.peak(work, CPU) == 2 * 4 * 2**18  # whatever was left by those before
    assert costs.peak(lambda: None, CPU) == 0


def test_a_clock_stops_after_its_repeats_or_its_seconds():
    assert len(costs.clock(lambda: None, CPU, 4)) == 4
    assert len(costs.clock(lambda: sum(range(100_000)), CPU, 1000, seconds=1e-9)) == 1


def test_training_loops_come_back_after_a_failure():
    real = costs._Run.fit_loop
    with pytest.raises(RuntimeError), costs.in_place_of_loops(lambda run: None):
        raise RuntimeError
    assert costs._Run.fit_loop is real
