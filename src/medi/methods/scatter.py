"""What known classes say of directions in a feature space: how far they spread inside, and how far apart they are."""

from __future__ import annotations

import torch
from torch import Tensor


def whitening(features: Tensor, labels: Tensor, shrinkage: float) -> Tensor:
    """The symmetric matrix (d, d) after which classes are round: the inverse root of their shrunk covariance.

    Args:
        features: (n, d).
        labels: (n,) int64, class of each.
        shrinkage: 0 to 1, part of the covariance that is replaced by a multiple of the identity with the same trace.
    """
    covariance, _ = covariances(features, labels)
    size = covariance.diagonal().mean().clamp(min=1e-12)
    values, vectors = torch.linalg.eigh(covariance)
    values = (1 - shrinkage) * values.clamp(min=0) + shrinkage * size
    root: Tensor = (vectors * (values / size).rsqrt()) @ vectors.T
    return root.float()


def weights(features: Tensor, labels: Tensor, shrinkage: float) -> Tensor:
    """The symmetric matrix (d, d) that scales directions by the root of b / (b + w), of whitened features.

    b is the variance between classes along a direction and w that inside them, which whitening has made round. Where
    classes do not differ, what an image has is chance, and distances are better off without it. The identity where they
    differ nowhere, as a single class does: it knows of no direction that matters.

    Args:
        features: (n, d).
        labels: (n,) int64, class of each.
        shrinkage: 0 to 1, part of the variance between classes that is replaced by its mean over directions.
    """
    inside, between = covariances(features, labels)
    size = inside.diagonal().mean().clamp(min=1e-12)
    values, vectors = torch.linalg.eigh(between)
    values = values.clamp(min=0)
    if not values.any():
        return torch.eye(len(values), device=features.device)
    values = (1 - shrinkage) * values + shrinkage * values.mean()
    root: Tensor = (vectors * (values / (values + size)).sqrt()) @ vectors.T
    return root.float()


def covariances(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Covariances (d, d) float64 of features (n, d) inside classes (n,), and between them.

    That between classes is the covariance of their means, less what these differ by chance for having few items each.
    """
    features = features.double()
    _, place, counts = torch.unique(labels, return_inverse=True, return_counts=True)
    means = features.new_zeros(len(counts), features.shape[1]).index_add_(0, place, features) / counts[:, None]
    rest, apart = features - means[place], means - means.mean(0)
    inside = rest.T @ rest / len(features)
    unbiased = inside * len(features) / max(1, len(features) - len(counts))
    between = apart.T @ apart / max(1, len(counts) - 1) - unbiased * counts.double().reciprocal().mean()
    return inside, between
