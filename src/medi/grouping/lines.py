"""Which lines are right, where the truth is known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from medi.core.arrays import Floats, Ints
from medi.grouping.engine import ALONE, known_label, place_numbers


def right_lines(truth: Ints, labels: Ints) -> NDArray[np.bool_]:
    """Which of n labels are right if `truth` (n,) is: the same known class, alone, or a group that is that class.

    Groups and classes are matched one to one so that as many items as possible are right. Alone is right of an item
    that is alone in truth, or the only one of its class.

    >>> right_lines(truth=np.array([0, 0, 1, ALONE, -2]), labels=np.array([4, 4, 4, ALONE, -3]))
    array([ True,  True, False,  True, False])
    """
    classes = known_label(0) - int(min(truth.min(initial=ALONE), labels.min(initial=ALONE))) + 1
    return np.asarray(right_places(truth, labels, classes) == place_numbers(labels, classes))


def right_places(truth: Ints, labels: Ints, classes: int) -> Ints:
    """The place (n,) that each item has if `truth` (n,) is: a group matched with its class, a known class, or alone.

    Places have numbers as `place_numbers` gives them; one more is a class that no group is matched with.

    >>> right_places(truth=np.array([0, 0, 1, ALONE, -2, 2, 2]), labels=np.array([0, 0, 0, 0, 1, 1, 0]), classes=1)
    array([0, 0, 3, 3, 2, 1, 1])
    """
    groups = int(labels.max(initial=-1)) + 1
    sizes = np.bincount(truth[truth >= 0], minlength=1)
    one_off = (truth == ALONE) | ((truth >= 0) & (sizes[np.maximum(truth, 0)] == 1))
    found = np.where(one_off, groups + classes, groups + classes + 1)
    for group, c in matched(labels, truth):
        found[truth == c] = group
    named = truth <= known_label(0)
    found[named] = groups + known_label(0) - truth[named]
    return found


def matched(first: Ints, second: Ints) -> Iterator[tuple[int, int]]:
    """Groups of one labelling (n,) and of another, one to one, so that as many items as possible are in both of a pair.

    >>> list(matched(np.array([0, 0, 1, ALONE]), np.array([2, 2, 0, 0])))
    [(0, 2), (1, 0)]
    """
    both = (first >= 0) & (second >= 0)
    table = np.zeros((first.max(initial=-1) + 1, second.max(initial=-1) + 1))
    np.add.at(table, (first[both], second[both]), 1)
    for a, b in np.stack(linear_sum_assignment(-table), 1).tolist():
        if table[a, b]:
            yield a, b


def group_means(confidence: Floats, labels: Ints) -> Floats:
    """Mean (k,) confidence of the lines of each group.

    >>> group_means(np.array([0.5, 1.0, 0.1]), labels=np.array([0, 0, ALONE]))
    array([0.75])
    """
    mine = labels >= 0
    return np.asarray(np.bincount(labels[mine], confidence[mine]) / np.bincount(labels[mine]))
