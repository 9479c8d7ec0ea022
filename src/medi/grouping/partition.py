"""Partitions: ways to share points out among a number of groups, in the place of Ward's method.

The posterior still says how many groups there are and what is known or alone. Rehearsals calibrate its statements with
the partition at work, so confidence stays as right as it says. One function is a whole clustering model:

```python
# rounds.py: medi discover … --grouping rounds.py:rounds
def rounds(points, k, generator):  # points (n, d), a NumPy generator; labels (n,) from 0 to k - 1
    return nearest(points, points[generator.choice(len(points), k, replace=False)])
```
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.core.errors import InputError
from medi.core.from_file import from_file
from medi.grouping.ward import by_size
from medi.registry import FILE_MARK, GROUPING_NAMES

Partition = Callable[[Floats, int, np.random.Generator], Ints]
"""From points (n, d), k and a generator to groups (n,) from 0 to k - 1."""


def partition_of(name: str) -> Partition | None:
    """What `--grouping` names: `posterior`, which needs none, or `path/to/file.py:Name`; anything else is an error.

    >>> partition_of("posterior") is None
    True
    """
    if FILE_MARK not in name:
        return None
    made, _ = from_file(name, "--grouping")
    partition: Partition = made() if isinstance(made, type) else made
    if not callable(partition):
        raise InputError(f"--grouping {name}: name a function of points, k and a generator, or {GROUPING_NAMES[0]}.")
    return partition


def repartition(points: Floats, labels: Ints, partition: Partition) -> Ints:
    """The labels (n,) of points with the items of groups shared out anew among as many groups.

    The points come in an order of their own, so a fixed start makes the answer depend on nothing else.

    >>> halves = lambda points, k, generator: np.arange(len(points)) * k // len(points)
    >>> repartition(np.zeros((5, 1)), np.array([1, 0, 0, -1, 1]), halves)  # the fourth is alone, and stays so
    array([ 0,  0,  1, -1,  1])
    """
    novel = np.flatnonzero(labels >= 0)
    if not len(novel):
        return labels
    k = int(labels.max()) + 1
    found = np.asarray(partition(points[novel], k, np.random.default_rng(0)))
    if found.shape != novel.shape or found.dtype.kind not in "iu" or found.min() < 0:
        raise InputError(
            f"the grouping gave {found.dtype} labels of shape {found.shape} for {len(novel)} points: "
            "return a whole number from 0 on for each."
        )
    shared = labels.copy()
    shared[novel] = by_size(found)
    return shared
