"""What known classes say of directions in a feature space: how far they spread inside, and how far apart they are."""

from __future__ import annotations

import torch
from torch import Tensor

NOTHING = 1e-9
"""Part of the variance inside classes below which a variance is taken for rounding."""


def whitening(features: Tensor, labels: Tensor, shrinkage: float) -> Tensor:
    """The symmetric matrix (d, d) after which classes are round: the inverse root of their shrunk covariance.

    The identity where classes have no extent.

    Args:
        features: (n, d).
        labels: (n,) int64, class of each.
        shrinkage: 0 to 1, part of the covariance that is replaced by a multiple of the identity with the same trace.
    """
    inside, _ = covariances(features, labels)
    size = inside.diagonal().mean()
    if not size > 0:
        return torch.eye(len(inside), device=features.device)
    values, vectors = torch.linalg.eigh(inside / size)
    values = (1 - shrinkage) * values.clamp(min=0) + shrinkage
    root: Tensor = (vectors * values.rsqrt()) @ vectors.T
    return root.float()


def weighing(features: Tensor, labels: Tensor, shrinkage: float) -> Tensor:
    """The symmetric matrix (d, d) that scales directions of whitened features by the root of b / (b + w).

    b is the variance between classes along a direction and w that inside them, its mean over directions: whitening has
    made them alike, as far as it was told to. Where classes do not differ, where an item lies is chance, and distances
    are better off without it. The identity where they differ nowhere, as a single class does, or have no extent.

    Args:
        features: (n, d).
        labels: (n,) int64, class of each.
        shrinkage: 0 to 1, part of the variance between classes that is replaced by its mean over directions.
    """
    inside, between = covariances(features, labels)
    size = inside.diagonal().mean()
    values, vectors = torch.linalg.eigh(between)
    values = torch.where(values > NOTHING * size, values, 0.0)
    if not size > 0 or not values.any():
        return torch.eye(len(values), device=features.device)
    values = (1 - shrinkage) * values + shrinkage * values.mean()
    root: Tensor = (vectors * (values / (values + size)).sqrt()) @ vectors.T
    return root.float()


def covariances(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Covariances inside classes and between them, both without bias.

    That between classes is the covariance of their means, less what these differ by chance for having few items each.
    With one item a class nothing is known of the inside: it is zero, and nothing is taken off.

    Args:
        features: (n, d).
        labels: (n,) int64, class of each.

    Returns:
        Two matrices (d, d) float64.
    """
    features = features.double()
    _, place, counts = torch.unique(labels, return_inverse=True, return_counts=True)
    means = features.new_zeros(len(counts), features.shape[1]).index_add_(0, place, features) / counts[:, None]
    rest, apart = features - means[place], means - means.mean(0)
    inside = rest.T @ rest / max(1, len(features) - len(counts))
    between = apart.T @ apart / max(1, len(counts) - 1) - inside * counts.double().reciprocal().mean()
    return inside, between
