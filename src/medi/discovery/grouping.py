"""Group points, and draw items where there are too many to work with all of them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medi.cluster.kmeans import kmeans
from medi.cluster.ward import by_size, ward
from medi.methods.base import Grouper

MOST_KNOWN = 4000
"""Known items that choices and calibrations are made with; of more, so many are drawn."""


def group(points: Tensor, k: int, clustering: str | Grouper, generator: torch.Generator) -> NDArray[np.int64]:
    """Labels (n,) of k groups of points (n, d), the largest 0; sizes are free.

    Args:
        points: What is grouped.
        k: Number of groups.
        clustering: ward, kmeans, or a method's own way.
        generator: Of random draws.
    """
    if clustering == "ward":
        return ward(points).cut(k)
    bag = compact(points).to(generator.device)[None]
    if callable(clustering):
        found = clustering(bag, k, generator, False)[0].cpu().numpy()
    else:
        found = kmeans(bag, k, generator=generator).labels[0].cpu().numpy()
    # Fewer distinct points than clusters leave some empty: Ward's tree always gives k.
    return by_size(found) if len(np.unique(found)) == k else ward(points).cut(k)


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
