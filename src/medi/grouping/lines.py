"""Which lines are right, where the truth is known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from medi.core.arrays import Floats, Ints
from medi.grouping.engine import ALONE, known_label


def right_lines(truth: Ints, labels: Ints) -> NDArray[np.bool_]:
    """Which of n labels are right if `truth` (n,) is: the same known class, alone, or a group that is that class.

    Groups and classes are matched one to one so that as many items as possible are right. Alone is right of an item
    that is alone in truth, or the only one of its class.

    >>> right_lines(truth=np.array([0, 0, 1, ALONE, -2]), labels=np.array([4, 4, 4, ALONE, -3]))
    array([ True,  True, False,  True, False])
    """
    sizes = np.bincount(truth[truth >= 0], minlength=1)
    one_off = (truth == ALONE) | ((truth >= 0) & (sizes[np.maximum(truth, 0)] == 1))
    found: NDArray[np.bool_] = ((labels <= known_label(0)) & (truth == labels)) | ((labels == ALONE) & one_off)
    for group, c in matched(labels, truth):
        found |= (labels == group) & (truth == c)
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
