import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from medi.cluster import kmeans as module
from medi.cluster.kmeans import describe, kmeans, plus_plus_seeds, squared_distances
from medi.errors import InputError
from medi.metrics import score_episodes


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(
    episodes: int, k: int, size: int, d: int, *, spread: float, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gaussian classes with means `spread` times as wide as the noise, in an order of its own in each episode."""
    generator = seeded(seed)
    means = spread * torch.randn(episodes, k, 1, d, generator=generator)
    points = (means + torch.randn(episodes, k, size, d, generator=generator)).flatten(1, 2)
    order = torch.rand(episodes, k * size, generator=generator).argsort(1)
    labels = torch.arange(k).repeat_interleave(size)[order]
    return points.gather(1, order.unsqueeze(-1).expand_as(points)), labels


def test_squared_distances_agree_with_subtraction_even_far_from_the_origin():
    points = torch.randn(3, 7, 5, generator=seeded()) + 1000
    others = torch.randn(3, 4, 5, generator=seeded(1)) + 1000
    direct = (points.double()[:, :, None] - others.double()[:, None]).square().sum(-1)
    torch.testing.assert_close(squared_distances(points, others).double(), direct, rtol=1e-3, atol=1e-3)
    assert (squared_distances(points, points) >= 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_well_separated_classes_are_found_in_every_episode(dtype):
    points, labels = blobs(30, 4, 6, 8, spread=20)
    found = kmeans(points.to(dtype), 4, generator=seeded())
    assert score_episodes(labels, found.labels).acc.tolist() == [1.0] * 30
    assert found.centres.dtype == dtype


def test_cost_is_close_to_scikit_learns_or_better():
    points, _ = blobs(10, 5, 8, 6, spread=1)
    ours = kmeans(points, 5, generator=seeded(), restarts=20).cost
    theirs = [KMeans(5, n_init=20, random_state=0).fit(bag.numpy()).inertia_ for bag in points]
    assert (ours.numpy() / np.array(theirs) < 1.03).all()
    assert ours.mean() < np.mean(theirs) * 1.01


def test_centres_and_cost_belong_to_the_labels():
    points, _ = blobs(4, 3, 5, 2, spread=1)
    found = kmeans(points, 3, generator=seeded())
    for bag, labels, centres, cost in zip(points, *found, strict=True):
        means = torch.stack([bag[labels == cluster].mean(0) for cluster in range(3)])
        torch.testing.assert_close(centres, means)
        torch.testing.assert_close(cost, (bag - means[labels]).square().sum())


def test_no_point_is_nearer_to_another_centre():
    points, _ = blobs(20, 4, 6, 3, spread=1)
    found = kmeans(points, 4, generator=seeded())
    assert torch.equal(squared_distances(points, found.centres).argmin(-1), found.labels)


def test_more_iterations_or_restarts_never_cost_more_on_average():
    points, _ = blobs(50, 5, 5, 16, spread=0.7)
    one = kmeans(points, 5, generator=seeded(), restarts=1).cost.mean()
    ten = kmeans(points, 5, generator=seeded(), restarts=10).cost.mean()
    assert ten < one


def test_an_emptied_cluster_is_refilled(monkeypatch):
    points, _ = blobs(5, 3, 6, 2, spread=3)
    # All seeds on one point: two of the three clusters start empty.
    monkeypatch.setattr(
        module, "plus_plus_seeds", lambda points, k, **_: torch.zeros(len(points), 2, k, dtype=torch.int64)
    )
    labels = kmeans(points, 3, generator=seeded(), restarts=2).labels
    assert all(len(row.unique()) == 3 for row in labels)


def test_the_same_generator_gives_the_same_result_and_chunks_do_not_change_what_is_found(monkeypatch):
    points, labels = blobs(9, 3, 4, 5, spread=15)
    first, second = (kmeans(points, 3, generator=seeded(7)) for _ in range(2))
    assert torch.equal(first.labels, second.labels)
    monkeypatch.setattr(module, "MEMORY", {"cpu": 1})
    assert score_episodes(labels, kmeans(points, 3, generator=seeded(7)).labels).acc.min() == 1


def test_seeds_are_distinct_points_while_there_are_any():
    points, _ = blobs(10, 2, 4, 3, spread=1)
    seeds = plus_plus_seeds(points, 8, generator=seeded(), restarts=3)
    assert torch.equal(seeds.sort(-1).values, torch.arange(8).expand(10, 3, 8))


@pytest.mark.parametrize("k", [1, 3, 6])
def test_identical_points_neither_crash_nor_give_nan(k):
    found = kmeans(torch.ones(2, 6, 3), k, generator=seeded())
    assert found.centres.isfinite().all()
    assert found.cost.tolist() == [0, 0]


def test_one_cluster_is_the_mean():
    points = torch.randn(2, 5, 3, generator=seeded())
    found = kmeans(points, 1, generator=seeded())
    torch.testing.assert_close(found.centres, points.mean(1, keepdim=True))


def test_an_empty_cluster_is_described_by_the_first_point():
    points = torch.randn(1, 3, 2, generator=seeded())
    assert torch.equal(describe(points, torch.zeros(1, 3, dtype=torch.int64), 2).centres[0, 1], points[0, 0])


@pytest.mark.parametrize(
    ("points", "k", "says"),
    [
        (torch.zeros(1, 3, 2), 4, "3 points cannot fill 4 clusters"),
        (torch.zeros(1, 3, 2), 0, "at least 1"),
        (torch.tensor([[[0.0], [torch.nan]]]), 1, "1 points hold NaN"),
        (torch.tensor([[[0.0], [torch.inf]]]), 1, "infinite"),
        (torch.zeros(3, 2), 1, r"\(episodes, n, d\)"),
        (torch.zeros(1, 3, 2, dtype=torch.int64), 1, "floats"),
    ],
)
def test_bad_points_are_refused_with_the_cure(points, k, says):
    with pytest.raises(InputError, match=says):
        kmeans(points, k, generator=seeded())
