"""The hand-written norm against torch's own, against finite differences, and against leaking queries."""

import contextlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call, grad, vmap

from medi.nn.norm import BatchStatisticsNorm, statistics_from

OBSERVATIONS = 6


@pytest.fixture(autouse=True)
def _the_same_draws_every_time():
    torch.manual_seed(0)


def a_norm_and_its_reference(width, ndim):
    reference = (nn.BatchNorm2d if ndim == 4 else nn.BatchNorm1d)(width).double()
    nn.init.normal_(reference.weight)
    nn.init.normal_(reference.bias)
    norm = BatchStatisticsNorm(width).double()
    norm.load_state_dict({"weight": reference.weight, "bias": reference.bias})
    return norm, reference


@settings(max_examples=20, deadline=None)
@given(n=st.integers(2, 9), width=st.integers(1, 5), side=st.sampled_from([None, 1, 3]), seed=st.integers(0, 99))
def test_equals_batch_norm_in_training_mode_with_its_gradients(n, width, side, seed):
    torch.manual_seed(seed)
    shape = (n, width) if side is None else (n, width, side, side)
    norm, reference = a_norm_and_its_reference(width, len(shape))
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(shape, dtype=torch.float64)
    assert torch.allclose(norm(x), reference(x))
    ours = torch.autograd.grad((norm(x) * weights).sum(), (x, *norm.parameters()))
    theirs = torch.autograd.grad((reference(x) * weights).sum(), (x, *reference.parameters()))
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.allclose(mine, other, atol=1e-7)


def test_queries_do_not_depend_on_other_queries():
    network = a_smooth_network()
    observations, queries = torch.randn(2, 5, 2, 6, 6, dtype=torch.float64)
    together = torch.cat([observations, queries])
    with statistics_from(network, 5):
        outputs = network(together)
        for i in range(5):
            assert torch.allclose(network(torch.cat([observations, queries[i : i + 1]]))[5], outputs[5 + i])
    assert not torch.allclose(network(together)[5], outputs[5])  # whereas without the context they do


def test_the_context_restores_what_was_set_before_even_after_an_error():
    norm = BatchStatisticsNorm(1)
    with contextlib.suppress(RuntimeError), statistics_from(norm, 2):
        assert norm.leading == 2
        raise RuntimeError
    assert norm.leading is None


@pytest.mark.parametrize("shape", [(1, 2), (4, 2), (1, 2, 1, 1), (4, 2, 3, 3)])
def test_constant_input_and_a_batch_of_one_give_no_nan(shape):
    norm = BatchStatisticsNorm(2)
    x = torch.full(shape, 7.0, requires_grad=True)
    first = torch.autograd.grad(norm(x).square().sum(), x, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), x)[0]
    assert torch.allclose(norm(x), torch.zeros(shape), atol=1e-2)
    assert first.isfinite().all()
    assert second.isfinite().all()


# Meta-gradients. Smooth layers only and fixed labels: with kinks, finite differences disagree for the wrong reason.


def a_smooth_network(norm=BatchStatisticsNorm):
    torch.manual_seed(0)
    network = nn.Sequential(
        *(nn.Conv2d(2, 4, 3, padding=1, bias=False), norm(4), nn.Softplus(), nn.AvgPool2d(2)),
        *(nn.Conv2d(4, 4, 3, padding=1, bias=False), norm(4), nn.Softplus(), nn.AvgPool2d(3)),
        *(nn.Flatten(), nn.Linear(4, 3), norm(3)),
    ).double()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.7)
    return network


def three_tasks():
    torch.manual_seed(1)
    x = torch.randn(3, OBSERVATIONS + 4, 2, 6, 6, dtype=torch.float64)
    y = torch.randint(3, (3, OBSERVATIONS + 4))
    return x, y


def adapted_loss(network, leading, parameters, x, y):
    """One task: two gradient steps on the observations, then the loss on the queries."""

    def loss(parameters, first, last):
        statistics = statistics_from(network, leading) if leading else contextlib.nullcontext()
        with statistics:
            # With leading statistics the observations come along; without, queries are normalised by themselves.
            start = 0 if leading else first
            logits = functional_call(network, parameters, (x[start:last],))[first - start :]
        return nn.functional.cross_entropy(logits, y[first:last])

    for _ in range(2):
        step = grad(loss)(parameters, 0, OBSERVATIONS)
        parameters = {name: value - 0.3 * step[name] for name, value in parameters.items()}
    return loss(parameters, OBSERVATIONS, len(x))


@pytest.mark.parametrize("leading", [None, OBSERVATIONS])
def test_meta_gradients_under_vmap_equal_the_loop_and_finite_differences(leading):
    network, (x, y) = a_smooth_network(), three_tasks()
    parameters = {name: value.detach() for name, value in network.named_parameters()}

    def batched(parameters):
        return vmap(lambda x, y: adapted_loss(network, leading, parameters, x, y))(x, y).mean()

    def looped(parameters):
        return torch.stack([adapted_loss(network, leading, parameters, x[i], y[i]) for i in range(3)]).mean()

    gradient, expected = grad(batched)(parameters), grad(looped)(parameters)
    for name in parameters:
        assert torch.allclose(gradient[name], expected[name], rtol=1e-9, atol=1e-12), name

    direction = {name: torch.randn_like(value) for name, value in parameters.items()}
    slope = sum((gradient[name] * direction[name]).sum() for name in parameters)

    def moved(distance):
        return batched({name: value + distance * direction[name] for name, value in parameters.items()})

    measured = (moved(1e-5) - moved(-1e-5)) / 2e-5
    assert slope.abs() > 1e-3
    assert torch.allclose(slope, measured, rtol=1e-6)
