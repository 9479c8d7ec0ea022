"""Of a very large pool some items are grouped, and the others join the place that they fit best.

Ward's tree looks at every item for each merge, so its time grows with the square of their number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Ints
from medi.core.draws import Draws
from medi.data.items import CHUNK
from medi.grouping.constraints import Constraints
from medi.grouping.elsewhere import certain
from medi.grouping.engine import ALONE, Grouping, known_label
from medi.grouping.recogniser import Recogniser

MOST_GROUPED = 4000
"""Items that are grouped; of more, so many are drawn at random."""


def draw(items: int, seed: int) -> Ints:
    """Indices, in order, of the items that are grouped: all of them, or `MOST_GROUPED`."""
    if items <= MOST_GROUPED:
        return np.arange(items)
    return np.sort(Draws(seed).permutation(items)[:MOST_GROUPED])


def join_groups(
    grouping: Grouping,
    recogniser: Recogniser,
    said: Constraints[int],
    pool: NDArray[Any],
    copies: Ints,
    drawn: Ints,
) -> Grouping:
    """Put every item that was not drawn where it fits best.

    Args:
        grouping: Of the items drawn.
        recogniser: Of their groups, which stay as they are.
        said: What is certain of items.
        pool: All different items (m, …).
        copies: (m,) how many copies of each there are.
        drawn: (n,) indices of those that were grouped.
    """
    m, k, classes = len(pool), recogniser.groups, len(grouping.known)
    labels, chances = np.full(m, ALONE), np.zeros((m, k + classes + 1))
    points = np.zeros((m, grouping.points.shape[1]), np.float32)
    for start in range(0, m, CHUNK):
        part = slice(start, start + CHUNK)
        points[part] = recogniser.representation(pool[part])
        scores = recogniser.scores(points[part].astype(np.float64))
        if grouping.ask.only_novel:
            scores[:, k:] = -np.inf  # everything belongs to a group
        found = np.minimum(recogniser.recognition.probabilities(scores, recogniser.start), recogniser.recognition.most)
        best = found.argmax(1)
        labels[part] = np.where(best < k, best, np.where(best == k + classes, ALONE, known_label(0) - (best - k)))
        chances[part] = found
    for item, c in said.known.items():
        labels[item] = known_label(c)
    labels[[*said.aside]] = ALONE
    settled = [*said.known, *said.aside]
    chances[settled] = certain(labels, classes)[settled]
    labels[drawn], chances[drawn] = grouping.labels, grouping.chances
    return grouping.extended(points.astype(np.float64), copies, labels, chances)
