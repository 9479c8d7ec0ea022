"""Losses of pairs: against loops, and where outputs are certain, extreme or absent."""

import math
from fractions import Fraction

import pytest
import torch
from small_sets import generator
from torch.nn.functional import binary_cross_entropy

from medi.methods.pair_losses import (
    divergence_loss,
    likelihood_loss,
    pair_log_probabilities,
    rank_pairs,
    two_view_loss,
)


def case(n: int = 6, k: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    logits = 2 * torch.randn(n, k, generator=generator(), dtype=torch.float64)
    return logits, torch.randint(0, 2, (n, n), generator=generator(1)).double()


@pytest.mark.parametrize("top", [3, 5])
def test_rank_pairs_compare_sets_of_the_largest_features(top):
    features = torch.randn(8, 5, 6, generator=generator())
    found = rank_pairs(features, top)
    for items, pairs in zip(features, found, strict=True):
        sets = [{i for i in range(6) if (row > row[i]).sum() < top} for row in items]
        assert pairs.tolist() == [[float(a == b) for a in sets] for b in sets]
    assert 40 < found.sum() < 200, "some pairs beside those of an item with itself"


def test_asking_for_more_features_than_there_are_makes_all_similar():
    assert rank_pairs(torch.randn(4, 3), 10).all()


def test_the_likelihood_is_that_of_sharing_a_cluster():
    logits = torch.randn(2, 5, 3, generator=generator(), dtype=torch.float64)
    similar = torch.randint(0, 2, (2, 5, 5), generator=generator()).double()
    for p, s, found in zip(logits.softmax(-1), similar, likelihood_loss(logits, similar), strict=True):
        losses = [binary_cross_entropy(p[i] @ p[j], s[i, j]) for i in range(5) for j in range(5)]
        torch.testing.assert_close(found, torch.stack(losses).mean())


def exactly(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """log(p_i . p_j) and log(1 - p_i . p_j) in fractions of whole numbers, so that nothing is rounded on the way."""
    rows = [[Fraction(math.exp(value)) for value in row] for row in logits.double().tolist()]
    p = [[value / sum(row) for value in row] for row in rows]
    same = [[sum(a * b for a, b in zip(one, other, strict=True)) for other in p] for one in p]
    together = torch.tensor([[_log(value) for value in row] for row in same], dtype=torch.float64)
    return together, torch.tensor([[_log(1 - value) for value in row] for row in same], dtype=torch.float64)


def _log(value: Fraction) -> float:
    if value > Fraction(1, 2):
        return math.log1p(float(value - 1))
    return math.log(float(value)) if float(value) else math.log(value.numerator) - math.log(value.denominator)


@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0, 200.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probabilities_of_pairs_keep_their_digits_however_certain_the_outputs_are(scale, dtype):
    logits = (scale * torch.randn(5, 3, generator=generator(2), dtype=torch.float64)).to(dtype)
    tolerance = 20 * torch.finfo(dtype).eps
    for found, true in zip(pair_log_probabilities(logits), exactly(logits), strict=True):
        torch.testing.assert_close(found.double(), true, rtol=tolerance, atol=max(1.0, scale) * tolerance)


@pytest.mark.parametrize("scale", [1.0, 20.0, 60.0])
def test_the_likelihoods_gradient_is_that_of_finite_differences_where_outputs_are_certain_too(scale):
    logits, similar = case()
    logits = (scale * logits).requires_grad_()
    assert torch.autograd.gradcheck(likelihood_loss, (logits, similar), eps=1e-5, atol=1e-7, rtol=1e-5)
    assert torch.autograd.gradgradcheck(likelihood_loss, (logits, similar), eps=1e-5, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("gap", [17.0, 50.0, 1000.0])
def test_wrong_pairs_keep_their_gradient_at_saturation_in_float32(gap):
    def gradients(rows: list[list[float]], similar: float) -> torch.Tensor:
        logits = torch.tensor(rows, requires_grad=True)
        likelihood_loss(logits, torch.full((2, 2), similar)).backward()
        return logits.grad

    # p = (1 - e, e) twice, told to part: the mean of -log(e_i + e_j) over four pairs falls by 1/2 as a log e grows.
    assert torch.allclose(gradients([[gap, 0.0], [gap, 0.0]], 0.0), torch.tensor([[0.5, -0.5]] * 2), atol=1e-3)
    # (1 - e, e) and (e, 1 - e), told to meet: two of the four pairs are wrong, and cost -log(e_1 + e_2) each.
    apart = gradients([[gap, 0.0], [0.0, gap]], 1.0)
    assert torch.allclose(apart, torch.tensor([[0.25, -0.25], [-0.25, 0.25]]), atol=1e-3)


def test_one_cluster_tells_nothing_apart_and_costs_nothing():
    logits = torch.randn(2, 4, 1, generator=generator(), requires_grad=True)
    loss = likelihood_loss(logits, torch.zeros(2, 4, 4))
    loss.sum().backward()
    assert loss.tolist() == [0, 0]
    assert not logits.grad.any()


def test_the_divergence_is_its_formula_written_with_loops():
    logits, similar = case()
    p, total = logits.softmax(1).tolist(), 0.0
    for i in range(6):
        for j in range(6):
            divergence = sum(a * math.log(a / b) for a, b in zip(p[i], p[j], strict=True))
            total += divergence if similar[i, j] else max(0.0, 2 - divergence)
    assert float(divergence_loss(logits, similar)) == pytest.approx(total / 36)


def test_the_divergence_takes_no_gradient_through_the_first_of_a_pair():
    logits, similar = case()
    logits.requires_grad_()
    divergence_loss(logits, similar).backward()
    second = logits.detach().clone().requires_grad_()
    p, log_q = logits.detach().softmax(1), second.log_softmax(1)
    divergence = (p * p.log()).sum(1)[:, None] - torch.einsum("ik,jk->ij", p, log_q)
    torch.where(similar > 0, divergence, (2 - divergence).clamp(min=0)).mean().backward()
    torch.testing.assert_close(logits.grad, second.grad)


def test_a_cluster_of_certain_items_costs_a_finite_amount():
    certain = torch.eye(3)[torch.tensor([0, 0, 1])].requires_grad_()
    loss = two_view_loss(certain, certain, torch.zeros(3, 3))
    loss.backward()
    assert loss.isfinite()
    assert certain.grad.isfinite().all()


def test_pairs_that_are_nearly_certain_and_wrong_are_still_pulled_apart():
    logits = torch.tensor([[17.0, 0.0], [17.0, 0.0]], requires_grad=True)  # the product is 1 - 8e-8
    p = logits.softmax(1)
    two_view_loss(p, p, torch.eye(2)).backward()
    assert (logits.grad[:, 1] < -0.1).all()
