"""Of a very large pool some items are grouped, and the others join the place that they fit best.

Ward's tree looks at every item for each merge, so its time grows with the square of their number.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from medi.discovery.map import Plane
from medi.discovery.recogniser import Recogniser
from medi.discovery.recognition import NONE_RATE
from medi.discovery.representations import chunks
from medi.discovery.result import DOUBTFUL_BELOW, Discovery, Kind

MOST_GROUPED = 4000
"""Items that are grouped; of more, so many are drawn at random."""


def draw(items: int, seed: int) -> Tensor:
    """Indices, in order, of the items that are grouped: all of them, or `MOST_GROUPED`."""
    if items <= MOST_GROUPED:
        return torch.arange(items)
    return torch.randperm(items, generator=torch.Generator().manual_seed(seed))[:MOST_GROUPED].sort().values


def join_groups(
    discovery: Discovery, recogniser: Recogniser, pool: Tensor, drawn: Tensor, *, only_novel: bool
) -> tuple[Discovery, Recogniser]:
    """Put every item that was not drawn where it fits best.

    Args:
        discovery: Of the items drawn.
        recogniser: Of their groups, which stay as they are.
        pool: All items (m, …).
        drawn: (n,) indices of those that were grouped.
        only_novel: Whether the others join groups only; otherwise they may also be known, or alone.
    """
    m, k, names = len(pool), recogniser.groups, recogniser.names
    kinds: list[Kind] = ["novel"] * m
    labels, known, nearest = [-1] * m, [""] * m, [""] * m
    confidence, positions = np.zeros(m), torch.zeros(m, 2, dtype=torch.float64)
    plane = Plane.of(recogniser.representation(pool[drawn]))
    for part in chunks(torch.arange(m)):
        points = recogniser.representation(pool[part])
        positions[part] = plane(points)
        scores = recogniser.scores(points)
        if only_novel:
            scores[:, k:] = -np.inf
        none = recogniser.recognition.is_none(scores, NONE_RATE) & (not only_novel)
        best = np.where(none, scores.shape[1] - 1, scores[:, :-1].argmax(1))
        probability = recogniser.recognition.probabilities(scores)[np.arange(len(best)), best]
        confidence[part.numpy()] = np.minimum(probability, recogniser.recognition.most)
        for item, place in zip(part.tolist(), best.tolist(), strict=True):
            if place < k:
                labels[item] = place
            elif place < k + len(names):
                kinds[item], known[item] = "known", names[place - k]
            else:
                kinds[item] = "alone"
        if names:
            for item, place in zip(part.tolist(), recogniser.scores(points)[:, k:-1].argmax(1).tolist(), strict=True):
                nearest[item] = names[place]
    for number, item in enumerate(drawn.tolist()):
        kinds[item], labels[item] = discovery.kinds[number], discovery.labels[number]
        known[item], confidence[item] = discovery.known[number], discovery.confidence[number]
    positions[drawn] = torch.tensor(discovery.positions, dtype=torch.float64)
    groups = tuple(replace(group, medoid=int(drawn[group.medoid])) for group in discovery.groups)
    whole = replace(
        discovery,
        kinds=tuple(kinds),
        labels=tuple(labels),
        known=tuple(known),
        confidence=tuple(confidence.tolist()),
        doubtful=tuple((confidence < DOUBTFUL_BELOW).tolist()),
        nearest_known=tuple(nearest),
        groups=groups,
        positions=tuple((x, y) for x, y in positions.tolist()),
    )
    return whole, recogniser
