"""Sums and means of labelled groups of points."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import one_hot


def group_sums(points: Tensor, labels: Tensor, k: int) -> Tensor:
    """Sum (..., k, d) of the points (..., n, d) of each label (..., n); zero for a label without points.

    A matrix product: adding row by row is slow on a GPU, and its last digits change from run to run.
    """
    return one_hot(labels, k).to(points.dtype).mT @ points


def group_means(points: Tensor, labels: Tensor, k: int) -> Tensor:
    """Mean (..., k, d) of the points (..., n, d) of each label (..., n); zero for a label without points."""
    sizes = one_hot(labels, k).sum(-2).clamp(min=1)
    return group_sums(points, labels, k) / sizes[..., None]
