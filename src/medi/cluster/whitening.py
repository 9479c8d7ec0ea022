"""Matrices that make distances between features suit the known classes: whitening, and weights of directions."""

from __future__ import annotations

import torch
from torch import Tensor

from medi.cluster.groups import group_sums

NO_VARIANCE = 1e-9
"""Part of the variance inside classes below which a variance is taken for rounding."""

ROWS = 8192
"""Features that are held as float64 at a time."""


def whitening(features: Tensor, labels: Tensor, shrinkage: float) -> Tensor:
    """The symmetric matrix (d, d) float32 after which classes are round: the inverse root of their shrunk covariance.

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

    b is the variance between classes along a direction. w is the variance inside them, averaged over directions, which
    whitening has made alike. A direction in which classes do not differ only adds chance to distances. The result is
    the identity where classes differ in no direction, as a single class does, or have no extent.

    Args:
        features: (n, d).
        labels: (n,) int64, class of each.
        shrinkage: 0 to 1, part of the variance between classes that is replaced by its mean over directions.
    """
    inside, between = covariances(features, labels)
    size = inside.diagonal().mean()
    values, vectors = torch.linalg.eigh(between)
    values = torch.where(values > NO_VARIANCE * size, values, 0.0)
    if not size > 0 or not values.any():
        return torch.eye(len(values), device=features.device)
    values = (1 - shrinkage) * values + shrinkage * values.mean()
    root: Tensor = (vectors * (values / (values + size)).sqrt()) @ vectors.T
    return root.float()


def whitening_factor(features: Tensor, labels: Tensor, shrinkage: float) -> Tensor | None:
    """A matrix (d, d) float64 after which distances are those under the inverse of the shrunk covariance in classes.

    It is the Cholesky factor of that inverse. `whitening` gives the same distances up to their unit and is symmetric,
    but takes far longer.

    Args:
        features: (n, d).
        labels: (n,) int64, class of each.
        shrinkage: As in `whitening`, but above 0, so that the covariance can be inverted.

    Returns:
        None where every class is a single point.
    """
    inside, _ = covariances(features, labels)
    size = inside.diagonal().mean()
    if not size > 0:
        return None
    identity = torch.eye(len(inside), dtype=inside.dtype, device=inside.device)
    lower = torch.linalg.cholesky((1 - shrinkage) * inside + shrinkage * size * identity)
    factor: Tensor = torch.linalg.solve_triangular(lower, identity, upper=False).T.contiguous()
    return factor


def covariances(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Covariances inside classes and between them, both without bias.

    The covariance between classes is that of their means, less the part that is due to each mean having few items.
    With one item per class nothing is known of the inside: it is zero, and nothing is subtracted.

    Args:
        features: (n, d).
        labels: (n,) int64, class of each.

    Returns:
        Two matrices (d, d) float64.
    """
    _, place, counts = torch.unique(labels, return_inverse=True, return_counts=True)
    parts = list(zip(torch.split(features, ROWS), torch.split(place, ROWS), strict=True))
    means = sum(group_sums(some.double(), own, len(counts)) for some, own in parts) / counts[:, None]
    inside = torch.zeros(features.shape[1], features.shape[1], dtype=means.dtype, device=means.device)
    for some, own in parts:
        deviations = some.double() - means[own]
        inside += deviations.T @ deviations
    inside /= max(1, len(features) - len(counts))
    apart = means - means.mean(0)
    between = apart.T @ apart / max(1, len(counts) - 1) - inside * counts.double().reciprocal().mean()
    return inside, between
