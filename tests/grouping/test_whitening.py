"""Matrices that known classes give for a feature space: whitening, and weights of directions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.grouping import whitening as module
from medi.grouping.whitening import covariances, weighing, whitening, whitening_factor

UNEQUAL = np.repeat(np.arange(4), [2, 3, 7, 20])


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def inside_of(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The pooled covariance within groups, without bias."""
    groups = [features[labels == c] for c in np.unique(labels)]
    return sum((len(g) - 1) * np.cov(g.T) for g in groups) / sum(len(g) - 1 for g in groups)


def between_of(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The covariance of the groups' means, less what is due to each having few items."""
    groups = [features[labels == c] for c in np.unique(labels)]
    chance = np.mean([inside_of(features, labels) / len(g) for g in groups], axis=0)
    return np.cov(np.stack([g.mean(0) for g in groups]).T) - chance


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 5))
def test_covariances_are_numpys_pooled_one_and_that_of_means_less_their_own_chance(seed):
    features = normal(len(UNEQUAL), 4, seed=seed) + UNEQUAL[:, None]
    inside, between = covariances(features.astype(np.float32), UNEQUAL)
    assert np.allclose(inside, inside_of(features, UNEQUAL), atol=1e-5)
    assert np.allclose(between, between_of(features, UNEQUAL), atol=1e-5)


def test_of_one_item_a_class_nothing_is_known_inside():
    features, labels = normal(6, 3), np.arange(6)
    inside, between = covariances(features, labels)
    assert not inside.any()
    assert np.allclose(between, np.cov(features.T))
    assert np.array_equal(whitening(features, labels, 0.5), np.eye(3))
    assert np.array_equal(weighing(features, labels, 0.5), np.eye(3))
    assert whitening_factor(features, labels, 0.5) is None


def test_covariances_of_many_items_are_summed_in_parts(monkeypatch):
    features = normal(len(UNEQUAL), 5)
    whole = covariances(features, UNEQUAL)
    monkeypatch.setattr(module, "ROWS", 7)
    for parts, matrix in zip(covariances(features, UNEQUAL), whole, strict=True):
        assert np.allclose(parts, matrix, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(shrinkage=st.floats(0.01, 1), seed=st.integers(0, 5), width=st.sampled_from([4, 50]))
def test_whitening_is_the_inverse_root_of_the_shrunk_covariance_and_the_factor_gives_its_distances(
    shrinkage, seed, width
):
    features = normal(len(UNEQUAL), width, seed=seed)
    matrix, factor = (make(features, UNEQUAL, shrinkage) for make in (whitening, whitening_factor))
    covariance = inside_of(features, UNEQUAL)
    size = np.trace(covariance) / width
    shrunk = (1 - shrinkage) * covariance + shrinkage * size * np.eye(width)
    assert np.allclose(matrix @ (shrunk / size) @ matrix, np.eye(width), atol=1e-6)
    assert np.allclose(factor @ factor.T, np.linalg.inv(shrunk), atol=1e-6 * np.linalg.norm(np.linalg.inv(shrunk)))


@settings(max_examples=20, deadline=None)
@given(shrinkage=st.floats(0, 1), seed=st.integers(0, 5), width=st.sampled_from([3, 50]))
def test_weighing_is_the_root_of_the_part_that_lies_between_classes(shrinkage, seed, width):
    features = normal(len(UNEQUAL), width, seed=seed) + 2 * UNEQUAL[:, None]
    inside = np.trace(inside_of(features, UNEQUAL)) / width
    values, vectors = np.linalg.eigh(between_of(features, UNEQUAL))
    values = values.clip(min=0)
    values = (1 - shrinkage) * values + shrinkage * values.mean()
    matrix = weighing(features, UNEQUAL, shrinkage)
    assert np.allclose(matrix @ matrix, vectors * (values / (values + inside)) @ vectors.T, atol=1e-6)


@pytest.mark.parametrize(("items", "width"), [(30, 4), (10, 64)])
def test_classes_that_do_not_differ_leave_directions_as_they_are(items, width):
    features = normal(items, width)
    features[:, 0] = 0
    for shrinkage in (0.0, 0.1):
        assert np.array_equal(weighing(features, np.zeros(items, np.int64), shrinkage), np.eye(width))
    twice = np.tile(features, (2, 1))
    assert np.array_equal(weighing(twice, np.repeat([0, 1], items), 0.1), np.eye(width)), "two of equal means"


@pytest.mark.parametrize("make", [whitening, weighing])
def test_the_unit_of_features_does_not_matter(make):
    features = normal(len(UNEQUAL), 3) + 2 * UNEQUAL[:, None]
    assert np.allclose(make(1e-7 * features, UNEQUAL, 0.1), make(features, UNEQUAL, 0.1), atol=1e-4)
