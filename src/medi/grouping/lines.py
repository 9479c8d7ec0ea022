"""Which lines are right, where the truth is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from medi.core.arrays import Floats, Ints
from medi.grouping.engine import ALONE


def right_lines(truth: Ints, labels: Ints) -> NDArray[np.bool_]:
    """Which of n labels are right if `truth` (n,) is: the same known class, alone, or a group that is that class.

    Groups and classes are matched one to one so that as many items as possible are right. Alone is right of an item
    that is alone in truth, or the only one of its class.

    >>> right_lines(truth=np.array([0, 0, 1, ALONE, -2]), labels=np.array([4, 4, 4, ALONE, -3]))
    array([ True,  True, False,  True, False])
    """
    found = np.where(labels <= -2, truth == labels, False)
    sizes = np.bincount(truth[truth >= 0], minlength=1)
    alone = labels == ALONE
    found[alone] = (truth[alone] == ALONE) | ((truth[alone] >= 0) & (sizes[np.maximum(truth[alone], 0)] == 1))
    both = (labels >= 0) & (truth >= 0)
    if both.any():
        table = np.zeros((labels.max() + 1, truth.max() + 1))
        np.add.at(table, (labels[both], truth[both]), 1)
        groups, classes = linear_sum_assignment(-table)
        class_of = np.full(len(table), ALONE - 1)
        class_of[groups] = classes
        found[both] = class_of[labels[both]] == truth[both]
    return found


def group_means(confidence: Floats, labels: Ints) -> Floats:
    """Mean (k,) confidence of the lines of each group.

    >>> group_means(np.array([0.5, 1.0, 0.1]), labels=np.array([0, 0, ALONE]))
    array([0.75])
    """
    mine = labels >= 0
    return np.asarray(np.bincount(labels[mine], confidence[mine]) / np.bincount(labels[mine]))
