"""What is grouped, and the branches of its tree: everything that may be a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Floats, Ints
from medi.grouping.class_model import ClassModel
from medi.grouping.engine import Anchors
from medi.grouping.ward import Tree, ward


@dataclass(frozen=True)
class Units:
    """What is grouped: points that are single items, or the means of items that were said to belong together.

    Attributes:
        points: (n, d).
        copies: (n,) how many copies of each point there are.
        sizes: (n,) how many different items each point is the mean of.
        apart: Pairs of points that belong to different groups.
    """

    points: Floats
    copies: Ints
    sizes: Ints
    apart: tuple[tuple[int, int], ...] = ()

    @classmethod
    def single(cls, points: Floats, copies: Ints | None = None) -> Units:
        """Points (n, d) of which nothing was said."""
        ones = np.ones(len(points), np.int64)
        return cls(points, ones if copies is None else copies, ones)

    def together(self, labels: Ints) -> bool:
        """Whether two points that belong apart have one label."""
        return any(labels[a] == labels[b] for a, b in self.apart)

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """(n,) of which a person said something: they stay where their tree has them."""
        fixed = self.sizes > 1
        fixed[[point for pair in self.apart for point in pair]] = True
        return fixed


@dataclass(frozen=True)
class Branches:
    """The branches of a tree of items and known classes, leaves first.

    Attributes:
        tree: Its leaves are the n items, and after them the known classes.
        items: (b,) items in each branch.
        single: (b,) whether a branch is one item without copies.
        known: (b,) known classes in each.
        only: (b,) the known class of a branch that has one; otherwise -1.
        counts: (b,) items in each branch, those behind its known class among them.
        squares: (b,) squared length of their sum.
        before: (b, 2) count and squared length of the known class of a branch alone.
        spans: (b, 2) where the leaves of a branch begin and end in an order in which each branch is one run.
        split: (b,) whether a branch holds two points that belong apart, and so is no group.
    """

    tree: Tree
    items: Ints
    single: NDArray[np.bool_]
    known: Ints
    only: Ints
    counts: Floats
    squares: Floats
    before: Floats
    spans: Ints
    split: NDArray[np.bool_]

    @classmethod
    def of(cls, units: Units, anchors: Anchors) -> Branches:
        """The branches of Ward's tree of what is grouped and of the known classes."""
        points, apart, n, c = units.points, units.apart, len(units.points), len(anchors)
        weights = units.sizes.astype(np.float64)
        every, mass = np.concatenate([points, anchors.means]), np.concatenate([weights, anchors.counts])
        tree = ward(every, mass, apart)
        leaves = n + c
        sums = np.zeros((2 * leaves - 1, points.shape[1]))
        sums[:n], sums[n:leaves] = points * weights[:, None], anchors.means * anchors.counts[:, None]
        items, known, only = (np.zeros(2 * leaves - 1, np.int64) for _ in range(3))
        items[:n], known[n:leaves], only[:], only[n:leaves] = weights, 1, -1, np.arange(c)
        counts = np.concatenate([mass, np.zeros(leaves - 1)])
        for number, (a, b) in enumerate(tree.pairs):
            v = leaves + number
            sums[v], items[v], known[v], counts[v] = sums[a] + sums[b], items[a] + items[b], known[a] + known[b], 0
            counts[v] = counts[a] + counts[b]
            only[v] = max(only[a], only[b]) if known[v] == 1 else -1
        squares = np.square(sums).sum(1)
        before = np.zeros((len(squares), 2))
        before[known == 1] = np.stack([anchors.counts, squares[n:leaves]], 1)[only[known == 1]]
        single = (items == 1) & (known == 0)
        single[:n] &= units.copies == 1
        spans = tree.spans()
        split = np.zeros(len(items), bool)
        for a, b in apart:
            low, high = sorted((spans[a, 0], spans[b, 0]))
            split |= (spans[:, 0] <= low) & (spans[:, 1] > high)
        return cls(tree, items, single, known, only, counts, squares, before, spans, split)

    def log_weights(self, model: ClassModel, log_rate: float | Floats, *, singles: bool) -> Floats:
        """Weight (..., b) of each branch as one group; `log_rate`: what an item of a known class counts by itself."""
        prior = model.log_prior(self.items)
        if not singles:
            prior = np.where(self.single, model.log_alone, prior)
        new = model.evidence(self.items, self.squares) + prior
        joined = model.evidence(self.counts, self.squares) - model.evidence(*self.before.T) + self.items * log_rate
        weights = np.where(self.known == 0, new, np.where(self.known == 1, joined, -np.inf))
        return np.where(self.split, -np.inf, weights)
