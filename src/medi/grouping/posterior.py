"""A posterior over groupings, with known classes as groups that are already there.

The groupings are those that Ward's tree of the items and the known classes allows: every group is a branch of it. Sums
over all of them are exact, because both evidence and prior of a grouping are products over its groups. A branch may be
a novel group, a known class with some items (it then holds exactly one known class), or a single item alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.grouping.branches import Branches
from medi.grouping.class_model import ClassModel, log_total
from medi.grouping.engine import ALONE, known_label

NEGLIGIBLE = 1e-12
"""A probability that nothing comes of."""


@dataclass(frozen=True)
class Posterior:
    """The posterior over the groupings of one tree.

    Several settings may be tried at once, to compare their `numbers` and `ways`; all else is said of the first.

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
    seen: dict[tuple[int, int], tuple[list[int], Floats]] = field(default_factory=dict, repr=False)

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

    def possible(self, numbers: Floats) -> Floats:
        """The probabilities (k + 1,) of those numbers of groups that there can be; of the others 0."""
        there = np.isfinite(self.ways[-1][0])
        return np.where(there, numbers[: len(there)], 0.0)

    def branch_probabilities(self, numbers: Floats) -> Floats:
        """Probability (b,) that each branch is one group, where the number of groups has probabilities (k + 1,)."""
        leaves, ways = self.branches.tree.points, [part[0] for part in self.ways]
        share = [np.zeros(len(part)) for part in ways]  # probability of each number of groups inside a branch
        share[-1][: len(numbers)] = numbers[: len(ways[-1])]
        found = np.zeros(len(ways))
        for v in range(len(ways) - 1, leaves - 1, -1):
            counts = np.flatnonzero((share[v] > NEGLIGIBLE) & np.isfinite(ways[v]))
            if not len(counts):
                continue
            a, b = self.branches.tree.pairs[v - leaves]
            as_one = int(self.degree[v])
            if as_one in counts:
                found[v] = share[v][as_one] * np.exp(self.weights[0, v] - ways[v][as_one])
            second = counts - np.arange(len(ways[a]))[:, None]  # groups in b, for each number in a
            there = (second >= 0) & (second < len(ways[b]))
            weight = ways[a][:, None] + np.where(there, ways[b][np.where(there, second, 0)], -np.inf)
            parts = np.exp(weight - ways[v][counts]) * share[v][counts]
            share[a] += parts.sum(1)
            share[b] += np.bincount(second[there], parts[there], len(share[b]))
        for v in range(leaves):
            found[v] = share[v].sum()
        return found

    def pairs(self, numbers: Floats, some: Ints) -> Floats:
        """Probability (s, s) that two of some items (s,) are in one novel group; 1 for an item and itself."""
        link = self._links(self.branch_probabilities(numbers))
        place = self.branches.spans[some, 0]
        order = np.argsort(place, kind="stable")
        found = np.ones((len(some), len(some)))
        steps = np.minimum.reduceat(np.append(link, 0.0), place[order])[:-1]
        for i in range(len(some) - 1):
            found[order[i], order[i + 1 :]] = found[order[i + 1 :], order[i]] = np.minimum.accumulate(steps[i:])
        return found

    def _links(self, probability: Floats) -> Floats:
        """Probability (leaves - 1,) that a leaf of the tree and the next one are in one novel group."""
        leaves, end = self.branches.tree.points, self.branches.spans[:, 1]
        together = np.where(self.branches.known == 0, probability, 0.0)  # that a branch is inside of a novel group
        link = np.zeros(max(leaves - 1, 0))
        for number in range(leaves - 2, -1, -1):
            a, b = self.branches.tree.pairs[number]
            together[a] += together[leaves + number]
            together[b] += together[leaves + number]
            link[min(end[a], end[b]) - 1] = together[leaves + number]
        return link

    def best(self, number: int) -> Ints:
        """Labels (n,) of the best grouping into so many groups, of a posterior made with `total=numpy.maximum`."""
        return self._labels(number, lambda v, k: int(self._options(v, k)[1].argmax()))

    def draws(self, numbers: Ints, generator: np.random.Generator) -> Iterator[Ints]:
        """Labels (n,) of groupings drawn from the posterior, one for each number of groups."""
        chances: dict[tuple[int, int], list[float]] = {}

        def pick(v: int, k: int) -> int:
            if (v, k) not in chances:
                weights = self._options(v, k)[1]
                raised = np.cumsum(np.exp(weights - weights.max()))
                chances[v, k] = (raised / raised[-1]).tolist()
            return min(bisect_right(chances[v, k], generator.random()), len(chances[v, k]) - 1)

        for number in numbers.tolist():
            yield self._labels(number, pick)

    def _labels(self, number: int, pick: Callable[[int, int], int]) -> Ints:
        """Labels (n,) where `pick` chooses among the options of each branch and number of groups."""
        branches, leaves = self.branches, self.branches.tree.points
        in_order, groups, stack = np.full(leaves, ALONE), 0, [(len(self.ways) - 1, number)]
        while stack:
            v, k = stack.pop()
            splits = self._options(v, k)[0]
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

    def _options(self, v: int, k: int) -> tuple[list[int], Floats]:
        """What a branch with k groups may be: numbers of groups in its first part, then one group, and the weights."""
        found = self.seen.get((v, k))
        if found is None:
            leaves = self.branches.tree.points
            single = self.weights[0, v] if k == self.degree[v] else -np.inf
            if v < leaves:
                found = [], np.array([single])
            else:
                a, b = self.branches.tree.pairs[v - leaves]
                left, right = self.ways[a][0], self.ways[b][0]
                split = np.arange(max(0, k - len(right) + 1), min(len(left) - 1, k) + 1)
                found = split.tolist(), np.append(left[split] + right[k - split], single)
            self.seen[v, k] = found
        return found


def _as_one(weight: Floats, degree: int, length: int) -> Floats:
    """Ways (s, max(length, degree + 1)) of a branch that is one group."""
    ways = np.full((len(weight), max(length, degree + 1)), -np.inf)
    ways[:, degree] = weight
    return ways
