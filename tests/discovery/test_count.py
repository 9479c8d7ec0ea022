import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_score

from medi.cluster.kmeans import squared_distances
from medi.cluster.ward import ward
from medi.discovery.count import Pool, _draw, _ridge, by_silhouette, calibrate, estimate, silhouette


def world(classes: int, items: int, apart: float, seed: int) -> Pool:
    g = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(items)
    centres = apart * torch.randn(classes, 8, generator=g, dtype=torch.float64)
    return Pool(centres[labels] + torch.randn(len(labels), 8, generator=g, dtype=torch.float64), labels)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def calibration():
    """For bags of 40 items."""
    return calibrate([world(30, 12, 3.0, 1)], 40, generator())


@pytest.mark.parametrize("classes", [4, 8, 12])
def test_the_number_of_classes_that_are_plainly_there_is_found_whatever_their_sizes(calibration, classes):
    novel = world(classes, 12, 3.0, 7)
    for seed in range(3):
        sizes = torch.randint(2, 7, (classes,), generator=generator(seed))
        keep = torch.cat([12 * c + torch.arange(s) for c, s in enumerate(sizes.tolist())])
        count = estimate(ward(novel.points[keep]), calibration)
        assert abs(count.k - classes) <= max(1, 0.2 * classes)
        assert count.low <= count.k <= count.high


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    pool, novel = world(40, 12, 1.2, 1), world(40, 12, 1.2, 5)
    calibration = calibrate([pool], 40, generator())
    g, held = generator(3), 0
    for _ in range(60):
        bag = _draw(novel, 40, g)
        count = estimate(ward(novel.points[bag]), calibration)
        held += count.low <= len(torch.unique(novel.labels[bag])) <= count.high
    assert held / 60 > 0.75


def test_scores_are_one_at_the_number_chosen_and_less_elsewhere(calibration):
    count = estimate(ward(world(6, 6, 3.0, 2).points), calibration)
    scores = dict(zip(count.candidates, count.scores, strict=True))
    assert scores[count.k] == 1
    assert all(0 <= score < 1 for k, score in scores.items() if k != count.k)
    assert count.high <= max(count.candidates)


def test_known_classes_that_cannot_be_told_apart_leave_the_number_uncertain():
    calibration = calibrate([world(30, 12, 0.0, 1)], 40, generator())
    count = estimate(ward(world(5, 8, 0.0, 2).points), calibration)
    assert not count.certain
    assert count.high > 2 * count.low


def test_a_number_beyond_what_known_classes_can_check_is_not_certain():
    calibration = calibrate([world(5, 12, 5.0, 1)], 60, generator())
    count = estimate(ward(world(15, 4, 5.0, 2).points), calibration)
    assert count.k > calibration.most or not count.certain
    assert not count.certain


@pytest.mark.parametrize(("classes", "items"), [(3, 40), (10, 3)])
def test_too_few_classes_or_items_cannot_be_calibrated_on(classes, items):
    assert calibrate([world(classes, 12, 3.0, 1)], items, generator()) is None


def test_a_bag_has_about_as_many_items_as_asked_and_none_twice():
    pool, g = world(20, 10, 1.0, 0), generator()
    numbers = set()
    for _ in range(50):
        bag = _draw(pool, 30, g)
        assert len(torch.unique(bag)) == len(bag) <= 36
        numbers.add(len(torch.unique(pool.labels[bag])))
    assert min(numbers) <= 3
    assert max(numbers) >= 13


def test_errors_of_the_ridge_are_those_of_fits_without_the_row():
    rng = np.random.default_rng(0)
    design = np.hstack([rng.normal(size=(20, 3)), np.ones((20, 1))])
    y = rng.normal(size=20)
    _, errors = _ridge(design, y)
    candidates = []
    for penalty in (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0):
        ridge = penalty * np.diag([1, 1, 1, 0])
        left_out = []
        for row in range(20):
            rest = np.delete(np.arange(20), row)
            weights = np.linalg.solve(design[rest].T @ design[rest] + ridge, design[rest].T @ y[rest])
            left_out.append(y[row] - design[row] @ weights)
        candidates.append(np.array(left_out))
    best = min(candidates, key=lambda e: (e**2).mean())
    assert np.allclose(errors, best)


def test_silhouettes_are_those_of_scikit_learn():
    pool = world(4, 6, 1.0, 0)
    distances = squared_distances(pool.points, pool.points).sqrt()
    for k in (2, 4, 9):
        labels = ward(pool.points).cut(k)
        assert silhouette(distances, torch.from_numpy(labels)) == pytest.approx(silhouette_score(pool.points, labels))


def test_the_silhouette_finds_tight_classes_but_never_calls_itself_certain():
    pool = world(5, 6, 20.0, 0)
    count = by_silhouette(pool.points, ward(pool.points))
    assert count.k == 5
    assert not count.certain


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_silhouette_of_a_few_items_is_an_answer_too(n):
    points = torch.randn(n, 2, generator=generator(), dtype=torch.float64)
    count = by_silhouette(points, ward(points))
    assert 1 <= count.low <= count.k <= count.high <= n
