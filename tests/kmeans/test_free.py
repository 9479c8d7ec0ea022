from itertools import product

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_sets import generator

from medi.kmeans.free import free_kmeans
from medi.kmeans.kmeans import describe, kmeans
from medi.metrics import score_episodes


def uneven_classes(scale: float, sizes: tuple[int, ...], episodes: int = 20) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    means = scale * torch.randn(episodes, len(sizes), 16, generator=generator())
    return means[:, labels] + torch.randn(episodes, len(labels), 16, generator=generator(1)), labels


def test_no_grouping_of_a_few_points_is_cheaper():
    points = torch.randn(1, 7, 2, generator=generator())
    found = free_kmeans(points, 3, generator=generator()).cost
    every = torch.tensor(list(product(range(3), repeat=7)))
    every = every[[len(set(labels)) == 3 for labels in every.tolist()]]
    least = describe(points.expand(len(every), -1, -1), every, 3).cost.min()
    assert float(found) <= 1.1 * float(least)
    assert float(found) >= float(least) - 1e-5


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(6, 15))
def test_no_single_move_would_lower_the_cost(seed, k, n):
    points = torch.randn(1, n, 3, generator=generator(seed))
    found = free_kmeans(points, k, generator=generator())
    assert len(found.labels.unique()) == k
    for item, cluster in product(range(n), range(k)):
        moved = found.labels.clone()
        moved[0, item] = cluster
        if len(moved.unique()) == k:
            assert float(describe(points, moved, k).cost) >= float(found.cost) - 1e-4


def test_uneven_classes_are_found_better_than_by_random_starts():
    points, labels = uneven_classes(1.2, (1, 2, 3, 5, 8, 10, 10, 4, 6, 1))
    truth = labels.expand(len(points), -1)
    ours, plain = (search(points, 10, generator=generator()) for search in (free_kmeans, kmeans))
    assert score_episodes(truth, ours.labels).acc.mean() > score_episodes(truth, plain.labels).acc.mean() + 0.04
    assert (ours.cost <= plain.cost * (1 + 1e-5)).float().mean() > 0.9


def test_a_single_point_is_a_cluster():
    assert free_kmeans(torch.ones(1, 1, 4), 1, generator=generator()).labels.tolist() == [[0]]
