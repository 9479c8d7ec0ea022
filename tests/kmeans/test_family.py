"""What plain, balanced and free k-means owe alike."""

import pytest
import torch
from small_sets import episodes_of, generator

from medi.core.errors import InputError
from medi.kmeans import free
from medi.kmeans import kmeans as module
from medi.kmeans.balanced import balanced_kmeans
from medi.kmeans.free import free_kmeans
from medi.kmeans.kmeans import kmeans
from medi.metrics import score_episodes

FAMILY = (kmeans, balanced_kmeans, free_kmeans)
every = pytest.mark.parametrize("search", FAMILY, ids=lambda search: search.__name__)


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("k", "size"), [(20, 5), (3, 40), (2, 100)])
def test_well_separated_classes_are_found_in_every_episode(search, k, size, dtype):
    points, labels = episodes_of(10, k, size)
    found = search(points.to(dtype), k, generator=generator())
    assert score_episodes(labels, found.labels).acc.min() == 1
    assert found.centres.dtype == dtype


@every
def test_the_same_generator_gives_the_same_result_and_chunks_do_not_change_what_is_found(search, monkeypatch):
    points, labels = episodes_of(9, 3, 4)
    first, second = (search(points, 3, generator=generator(7)) for _ in range(2))
    assert torch.equal(first.labels, second.labels)
    monkeypatch.setattr(module, "MEMORY", {"cpu": 1})
    assert score_episodes(labels, search(points, 3, generator=generator(7)).labels).acc.min() == 1


@every
@pytest.mark.parametrize("k", [1, 2, 4, 5, 10])
def test_identical_points_neither_crash_nor_give_nan(search, k):
    found = search(torch.ones(2, 10, 3), k, generator=generator())
    assert found.centres.isfinite().all()
    assert found.cost.tolist() == [0, 0]
    if search is not kmeans:  # which leaves clusters empty where there are fewer distinct points
        assert all(len(row.unique()) == k for row in found.labels)


@every
def test_as_many_clusters_as_points_give_each_point_its_own(search):
    found = search(torch.randn(2, 4, 3, generator=generator()), 4, generator=generator())
    assert [sorted(row) for row in found.labels.tolist()] == [[0, 1, 2, 3]] * 2
    assert found.cost.tolist() == [0, 0]


@every
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
def test_bad_points_are_refused_with_the_cure(search, points, k, says):
    with pytest.raises(InputError, match=says):
        search(points, k, generator=generator())


def test_large_bags_are_grouped_without_looking_at_all_pairs(monkeypatch):
    points, labels = episodes_of(2, 3, 20)
    monkeypatch.setattr(free, "MOST_POINTS", 50)
    monkeypatch.setattr(free, "squared_distances", None)
    assert score_episodes(labels, free_kmeans(points, 3, generator=generator()).labels).acc.min() == 1
