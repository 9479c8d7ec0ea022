"""The loss of prototypes: against loops, finite differences and coarse arithmetic."""

import numpy as np
import pytest
import torch
from small_sets import generator

from medi.methods.prototypes import prototype_loss


@pytest.mark.parametrize("distance", ["squared", "euclidean"])
def test_the_loss_equals_the_papers_formula_written_with_loops(distance):
    support = torch.randn(2, 3, 4, 5, generator=generator(), dtype=torch.float64)
    query = torch.randn(2, 3, 6, 5, generator=generator(1), dtype=torch.float64)
    total = 0.0
    for task in range(2):
        prototypes = support[task].mean(1)
        for label in range(3):
            for item in query[task, label]:
                gaps = np.array([float((item - p).norm()) for p in prototypes])
                gaps = (gaps**2 if distance == "squared" else gaps) / 3
                total += gaps[label] + np.log(np.exp(-gaps).sum())
    assert float(prototype_loss(support, query, distance, temperature=3.0)) == pytest.approx(total / 36, rel=1e-9)


def test_the_loss_has_the_gradient_that_finite_differences_give():
    support, query, direction = (torch.randn(1, 3, 2, 4, generator=generator(i), dtype=torch.float64) for i in range(3))
    support.requires_grad_()
    (gradient,) = torch.autograd.grad(prototype_loss(support, query), support)
    ahead, behind = (prototype_loss(support + step * direction, query).item() for step in (1e-5, -1e-5))
    assert float((gradient * direction).sum()) == pytest.approx((ahead - behind) / 2e-5, rel=1e-6)


def test_distances_keep_their_precision_under_autocast():
    support, query = torch.randn(1, 3, 2, 64, generator=generator()), torch.randn(1, 3, 4, 64, generator=generator(1))
    exact = prototype_loss(support, query)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.allclose(prototype_loss(support, query), exact, rtol=1e-5)
