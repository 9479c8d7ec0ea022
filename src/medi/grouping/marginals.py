"""What a posterior says of pairs of items."""

from __future__ import annotations

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.grouping.posterior import Posterior


def pairs(posterior: Posterior, numbers: Floats, some: Ints) -> Floats:
    """Probability (s, s) that two of some items are in one novel group; 1 for an item and itself.

    Args:
        posterior: Over groupings of n items.
        numbers: (k + 1,) probability of each number of groups.
        some: (s,) the items.
    """
    link = _links(posterior, posterior.branch_probabilities(numbers))
    place = posterior.branches.spans[some, 0]
    order = np.argsort(place, kind="stable")
    found = np.ones((len(some), len(some)))
    if len(some) > 1:
        steps = np.minimum.reduceat(np.append(link, 0.0), place[order])[:-1]
        for i in range(len(some) - 1):
            found[order[i], order[i + 1 :]] = found[order[i + 1 :], order[i]] = np.minimum.accumulate(steps[i:])
    return found


def _links(posterior: Posterior, probability: Floats) -> Floats:
    """Probability (leaves - 1,) that a leaf of the tree and the next one are in one novel group."""
    branches = posterior.branches
    leaves, end = branches.tree.points, branches.spans[:, 1]
    together = np.where(branches.known == 0, probability, 0.0)  # that a branch is inside of a novel group
    link = np.zeros(max(leaves - 1, 0))
    for number in range(leaves - 2, -1, -1):
        a, b = branches.tree.pairs[number]
        together[a] += together[leaves + number]
        together[b] += together[leaves + number]
        link[min(end[a], end[b]) - 1] = together[leaves + number]
    return link
