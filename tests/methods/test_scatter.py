"""Matrices that known classes give for a feature space: whitening, and weights of directions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.methods.scatter import covariances, weights, whitening


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def classes_along(spread: torch.Tensor, each: int, count: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    """Round classes of unit variance whose means have the given deviations along the axes."""
    labels = torch.arange(count).repeat_interleave(each)
    means = torch.randn(count, len(spread), generator=seeded()) * spread
    return means[labels] + torch.randn(len(labels), len(spread), generator=seeded(1)), labels


def test_whitened_classes_are_round_and_of_the_same_size_as_before():
    labels = torch.arange(4).repeat(500)
    features = torch.randn(2000, 6, generator=seeded()) @ torch.randn(6, 6, generator=seeded(1)) + 5 * labels[:, None]
    white = features @ whitening(features, labels, 1e-9)
    inside = torch.stack([white[labels == c] - white[labels == c].mean(0) for c in range(4)]).flatten(0, 1)
    before = torch.stack([features[labels == c] - features[labels == c].mean(0) for c in range(4)]).flatten(0, 1)
    covariance = inside.T @ inside / 2000
    size = before.square().mean()
    assert torch.allclose(covariance, size * torch.eye(6), atol=1e-3 * float(size))


@settings(max_examples=20, deadline=None)
@given(shrinkage=st.floats(0.01, 1), seed=st.integers(0, 5))
def test_whitening_is_the_inverse_root_of_the_shrunk_covariance(shrinkage, seed):
    features, labels = torch.randn(30, 4, generator=seeded(seed)), torch.arange(30) % 3
    matrix = whitening(features, labels, shrinkage).double().numpy()
    groups = [features[labels == c].double().numpy() for c in range(3)]
    covariance = sum((g - g.mean(0)).T @ (g - g.mean(0)) for g in groups) / 30
    size = np.trace(covariance) / 4
    shrunk = ((1 - shrinkage) * covariance + shrinkage * size * np.eye(4)) / size
    assert np.allclose(matrix @ shrunk @ matrix, np.eye(4), atol=1e-4)


def test_whitening_shrunk_all_the_way_changes_nothing():
    features = torch.randn(30, 4, generator=seeded())
    assert torch.allclose(whitening(features, torch.arange(30) % 3, 1.0), torch.eye(4), atol=1e-6)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 5))
def test_inside_and_between_are_the_parts_of_the_whole_covariance(seed):
    features, labels = torch.randn(60, 4, generator=seeded(seed)), torch.arange(60) % 5
    inside, between = (matrix.numpy() for matrix in covariances(features, labels))
    means = torch.stack([features[labels == c].mean(0) for c in range(5)]).double()
    chance = inside * 60 / 55 / 12  # of the mean of twelve items
    assert np.allclose(between + chance, np.cov(means.numpy().T), atol=1e-6)
    assert np.allclose(
        inside + np.cov(means.numpy().T, bias=True), np.cov(features.double().numpy().T, bias=True), atol=1e-6
    )


def test_variance_between_classes_is_that_of_their_true_means_however_few_items_show_them():
    spread = torch.tensor([3.0, 1.0, 0.0])
    for each in (2, 20):
        _, between = covariances(*classes_along(spread, each))
        assert np.allclose(between.diagonal(), spread.square(), rtol=0.15, atol=0.1)


def test_a_direction_weighs_by_the_part_of_its_variance_that_lies_between_classes():
    spread = torch.tensor([3.0, 1.0, 0.0])
    matrix = weights(*classes_along(spread, each=20), shrinkage=0.0)
    expected = (spread.square() / (spread.square() + 1)).sqrt()
    assert np.allclose(matrix, torch.diag(expected), atol=0.08)


def test_weights_shrunk_all_the_way_are_equal():
    matrix = weights(*classes_along(torch.tensor([3.0, 1.0, 0.0]), each=5), shrinkage=1.0)
    assert torch.allclose(matrix, matrix[0, 0] * torch.eye(3), atol=1e-5)


@pytest.mark.parametrize("labels", [torch.zeros(30, dtype=torch.long), torch.arange(30) // 15])
def test_classes_that_do_not_differ_leave_directions_as_they_are(labels):
    features = torch.randn(15, 4, generator=seeded()).repeat(2, 1)
    assert torch.equal(weights(features, labels, 0.1), torch.eye(4))


def test_weights_bring_items_nearer_to_the_right_one_of_two_classes_in_many_useless_directions():
    spread = torch.cat([torch.full((4,), 2.0), torch.zeros(60)])
    features, labels = classes_along(spread, each=4)
    new, truth = classes_along(spread, each=2, count=100)
    matrix = weights(features, labels, 0.1)

    def right(points: torch.Tensor) -> float:
        nearest = torch.cdist(points[::2], points[1::2]).argmin(1)
        return float((truth[::2][nearest] == truth[::2]).float().mean())

    assert right(new @ matrix) > right(new) + 0.1
