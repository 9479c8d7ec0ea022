import numpy as np
import pytest
import torch
from small_sets import generator as seeded

from medi.core.errors import InputError
from medi.kmeans import kmeans as module
from medi.kmeans import transductive
from medi.kmeans.kmeans import squared_distances
from medi.kmeans.transductive import refine, towards_neighbours
from medi.metrics import score_episodes


def one_observation_episodes(spread: float = 0.5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Items of 5 classes, the first item of each as a poor centre, and the labels."""
    means = spread * torch.randn(30, 5, 1, 64, generator=seeded())
    items = means + torch.randn(30, 5, 16, 64, generator=seeded(1))
    return items[:, :, 0], items.flatten(1, 2), torch.arange(5).repeat_interleave(16).expand(30, -1)


@pytest.mark.parametrize("balanced", [True, False])
def test_refining_lifts_accuracy_above_the_nearest_centre(balanced):
    centres, points, labels = one_observation_episodes()
    nearest = score_episodes(labels, squared_distances(points, centres).argmin(-1)).acc.mean()
    refined = score_episodes(labels, refine(centres, points, balanced=balanced).plan.argmax(-1)).acc.mean()
    assert refined > nearest + 0.1


def test_balance_evens_out_the_columns(monkeypatch):
    monkeypatch.setattr(transductive, "SINKHORN_ITERATIONS", 200)
    centres, points, _ = one_observation_episodes()
    plan = refine(centres, points, balanced=True).plan
    torch.testing.assert_close(plan.sum(1), torch.full((30, 5), 16.0), rtol=0.01, atol=0.01)


def test_without_balance_unequal_classes_stay_unequal():
    points = torch.cat((torch.randn(4, 30, 3, generator=seeded()), 50 + torch.randn(4, 6, 3, generator=seeded(1))), 1)
    plan = refine(points[:, [0, -1]], points, balanced=False).plan
    assert plan.argmax(-1).sum(1).tolist() == [6] * 4


@pytest.mark.parametrize("scale", [2**-10, 2**10])
def test_the_scale_and_origin_of_features_do_not_matter(scale):
    centres, points, _ = one_observation_episodes()
    plain = refine(centres.double(), points.double(), balanced=True)
    other = refine(centres.double() * scale + scale, points.double() * scale + scale, balanced=True)
    torch.testing.assert_close(plain.plan, other.plan)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("k", [1, 3])
def test_identical_points_are_shared_evenly(balanced, k):
    refined = refine(torch.ones(2, k, 4), torch.ones(2, 6, 4), balanced=balanced)
    torch.testing.assert_close(refined.plan, torch.full((2, 6, k), 1 / k))
    assert refined.centres.isfinite().all()


def test_chunks_of_episodes_do_not_change_the_result(monkeypatch):
    centres, points, _ = one_observation_episodes()
    whole = refine(centres, points, balanced=True)
    monkeypatch.setattr(module, "MEMORY", {"cpu": 1})
    torch.testing.assert_close(refine(centres, points, balanced=True), whole)


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


def test_too_few_points_and_equal_points_are_no_trouble():
    single = some_points(3, 1, 4)
    assert torch.equal(towards_neighbours(single, neighbours=5), single)
    equal = torch.ones(1, 4, 2)
    assert torch.equal(towards_neighbours(equal, neighbours=9), equal)


@pytest.mark.parametrize(("points", "neighbours"), [(some_points(1, 4, 2), 0), (torch.zeros(3, 2), 2)])
def test_what_cannot_be_moved_says_why(points, neighbours):
    with pytest.raises(InputError, match="at least 1"):
        towards_neighbours(points, neighbours=neighbours)
