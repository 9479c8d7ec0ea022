"""Means of groups."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import one_hot


def group_means(points: Tensor, groups: Tensor, k: int) -> Tensor:
    """Means (…, k, d) of the groups (…, n) of points (…, n, d); zero where a group is empty."""
    member = one_hot(groups, k).to(points)  # (…, n, k)
    return member.mT @ points / member.sum(-2).clamp(min=1).unsqueeze(-1)
