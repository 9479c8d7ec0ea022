"""Ways to group: the posterior, with groups of its own or those of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.grouping.by_posterior import PosteriorGrouping
from medi.grouping.engine import Anchors, Ask, Grouper, Stage
from medi.grouping.partition import Partition, repartition
from medi.grouping.rehearsal import Rehearsed, rehearse
from medi.grouping.without_rehearsal import unrehearsed

FEWEST_GROUPED = 4
"""Items that rehearsals draw at least, however small the pool is."""


@dataclass(frozen=True)
class PosteriorGrouper(Grouper):
    """Groups a pool by what rehearsals on the known classes set.

    Attributes:
        stages: Splits of the known classes to rehearse on; none where those are too few.
        known: (m, d) points of known classes, which say what can be said without rehearsals; may be none.
        labels: (m,) their classes.
        seed: Start of all random draws.
        partition: What shares groups out in the place of the posterior; None for nothing.
        seen: What rehearsals for pools of a size said: a further pool of that size need not wait for them.

    >>> known = np.array([[0.0, 0], [0, 1], [9, 0], [9, 1]])  # two known classes of two items
    >>> grouper = PosteriorGrouper((), known, np.array([0, 0, 1, 1]))
    >>> pool = np.array([[0, 9.0], [0, 9.5], [9, 9], [9, 9.5], [9, 9.7]])
    >>> grouper.group(pool, Anchors.none(width=2), Ask(k=2)).labels
    array([1, 1, 0, 0, 0])
    """

    stages: Sequence[Stage]
    known: Floats
    labels: Ints
    seed: int = 0
    partition: Partition | None = None
    seen: dict[tuple[int, int | None, bool], Rehearsed] = field(default_factory=dict, repr=False)

    def group(self, points: Floats, known: Anchors, ask: Ask, copies: Ints | None = None) -> PosteriorGrouping:
        """Group points (n, d), all different, beside known classes whose means are as they were fitted."""
        copies = np.ones(len(points), np.int64) if copies is None else copies
        reachable = ask if ask.k is None else replace(ask, k=min(ask.k, max(len(points), 1)))
        rehearsed = self.rehearsed(points, reachable)
        known = Anchors(rehearsed.shrink * known.means, known.counts)
        found = replace(PosteriorGrouping.of(points, copies, reachable, known, rehearsed), ask=ask)
        if self.partition is None or found.found is None:
            return found
        return found.relabelled(repartition(points, found.labels, self.partition))

    def rehearsed(self, points: Floats, ask: Ask) -> Rehearsed:
        """What rehearsals for a pool of points (n, d) say; where there are no stages, what usual settings say."""
        if not self.stages:
            return unrehearsed(points, self.known, self.labels, ask)
        key = max(len(points), FEWEST_GROUPED), ask.k, ask.only_novel
        if key not in self.seen:
            self.seen[key] = rehearse(self.stages, key[0], ask, self.seed, self.partition)
        return self.seen[key]
