"""An order of points that depends on their content alone, so that the order in which they come does not matter."""

from __future__ import annotations

import torch
from torch import Tensor

ROWS_AT_ONCE = 4096
"""Bounds memory: rows are weighed in double precision."""


def content_order(points: Tensor) -> Tensor:
    """Places (episodes, n) that put points (episodes, n, …) in an order of their content.

    Points that are the same stay in the order in which they come.
    """
    rows = points.flatten(0, 1).flatten(1)
    # Cosines of whole numbers are as good as random: different points have the same sum by accident only.
    weights = torch.arange(1, rows.shape[1] + 1, dtype=torch.float64, device=rows.device).cos()
    keys = torch.cat([(part.double() * weights).sum(1) for part in torch.split(rows, ROWS_AT_ONCE)])
    return keys.view(points.shape[:2]).argsort(dim=1, stable=True)


def take(values: Tensor, places: Tensor) -> Tensor:
    """The rows of values (episodes, n, …) at places (episodes, m)."""
    return values[torch.arange(len(values), device=values.device)[:, None], places]
