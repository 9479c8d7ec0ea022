"""Of very many novel items some are grouped, and the others join the nearest group.

Grouping compares every item with every other, so its memory grows with the square of their number.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from medi.cluster.kmeans import squared_distances
from medi.cluster.ward import by_size
from medi.discovery.map import Plane
from medi.discovery.recogniser import Recogniser
from medi.discovery.representations import chunks
from medi.discovery.result import DOUBTFUL_BELOW, Discovery

MOST_GROUPED = 4000
"""Novel items that are grouped; of more, so many are drawn at random."""


def draw(items: int, seed: int) -> Tensor:
    """Indices, in order, of the items that are grouped: all of them, or `MOST_GROUPED`."""
    if items <= MOST_GROUPED:
        return torch.arange(items)
    return torch.randperm(items, generator=torch.Generator().manual_seed(seed))[:MOST_GROUPED].sort().values


def join_groups(
    discovery: Discovery, recogniser: Recogniser, novel: Tensor, drawn: Tensor
) -> tuple[Discovery, Recogniser]:
    """Put every item that was not drawn into the nearest group; groups are numbered anew, the largest 0.

    Args:
        discovery: Of the items drawn.
        recogniser: Of their groups; the means stay as they are.
        novel: All items (m, …).
        drawn: (n,) indices of those that were grouped.
    """
    m, k, classes = len(novel), len(recogniser.groups), recogniser.classes
    labels, nearest = torch.zeros(m, dtype=torch.int64), torch.zeros(m, dtype=torch.int64)
    confidence, positions = torch.zeros(m, dtype=torch.float64), torch.zeros(m, 2, dtype=torch.float64)
    plane = Plane.of(recogniser.representation(novel[drawn]))
    for part in chunks(torch.arange(m)):
        points = recogniser.representation(novel[part])
        probability = (-recogniser.distances(points)[:, :k] / recogniser.temperature).softmax(1)
        confidence[part], labels[part] = probability.max(1)
        positions[part] = plane(points)
        if len(classes):
            nearest[part] = squared_distances(points, classes).argmin(1)
    labels[drawn] = torch.tensor(discovery.labels)
    confidence[drawn] = torch.tensor(discovery.confidence, dtype=torch.float64)
    positions[drawn] = torch.tensor(discovery.positions, dtype=torch.float64)
    numbered = torch.from_numpy(by_size(labels.numpy()))
    old = torch.zeros(k, dtype=torch.int64)
    old[numbered] = labels  # the old number of each group
    return (
        replace(
            discovery,
            labels=tuple(numbered.tolist()),
            confidence=tuple(confidence.tolist()),
            doubtful=tuple((confidence < DOUBTFUL_BELOW).tolist()),
            nearest_known=tuple(recogniser.names[i] for i in nearest.tolist()) if len(classes) else ("",) * m,
            neighbours=tuple(discovery.neighbours[i] for i in old.tolist()),
            medoids=tuple(int(drawn[discovery.medoids[i]]) for i in old.tolist()),
            positions=tuple((x, y) for x, y in positions.tolist()),
        ),
        recogniser.renumbered(old),
    )
