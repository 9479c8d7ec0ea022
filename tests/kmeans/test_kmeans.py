import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from small_sets import episodes_of
from small_sets import generator as seeded

from medi.kmeans import kmeans as module
from medi.kmeans.kmeans import describe, group_means, kmeans, plus_plus_seeds, squared_distances


def test_squared_distances_agree_with_subtraction_even_far_from_the_origin():
    points = torch.randn(3, 7, 5, generator=seeded()) + 1000
    others = torch.randn(3, 4, 5, generator=seeded(1)) + 1000
    direct = (points.double()[:, :, None] - others.double()[:, None]).square().sum(-1)
    torch.testing.assert_close(squared_distances(points, others).double(), direct, rtol=1e-3, atol=1e-3)
    assert (squared_distances(points, points) >= 0).all()


def test_cost_is_close_to_scikit_learns_or_better():
    points, _ = episodes_of(10, 5, 8, 6, 1.0)
    ours = kmeans(points, 5, generator=seeded(), restarts=20).cost
    theirs = [KMeans(5, n_init=20, random_state=0).fit(bag.numpy()).inertia_ for bag in points]
    assert (ours.numpy() / np.array(theirs) < 1.03).all()
    assert ours.mean() < np.mean(theirs) * 1.01


def test_centres_and_cost_belong_to_the_labels():
    points, _ = episodes_of(4, 3, 5, 2, 1.0)
    found = kmeans(points, 3, generator=seeded())
    for bag, labels, centres, cost in zip(points, *found, strict=True):
        means = torch.stack([bag[labels == cluster].mean(0) for cluster in range(3)])
        torch.testing.assert_close(centres, means)
        torch.testing.assert_close(cost, (bag - means[labels]).square().sum())


def test_an_emptied_cluster_is_refilled(monkeypatch):
    points, _ = episodes_of(5, 3, 6, 2, 3.0)
    # All seeds on one point: two of the three clusters start empty.
    monkeypatch.setattr(
        module, "plus_plus_seeds", lambda points, k, **_: torch.zeros(len(points), 2, k, dtype=torch.int64)
    )
    labels = kmeans(points, 3, generator=seeded(), restarts=2).labels
    assert all(len(row.unique()) == 3 for row in labels)


def test_seeds_are_distinct_points_while_there_are_any():
    points, _ = episodes_of(10, 2, 4, 3, 1.0)
    seeds = plus_plus_seeds(points, 8, generator=seeded(), restarts=3)
    assert torch.equal(seeds.sort(-1).values, torch.arange(8).expand(10, 3, 8))


def test_an_empty_cluster_is_described_by_the_first_point():
    points = torch.randn(1, 3, 2, generator=seeded())
    assert torch.equal(describe(points, torch.zeros(1, 3, dtype=torch.int64), 2).centres[0, 1], points[0, 0])


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_means_are_those_of_loops_and_zero_for_an_empty_group(batch):
    g = torch.Generator().manual_seed(0)
    points, labels = torch.randn(*batch, 7, 4, generator=g), torch.randint(3, (*batch, 7), generator=g)
    means = group_means(points, labels, 4)
    rows = zip(*(x.reshape(-1, *x.shape[-2:]) for x in (points, labels[..., None], means)), strict=True)
    for some, own, mean in rows:
        for group in range(4):
            members = some[own[:, 0] == group]
            assert torch.allclose(mean[group], members.mean(0) if len(members) else torch.zeros(4), atol=1e-6)
