import pytest
import torch
from small_sets import generator as seeded

from medi.kmeans import kmeans as module
from medi.kmeans import transductive
from medi.kmeans.kmeans import squared_distances
from medi.kmeans.transductive import refine
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


@pytest.mark.parametrize("balanced", [True, False])
def test_rows_of_the_plan_are_probabilities(balanced):
    centres, points, _ = one_observation_episodes()
    plan = refine(centres, points, balanced=balanced).plan
    torch.testing.assert_close(plan.sum(-1), torch.ones(30, 80))
    assert (plan >= 0).all()


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
