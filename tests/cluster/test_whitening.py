"""Matrices that known classes give for a feature space: whitening, and weights of directions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.cluster import whitening as module
from medi.cluster.whitening import covariances, weighing, whitening, whitening_factor

UNEQUAL = torch.arange(4).repeat_interleave(torch.tensor([2, 3, 7, 20]))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def groups_of(features: torch.Tensor, labels: torch.Tensor) -> list[np.ndarray]:
    return [features[labels == c].double().numpy() for c in labels.unique()]


def inside_of(groups: list[np.ndarray]) -> np.ndarray:
    """The pooled covariance within groups, without bias."""
    return sum((len(g) - 1) * np.cov(g.T) for g in groups) / sum(len(g) - 1 for g in groups)


def classes_along(spread: torch.Tensor, each: int, count: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    """Round classes of unit variance whose means have the given deviations along the axes."""
    labels = torch.arange(count).repeat_interleave(each)
    means = torch.randn(count, len(spread), generator=seeded()) * spread
    return means[labels] + torch.randn(len(labels), len(spread), generator=seeded(1)), labels


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 5))
def test_covariances_are_numpys_pooled_one_and_that_of_means_less_their_own_chance(seed):
    features = torch.randn(len(UNEQUAL), 4, generator=seeded(seed)) + UNEQUAL[:, None]
    groups = groups_of(features, UNEQUAL)
    inside, between = (matrix.numpy() for matrix in covariances(features, UNEQUAL))
    chance = np.mean([inside_of(groups) / len(g) for g in groups], axis=0)
    assert np.allclose(inside, inside_of(groups), atol=1e-6)
    assert np.allclose(between, np.cov(np.stack([g.mean(0) for g in groups]).T) - chance, atol=1e-6)


@pytest.mark.parametrize("each", [2, 20])
def test_variance_between_classes_is_that_of_their_true_means_however_few_items_show_them(each):
    spread = torch.tensor([3.0, 1.0, 0.0])
    _, between = covariances(*classes_along(spread, each))
    assert np.allclose(between.diagonal(), spread.square(), rtol=0.15, atol=0.1)


def test_of_one_item_a_class_nothing_is_known_inside():
    features = torch.randn(6, 3, generator=seeded())
    inside, between = covariances(features, torch.arange(6))
    assert not inside.any()
    assert np.allclose(between, np.cov(features.double().numpy().T))
    assert torch.equal(whitening(features, torch.arange(6), 0.5), torch.eye(3))
    assert torch.equal(weighing(features, torch.arange(6), 0.5), torch.eye(3))


def test_whitened_classes_are_round_and_of_the_same_size_as_before():
    labels = torch.arange(4).repeat(500)
    features = torch.randn(2000, 6, generator=seeded()) @ torch.randn(6, 6, generator=seeded(1)) + 5 * labels[:, None]
    covariance = inside_of(groups_of(features @ whitening(features, labels, 1e-9), labels))
    size = np.trace(inside_of(groups_of(features, labels))) / 6
    assert np.allclose(covariance, size * np.eye(6), atol=1e-3 * size)


@settings(max_examples=20, deadline=None)
@given(shrinkage=st.floats(0.01, 1), seed=st.integers(0, 5), width=st.sampled_from([4, 50]))
def test_whitening_is_the_inverse_root_of_the_shrunk_covariance(shrinkage, seed, width):
    features = torch.randn(len(UNEQUAL), width, generator=seeded(seed))
    matrix = whitening(features, UNEQUAL, shrinkage).double().numpy()
    covariance = inside_of(groups_of(features, UNEQUAL))
    shrunk = (1 - shrinkage) * covariance / (np.trace(covariance) / width) + shrinkage * np.eye(width)
    assert np.allclose(matrix @ shrunk @ matrix, np.eye(width), atol=1e-4)


def test_the_factor_whitens_like_the_symmetric_matrix_up_to_a_rotation_and_a_unit():
    features = torch.randn(len(UNEQUAL), 6, generator=seeded(), dtype=torch.float64)
    factor, symmetric = (make(features, UNEQUAL, 0.2).double() for make in (whitening_factor, whitening))
    ours, theirs = factor @ factor.T, symmetric @ symmetric.T
    assert torch.allclose(ours / ours.trace(), theirs / theirs.trace(), atol=1e-6)
    assert whitening_factor(features[:4], torch.arange(4), 0.2) is None, "classes of one item have no covariance"


def test_covariances_of_many_items_are_summed_in_parts(monkeypatch):
    features = torch.randn(len(UNEQUAL), 5, generator=seeded())
    whole = covariances(features, UNEQUAL)
    monkeypatch.setattr(module, "ROWS", 7)
    for parts, matrix in zip(covariances(features, UNEQUAL), whole, strict=True):
        assert torch.allclose(parts, matrix, atol=1e-12)


def test_whitening_shrunk_all_the_way_changes_nothing():
    features = torch.randn(30, 4, generator=seeded())
    assert torch.allclose(whitening(features, torch.arange(30) % 3, 1.0), torch.eye(4), atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(shrinkage=st.floats(0, 1), seed=st.integers(0, 5), width=st.sampled_from([3, 50]))
def test_weighing_is_the_root_of_the_part_that_lies_between_classes(shrinkage, seed, width):
    features = torch.randn(len(UNEQUAL), width, generator=seeded(seed)) + 2 * UNEQUAL[:, None]
    groups = groups_of(features, UNEQUAL)
    inside = inside_of(groups)
    between = np.cov(np.stack([g.mean(0) for g in groups]).T) - np.mean([inside / len(g) for g in groups], axis=0)
    values, vectors = np.linalg.eigh(between)
    values = values.clip(min=0)
    values = (1 - shrinkage) * values + shrinkage * values.mean()
    squared = vectors * (values / (values + np.trace(inside) / width)) @ vectors.T
    matrix = weighing(features, UNEQUAL, shrinkage).double().numpy()
    assert np.allclose(matrix @ matrix, squared, atol=1e-5)


@pytest.mark.parametrize("each", [2, 5, 20])
def test_a_direction_weighs_by_the_part_of_its_true_variance_that_lies_between_classes(each):
    spread = torch.tensor([3.0, 1.0, 0.0])
    matrix = weighing(*classes_along(spread, each, count=4000), shrinkage=0.0)
    assert np.allclose(matrix.square().diagonal(), spread.square() / (spread.square() + 1), atol=0.025)


def test_weights_shrunk_all_the_way_are_equal():
    matrix = weighing(*classes_along(torch.tensor([3.0, 1.0, 0.0]), each=5), shrinkage=1.0)
    assert torch.allclose(matrix, matrix[0, 0] * torch.eye(3), atol=1e-5)


@pytest.mark.parametrize(("items", "width"), [(30, 4), (10, 64)])
def test_a_single_class_leaves_directions_as_they_are(items, width):
    features = torch.randn(items, width, generator=seeded())
    features[:, 0] = 0
    for shrinkage in (0.0, 0.1):
        assert torch.equal(weighing(features, torch.zeros(items, dtype=torch.long), shrinkage), torch.eye(width))


def test_two_classes_of_equal_means_leave_directions_as_they_are():
    features = torch.randn(15, 4, generator=seeded()).repeat(2, 1)
    assert torch.equal(weighing(features, torch.arange(30) // 15, 0.1), torch.eye(4))


@pytest.mark.parametrize("make", [whitening, weighing])
def test_the_unit_of_features_does_not_matter(make):
    features, labels = classes_along(torch.tensor([3.0, 1.0, 0.0]), each=5)
    assert torch.allclose(make(1e-7 * features, labels, 0.1), make(features, labels, 0.1), atol=1e-4)


def test_weights_find_the_other_item_of_a_class_among_many_useless_directions():
    spread = torch.cat([torch.full((4,), 2.0), torch.zeros(60)])
    matrix = weighing(*classes_along(spread, each=4), shrinkage=0.1)
    new, _ = classes_along(spread, each=2, count=100)

    def found(points: torch.Tensor) -> float:
        return float((torch.cdist(points[::2], points[1::2]).argmin(1) == torch.arange(100)).float().mean())

    assert found(new @ matrix) > found(new) + 0.1
