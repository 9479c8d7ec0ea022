"""Draw items where there are too many to work with all of them, and points in as few dimensions as they need."""

from __future__ import annotations

import torch
from torch import Tensor

MOST_KNOWN = 4000
"""Known items that choices and calibrations are made with; of more, so many are drawn."""


def compact(points: Tensor) -> Tensor:
    """The same distances between points (n, d) in at most n dimensions."""
    if points.shape[1] <= len(points):
        return points
    centred = points.double() - points.double().mean(0)
    values, vectors = torch.linalg.eigh(centred @ centred.T)  # inner products determine all distances
    compacted: Tensor = vectors * values.clamp(min=0).sqrt()
    return compacted


def thin(labels: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """Indices of items, drawn at random where there are more than `most`: equally many of each class, at least ten."""
    if len(labels) <= most:
        return torch.arange(len(labels))
    counts = torch.bincount(labels)
    each = max(10, most // int((counts > 0).sum()))
    shuffled = torch.randperm(len(labels), generator=generator)
    in_order = shuffled[labels[shuffled].argsort(stable=True)]
    place = torch.arange(len(labels)) - (counts.cumsum(0) - counts)[labels[in_order]]
    return in_order[place < each].sort().values
