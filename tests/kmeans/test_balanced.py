from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_sets import episodes_of
from small_sets import generator as seeded

from medi.kmeans.balanced import assign_balanced, assign_nearly, balanced_kmeans, sinkhorn
from medi.kmeans.kmeans import describe, squared_distances
from medi.kmeans.swaps import SwapSearch


def sizes(labels: torch.Tensor, k: int) -> torch.Tensor:
    return torch.nn.functional.one_hot(labels, k).sum(1)


def all_balanced_labels(n: int, k: int) -> torch.Tensor:
    every = torch.tensor(list(product(range(k), repeat=n)))
    spread = sizes(every, k)
    return every[spread.amax(1) - spread.amin(1) <= 1]


def least_cost(points: torch.Tensor, k: int) -> torch.Tensor:
    """Brute force over every balanced partition; (episodes,)."""
    every = all_balanced_labels(points.shape[1], k)
    return torch.stack([describe(bag.expand(len(every), -1, -1), every, k).cost.min() for bag in points])


@pytest.mark.parametrize(("n", "k"), [(6, 2), (7, 3), (8, 3), (9, 3), (9, 2), (5, 3)])
def test_the_optimum_is_found_in_nearly_all_draws_and_never_undercut(n, k):
    points = torch.randn(40, n, 3, generator=seeded(n), dtype=torch.float64)
    best, found = least_cost(points, k), balanced_kmeans(points, k, generator=seeded()).cost
    assert (found >= best * (1 - 1e-9)).all()
    assert (found <= best * (1 + 1e-9)).double().mean() >= 0.95


@pytest.mark.parametrize(("k", "d", "spread"), [(5, 64, 0.42), (10, 128, 0.4), (20, 256, 0.33)])
def test_the_true_grouping_is_rarely_cheaper(k, d, spread):
    points, labels = episodes_of(30, k, 5, d, spread)
    found = balanced_kmeans(points, k, generator=seeded())
    assert (found.cost > describe(points, labels, k).cost * 1.00001).double().mean() <= 0.05


@given(n=st.integers(2, 23), k=st.integers(1, 7), seed=st.integers(0, 100))
@settings(max_examples=25, deadline=None)
def test_sizes_differ_by_at_most_one(n, k, seed):
    k = min(n, k)
    points = torch.randn(3, n, 4, generator=seeded(seed))
    found = balanced_kmeans(points, k, generator=seeded(seed), restarts=2, swaps=2)
    spread = sizes(found.labels, k)
    assert (spread.amax(1) - spread.amin(1)).max() <= 1
    torch.testing.assert_close(describe(points, found.labels, k).cost, found.cost)


def test_features_of_any_scale_give_the_same_partition():
    points, _ = episodes_of(10, 4, 5, 16, 0.6)
    small, large = (balanced_kmeans(points * scale, 4, generator=seeded()).labels for scale in (2**-20, 2**20))
    assert torch.equal(small, large)


@pytest.mark.parametrize(("n", "k"), [(12, 3), (11, 3), (7, 2)])
def test_after_swapping_no_swap_or_move_that_keeps_the_sizes_improves(n, k):
    points = torch.randn(5, n, 2, generator=seeded(), dtype=torch.float64)
    labels = (torch.arange(n) % k).expand(5, -1)
    search = SwapSearch(squared_distances(points, points), labels[:, None], k)
    search.descend()
    improved = search.labels()[:, 0]
    assert torch.equal(sizes(improved, k).sort(1).values, sizes(labels, k).sort(1).values)
    cost = describe(points, improved, k).cost
    assert (cost <= describe(points, labels, k).cost).all()
    for i in range(n):
        for j in range(i):
            swapped = improved.clone()
            swapped[:, i], swapped[:, j] = improved[:, j], improved[:, i]
            assert (describe(points, swapped, k).cost >= cost * (1 - 1e-9)).all()
        for cluster in range(k):
            moved = improved.clone()
            moved[:, i] = cluster
            same = (sizes(moved, k).sort(1).values == sizes(improved, k).sort(1).values).all(1)
            assert (describe(points, moved, k).cost >= cost * (1 - 1e-9))[same].all()


@pytest.mark.parametrize(("n", "k"), [(6, 3), (7, 3), (5, 2), (8, 3)])
def test_exact_assignment_is_the_cheapest_of_all_balanced_ones(n, k):
    cost = torch.rand(5, n, k, generator=seeded())
    every = all_balanced_labels(n, k)
    least = [table[torch.arange(n), every].sum(1).min() for table in cost]
    torch.testing.assert_close(cost.gather(-1, assign_balanced(cost).unsqueeze(-1)).sum((1, 2)), torch.stack(least))


def test_to_assign_nearly_costs_little_more():
    cost = torch.rand(50, 60, 6, generator=seeded())
    exact, nearly = (cost.gather(-1, assign(cost).unsqueeze(-1)).sum() for assign in (assign_balanced, assign_nearly))
    assert exact <= nearly <= exact * 1.1


@given(n=st.integers(1, 12), k=st.integers(1, 5), seed=st.integers(0, 100), temperature=st.floats(0.05, 10))
@settings(max_examples=25, deadline=None)
def test_sinkhorn_meets_its_marginals(n, k, seed, temperature):
    draw = seeded(seed)
    cost = torch.rand(2, n, k, generator=draw, dtype=torch.float64)
    plan = sinkhorn(cost, temperature=temperature, iterations=1000)
    torch.testing.assert_close(plan.sum(-1), torch.ones(2, n, dtype=torch.float64))
    torch.testing.assert_close(plan.sum(-2), torch.full((2, k), n / k, dtype=torch.float64), rtol=1e-3, atol=1e-3)
    columns = torch.rand(2, k, generator=draw).double() + 0.1
    plan = sinkhorn(cost, temperature=temperature, columns=columns, iterations=1000)
    torch.testing.assert_close(plan.sum(-1), torch.ones(2, n, dtype=torch.float64))
    shares = columns / columns.sum(-1, keepdim=True)
    torch.testing.assert_close(plan.sum(-2) / n, shares, rtol=1e-3, atol=1e-3)


def test_a_cold_sinkhorn_plan_is_finite_and_close_to_the_assignment():
    cost = torch.rand(3, 8, 4, generator=seeded()) * 1e4
    plan = sinkhorn(cost, temperature=100.0, iterations=2000)
    assert plan.isfinite().all()
    exact = assign_balanced(cost)
    assert (plan.argmax(-1) == exact).double().mean() > 0.9
