"""What samples of groupings say of items: how probable it is that they are together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.grouping.engine import known_label


def belonging(samples: Ints, groups: Ints) -> Floats:
    """(n,): how probable it is that an item is together with another one of its group; 0 for items in none."""
    total = np.zeros(len(groups))
    inside = np.flatnonzero(groups >= 0)
    if not len(samples) or not len(inside):
        return total
    _, group = np.unique(groups[inside], return_inverse=True)
    others = np.maximum(np.bincount(group)[group] - 1, 1)
    for sample in samples:
        _, label = np.unique(sample[inside], return_inverse=True)
        _, pair, count = np.unique(label * (group.max() + 1) + group, return_inverse=True, return_counts=True)
        total[inside] += (count[pair] - 1) / others
    total /= len(samples)
    alone = inside[np.bincount(group)[group] == 1]
    total[alone] = 1.0
    return total


def belonging_to(samples: Ints, members: Sequence[int]) -> Floats:
    """(n,): how probable it is that an item is together with one of some others."""
    total = np.zeros(samples.shape[1])
    for sample in samples:
        labels, label = np.unique(sample, return_inverse=True)
        total += np.bincount(label[list(members)], minlength=len(labels))[label] / len(members)
    return total / max(len(samples), 1)


def near_groups(samples: Ints, members: Mapping[int, Collection[int]]) -> Floats:
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
