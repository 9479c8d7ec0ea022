"""What samples of groupings say of items: how probable it is that they are together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.grouping.engine import known_label


def near_groups(samples: Ints, members: Mapping[int, Iterable[int]]) -> Floats:
    """(n, groups): how probable it is that an item is together with another one of each group.

    Args:
        samples: (s, n): in each sample, items with equal numbers are together.
        members: Items of each group.
    """
    inside = np.zeros((samples.shape[1], len(members)))
    for column, items in enumerate(members.values()):
        inside[list(items), column] = 1
    total = np.zeros_like(inside)
    for sample in samples:
        _, label = np.unique(sample, return_inverse=True)
        of_label = np.zeros((label.max() + 1, len(members)))
        np.add.at(of_label, label, inside)
        total += of_label[label] - inside  # without the item itself
    others = inside.sum(0)[None, :] - inside
    return np.asarray(total / np.maximum(others, 1) / max(len(samples), 1))


def near_known(samples: Ints, count: int) -> Floats:
    """(n, count): how probable it is that an item is of each known class."""
    shares = [(samples == known_label(c)).mean(0) for c in range(count if len(samples) else 0)]
    return np.stack(shares, 1) if shares else np.zeros((samples.shape[1], count))
