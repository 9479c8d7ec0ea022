"""Moves towards neighbours: against their formula written with loops, and by their promises."""

import numpy as np
import pytest
import torch

from medi.core.errors import InputError
from medi.kmeans.transductive import towards_neighbours


def some_points(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_move_equals_its_formula_written_with_loops():
    points = some_points(2, 7, 3)
    moved = towards_neighbours(points, neighbours=2).numpy()
    for episode, found in zip(points.numpy(), moved, strict=True):
        distances = ((episode[:, None] - episode[None]) ** 2).sum(2)
        nearest = [sorted((j for j in range(7) if j != i), key=lambda j: distances[i, j])[:2] for i in range(7)]
        scale = np.mean([distances[i, j] for i in range(7) for j in nearest[i]])
        weights = [np.exp([-distances[i, j] / scale for j in nearest[i]]) for i in range(7)]
        expected = episode
        for _ in range(3):
            means = [weights[i] @ expected[nearest[i]] / weights[i].sum() for i in range(7)]
            expected = (expected + means) / 2
        assert np.allclose(found, expected)


def test_groups_contract_and_stay_apart():
    groups = torch.arange(3).repeat(10)
    points = 10 * some_points(1, 3, 4, seed=1)[:, groups] + some_points(1, 30, 4)
    moved = towards_neighbours(points, neighbours=4)

    def spread(items: torch.Tensor) -> float:
        return float(torch.stack([items[0, groups == c].var(0).sum() for c in range(3)]).mean())

    assert spread(moved) < 0.5 * spread(points)
    before, after = (torch.stack([x[0, groups == c].mean(0) for c in range(3)]) for x in (points, moved))
    assert (before - after).norm(dim=1).max() < 1


def test_too_few_points_and_equal_points_are_no_trouble():
    single = some_points(3, 1, 4)
    assert torch.equal(towards_neighbours(single, neighbours=5), single)
    equal = torch.ones(1, 4, 2)
    assert torch.equal(towards_neighbours(equal, neighbours=9), equal)


@pytest.mark.parametrize(("points", "neighbours"), [(some_points(1, 4, 2), 0), (torch.zeros(3, 2), 2)])
def test_what_cannot_be_moved_says_why(points, neighbours):
    with pytest.raises(InputError, match="at least 1"):
        towards_neighbours(points, neighbours=neighbours)
