"""Groupings by brute force, from the definition of the model: what the posterior has to agree with."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import lgamma

import numpy as np
from scipy.stats import multivariate_normal

from medi.grouping.branches import Branches, Units
from medi.grouping.class_model import ClassModel, Terms
from medi.grouping.engine import ALONE, Anchors, Stage, known_label


def sampled_classes(classes: int, items: int, *, share: float = 0.8, width: int = 6, seed: int = 0) -> np.ndarray:
    """Points (classes, items, width) of the model itself, of mean squared length 1."""
    generator = np.random.default_rng(seed)
    places = generator.normal(0, np.sqrt(share / width), (classes, 1, width))
    return places + generator.normal(0, np.sqrt((1 - share) / width), (classes, items, width))


def log_density(x: np.ndarray, model: ClassModel, *, one_class: bool) -> float:
    """Of points (n, d) with a common place that is not known, or with none; d is the model's dimensions."""
    n, d = x.shape
    place, scatter = model.share / d, (1 - model.share) / d
    covariance = scatter * np.eye(n) + (place if one_class else 0) * np.ones((n, n))
    return float(multivariate_normal.logpdf(x.T, np.zeros(n), covariance).sum()) if n else 0.0


def log_evidence(x: np.ndarray, model: ClassModel) -> float:
    """That points (n, d) are of one class, over that each lies about the middle."""
    return log_density(x, model, one_class=True) - log_density(x, model, one_class=False)


@dataclass(frozen=True)
class Grouping:
    """One grouping of the items of a tree.

    Attributes:
        labels: (n,) groups from 0 on in some order, `ALONE`, or `known_label`.
        branches: The branches that are its groups.
        number: How many groups.
        log_weight: Before everything is made to sum to 1.
    """

    labels: tuple[int, ...]
    branches: tuple[int, ...]
    number: int
    log_weight: float

    def same(self) -> frozenset[frozenset[int]]:
        """The groups, whatever their numbers, and with them who is known or alone."""
        named = {label: [i for i, other in enumerate(self.labels) if other == label] for label in set(self.labels)}
        return parts(named)


def parts(named: dict[int, list[int]]) -> frozenset[frozenset[int]]:
    """Items of each label as sets; kinds other than groups are marked by numbers below zero."""
    return frozenset(frozenset([*items, *([label - 1000] if label < 0 else [])]) for label, items in named.items())


def partition(labels: np.ndarray) -> frozenset[frozenset[int]]:
    """The groups of labels (n,), whatever their numbers."""
    return parts({label: np.flatnonzero(labels == label).tolist() for label in set(labels.tolist())})


@dataclass(frozen=True)
class Problem:
    """Points and known classes, with the settings of a posterior."""

    points: np.ndarray
    anchors: Anchors
    model: ClassModel
    log_rate: float
    singles: bool
    copies: np.ndarray | None = None

    def branches(self) -> Branches:
        return Branches.of(self.units, self.anchors)

    @property
    def units(self) -> Units:
        return Units.single(self.points, self.copies)

    @property
    def terms(self) -> Terms:
        return Terms(self.anchors, self.model, self.log_rate, self.singles)

    def log_weight(self, labels: np.ndarray) -> float:
        """Of a grouping, from its labels alone."""
        total = 0.0
        for label in set(labels.tolist()):
            mine = np.flatnonzero(labels == label)
            if label == ALONE:
                total += sum(self._alone(int(i)) for i in mine)
            elif label >= 0:
                total += self._group(mine)
            else:
                total += self._known(mine, -2 - label)
        return total

    def groupings(self, branches: Branches) -> Iterator[Grouping]:
        """All groupings of the tree."""
        leaves, pairs, n = branches.tree.points, branches.tree.pairs, len(self.points)

        def below(v: int) -> list[int]:
            return [v] if v < leaves else below(pairs[v - leaves][0]) + below(pairs[v - leaves][1])

        def ways(v: int) -> Iterator[tuple[int, ...]]:
            if sum(leaf >= n for leaf in below(v)) <= 1:
                yield (v,)
            if v >= leaves:
                a, b = pairs[v - leaves]
                yield from ((*left, *right) for left in ways(a) for right in ways(b))

        for chosen in ways(2 * leaves - 2):
            labels, number = np.full(leaves, ALONE), 0
            for v in chosen:
                inside = below(v)
                known = [leaf - n for leaf in inside if leaf >= n]
                if known:
                    labels[inside] = known_label(known[0])
                elif self.singles or len(inside) > 1 or (self.copies is not None and self.copies[inside[0]] > 1):
                    labels[inside], number = number, number + 1
            yield Grouping(tuple(labels[:n].tolist()), chosen, number, self.log_weight(labels[:n]))

    def _alone(self, i: int) -> float:
        return log_evidence(self.points[[i]], self.model) + self.model.log_alone

    def _group(self, mine: np.ndarray) -> float:
        evenness = self.model.evenness
        prior = self.model.log_new + lgamma(len(mine) + evenness) - lgamma(1 + evenness)
        return prior + log_evidence(self.points[mine], self.model)

    def _known(self, mine: np.ndarray, c: int) -> float:
        """The items behind a known class count as so many in the place of its mean: only their sum matters."""
        behind = np.repeat(self.anchors.means[[c]], round(self.anchors.counts[c]), 0)
        joined = log_evidence(np.concatenate([behind, self.points[mine]]), self.model)
        return joined - log_evidence(behind, self.model) + len(mine) * self.log_rate


def problem(n: int, known: int, *, singles: bool, seed: int = 0, width: int = 3) -> Problem:
    """N points about a few places, and known classes among them."""
    generator = np.random.default_rng(seed)
    places = generator.normal(0, 0.8 / np.sqrt(width), (3 + known, width))
    points = places[generator.integers(0, 3 + known, n)] + generator.normal(0, 0.6 / np.sqrt(width), (n, width))
    anchors = Anchors(places[3:], generator.integers(2, 6, known).astype(float))
    model = ClassModel(0.6, float(width), log_new=-1.5, log_alone=-0.5)
    return Problem(points, anchors, model, log_rate=-1.0, singles=singles)


def stage(
    classes: int = 12, held_out: int = 4, items: int = 15, *, share: float = 0.75, width: int = 16, seed: int = 0
) -> Stage:
    """A split of classes of the model itself: the last three items of each class learnt from are kept back."""
    world = sampled_classes(classes, items, share=share, width=width, seed=seed)
    learnt, back = world[held_out:, :-3], world[held_out:, -3:]
    return Stage(
        world[:held_out].reshape(-1, width),
        np.repeat(np.arange(held_out), items),
        back.reshape(-1, width),
        np.repeat(np.arange(classes - held_out), 3),
        Anchors(learnt.mean(1), np.full(classes - held_out, float(items - 3))),
    )
