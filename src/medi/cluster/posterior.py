"""A posterior over groupings, with known classes as groups that are already there.

The groupings are those that Ward's tree of the items and the known classes allows: every group is a branch of it. Sums
over all of them are exact, because both evidence and prior of a grouping are products over its groups. A branch may be
a novel group, a known class with some items (it then holds exactly one known class), or a single item alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from medi.cluster.class_model import Anchors, ClassModel, Floats, log_total
from medi.cluster.linked_ward import linked_ward
from medi.cluster.ward import Tree, weighted_ward

Ints = NDArray[np.int64]

ALONE = -1
"""The label of an item that is in no group. Items of known class c have the label `known_label(c)`."""


def known_label(c: int) -> int:
    """The label of items of known class c; groups have labels from 0 on."""
    return -2 - c


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
    def of(
        cls,
        points: Floats,
        anchors: Anchors,
        copies: Ints | None = None,
        *,
        sizes: Ints | None = None,
        apart: Sequence[tuple[int, int]] = (),
    ) -> Branches:
        """The branches of Ward's tree of points and known classes.

        Args:
            points: (n, d).
            anchors: The known classes.
            copies: (n,) how many copies of each point there are; they say nothing new.
            sizes: (n,) of how many different items each point is the mean, where items are known to belong together.
            apart: Pairs of points that belong to different groups.
        """
        n, c = len(points), len(anchors)
        weights = np.ones(n) if sizes is None else sizes.astype(np.float64)
        every, mass = np.concatenate([points, anchors.means]), np.concatenate([weights, anchors.counts])
        tree = linked_ward(every, mass, apart) if apart else weighted_ward(every, mass)
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
        if copies is not None:
            single[:n] &= copies == 1
        spans = _spans(tree)
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


@dataclass(frozen=True)
class Posterior:
    """The posterior over the groupings of one tree under one or several settings.

    Attributes:
        branches: Of the tree.
        weights: (s, b) logarithm of the weight of each branch as one group.
        degree: (b,) 1 where a branch as one group counts as a group, 0 for known classes and items alone.
        ways: For each branch, (s, k + 1) logarithm of the weight of all its groupings into 0 to k groups.
        seen: What `_options` found, kept because drawing asks for the same again and again.
    """

    branches: Branches
    weights: Floats
    degree: Ints
    ways: list[Floats]
    seen: dict[tuple[int, int, int], tuple[list[int], Floats]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        branches: Branches,
        model: ClassModel,
        log_rate: float | Floats = 0.0,
        *,
        singles: bool,
        most: int,
        total: Callable[..., Floats] = np.logaddexp,
    ) -> Posterior:
        """Add up the weights of all groupings.

        Args:
            branches: Of the tree.
            model: What a class is; arrays (s, 1) in it try s settings at once.
            log_rate: Of an item in a known class, beside the evidence; may be (s, 1).
            singles: Whether a single item counts as a group; otherwise it is alone.
            most: Largest number of groups that is considered.
            total: How weights of alternatives are joined; `numpy.maximum` leads to the best grouping instead.
        """
        weights = np.atleast_2d(branches.log_weights(model, log_rate, singles=singles))
        counted = (branches.known == 0) & (singles | ~branches.single)
        degree = counted.astype(np.int64)
        leaves = branches.tree.points
        ways = [_as_one(weights[:, v], int(degree[v]), 1) for v in range(leaves)]
        for number, (a, b) in enumerate(branches.tree.pairs):
            v = leaves + number
            small, large = sorted((ways[a], ways[b]), key=lambda part: part.shape[1])
            found = _as_one(weights[:, v], int(degree[v]), min(most + 1, small.shape[1] + large.shape[1] - 1))
            for k in range(small.shape[1]):
                width = min(large.shape[1], found.shape[1] - k)
                if width > 0 and np.isfinite(small[:, k]).any():
                    part = found[:, k : k + width]
                    total(part, small[:, k : k + 1] + large[:, :width], out=part)
            ways.append(found)
        return cls(branches, weights, degree, ways)

    def numbers(self) -> Floats:
        """Probability (s, k + 1) of each number of groups."""
        ways = self.ways[-1]
        return np.asarray(np.exp(ways - log_total(ways)))

    def branch_probabilities(self, numbers: Floats, setting: int = 0) -> Floats:
        """Probability (b,) that each branch is one group, where the number of groups has probabilities (k + 1,)."""
        leaves, ways = self.branches.tree.points, [part[setting] for part in self.ways]
        share = [np.zeros(len(part)) for part in ways]  # probability of each number of groups inside a branch
        share[-1][: len(numbers)] = numbers[: len(ways[-1])]
        found = np.zeros(len(ways))
        for v in range(len(ways) - 1, leaves - 1, -1):
            a, b = self.branches.tree.pairs[v - leaves]
            as_one, own = int(self.degree[v]), self.weights[setting, v]
            for k in np.flatnonzero(share[v] > 1e-12):
                split, weight = self._splits(ways[a], ways[b], int(k))
                single = own if k == as_one else -np.inf
                top = max(single, weight.max(initial=-np.inf))
                if top == -np.inf:
                    continue
                parts, alone = np.exp(weight - top), float(np.exp(single - top))
                scale = share[v][k] / (parts.sum() + alone)
                found[v] += alone * scale
                share[a][split] += parts * scale
                share[b][k - split] += parts * scale
        for v in range(leaves):
            found[v] = share[v].sum()
        return found

    def best(self, number: int, setting: int = 0) -> Ints:
        """Labels (n,) of the best grouping into so many groups, of a posterior made with `total=numpy.maximum`."""
        return self._labels(number, setting, lambda v, k: int(self._options(v, k, setting)[1].argmax()))

    def draws(self, numbers: Ints, generator: np.random.Generator, setting: int = 0) -> Iterator[Ints]:
        """Labels (n,) of groupings drawn from the posterior, one for each number of groups."""
        chances: dict[tuple[int, int], list[float]] = {}

        def pick(v: int, k: int) -> int:
            if (v, k) not in chances:
                weights = self._options(v, k, setting)[1]
                raised = np.cumsum(np.exp(weights - weights.max()))
                chances[v, k] = (raised / raised[-1]).tolist()
            return min(bisect_right(chances[v, k], generator.random()), len(chances[v, k]) - 1)

        for number in numbers.tolist():
            yield self._labels(number, setting, pick)

    def _labels(self, number: int, setting: int, pick: Callable[[int, int], int]) -> Ints:
        """Labels (n,) where `pick` chooses among the options of each branch and number of groups."""
        branches, leaves = self.branches, self.branches.tree.points
        in_order, groups, stack = np.full(leaves, ALONE), 0, [(len(self.ways) - 1, number)]
        while stack:
            v, k = stack.pop()
            splits = self._options(v, k, setting)[0]
            place = pick(v, k)
            if place < len(splits):
                a, b = branches.tree.pairs[v - leaves].tolist()
                stack += [(b, k - splits[place]), (a, splits[place])]
                continue
            if branches.known[v] == 1:
                label = known_label(int(branches.only[v]))
            elif self.degree[v]:
                label, groups = groups, groups + 1
            else:
                label = ALONE
            in_order[branches.spans[v, 0] : branches.spans[v, 1]] = label
        n = int((branches.known[:leaves] == 0).sum())
        return in_order[branches.spans[:n, 0]]

    def _options(self, v: int, k: int, setting: int) -> tuple[list[int], Floats]:
        """What a branch with k groups may be: numbers of groups in its first part, then one group, and the weights."""
        found = self.seen.get((setting, v, k))
        if found is None:
            leaves = self.branches.tree.points
            single = self.weights[setting, v] if k == self.degree[v] else -np.inf
            if v < leaves:
                found = [], np.array([single])
            else:
                a, b = self.branches.tree.pairs[v - leaves]
                split, weight = self._splits(self.ways[a][setting], self.ways[b][setting], k)
                found = split.tolist(), np.append(weight, single)
            self.seen[setting, v, k] = found
        return found

    def _splits(self, left: Floats, right: Floats, k: int) -> tuple[Ints, Floats]:
        """Ways to share k groups out among two branches: how many go to the first, and the weight of each way."""
        split = np.arange(max(0, k - len(right) + 1), min(len(left) - 1, k) + 1)
        return split, left[split] + right[k - split]


@dataclass(frozen=True)
class Marginals:
    """What a posterior says of single items and of pairs.

    Attributes:
        known: (n, c) probability that an item belongs to each known class.
        alone: (n,) probability that it is in no group; 0 where single items count as groups.
        place: (n,) where an item stands among the leaves of the tree.
        link: (leaves - 1,) probability that a leaf and the next one are in one novel group.
    """

    known: Floats
    alone: Floats
    place: Ints
    link: Floats

    @classmethod
    def of(cls, posterior: Posterior, numbers: Floats, setting: int = 0) -> Marginals:
        """Under probabilities (k + 1,) of the number of groups."""
        branches = posterior.branches
        leaves, pairs = branches.tree.points, branches.tree.pairs
        probability = posterior.branch_probabilities(numbers, setting)
        at, (first, end) = branches.spans[:leaves, 0], branches.spans.T
        known = np.zeros((leaves, int((branches.known[:leaves] == 1).sum())))
        for v in np.flatnonzero((branches.known == 1) & (probability > 0)):
            known[first[v] : end[v], branches.only[v]] += probability[v]
        together = np.where(branches.known == 0, probability, 0.0)  # that a branch is inside of a novel group
        link = np.zeros(max(leaves - 1, 0))
        for number in range(len(pairs) - 1, -1, -1):
            a, b = pairs[number]
            together[a] += together[leaves + number]
            together[b] += together[leaves + number]
            link[min(end[a], end[b]) - 1] = together[leaves + number]
        n = int(branches.items[:leaves].sum())
        alone = np.where(posterior.degree[:n] == 0, probability[:n], 0.0)
        return cls(known[at[:n]], alone, at[:n], link)

    def together(self, some: Ints) -> Floats:
        """Probability (s, s) that two of some items are in one novel group; 1 for an item and itself."""
        order = np.argsort(self.place[some], kind="stable")
        places = self.place[some][order]
        found = np.ones((len(some), len(some)))
        if len(some) > 1:
            steps = np.minimum.reduceat(np.append(self.link, 0.0), places)[:-1]
            for i in range(len(some) - 1):
                found[order[i], order[i + 1 :]] = found[order[i + 1 :], order[i]] = np.minimum.accumulate(steps[i:])
        return found


def _spans(tree: Tree) -> Ints:
    """Where the leaves of each branch begin and end in the order of `Tree.leaf_order`."""
    leaves = tree.points
    spans = np.zeros((2 * leaves - 1, 2), np.int64)
    spans[tree.leaf_order(), 0] = np.arange(leaves)
    spans[:leaves, 1] = spans[:leaves, 0] + 1
    for number, (a, b) in enumerate(tree.pairs):
        spans[leaves + number] = min(spans[a, 0], spans[b, 0]), max(spans[a, 1], spans[b, 1])
    return spans


def _as_one(weight: Floats, degree: int, length: int) -> Floats:
    """Ways (s, max(length, degree + 1)) of a branch that is one group."""
    ways = np.full((len(weight), max(length, degree + 1)), -np.inf)
    ways[:, degree] = weight
    return ways
