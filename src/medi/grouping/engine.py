"""The contract of the engine: from points to groups, and all that is said of them.

    grouping = grouper.group(points, known, Ask(k=10))     labels, numbers, confidence
    grouping.assign(further)                               probabilities of every place for further points
    grouping.regroup(constraints)                          again, under what a person said
    grouping.save(file); Grouping.load(file)

Bench, discover, assign, review and the estimator use this and know nothing of what is inside. The posterior keeps it
(`medi.grouping.grouper`), with groups of its own or those of a partition; a further way is a file of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Floats, Ints
from medi.core.tensors import save_arrays
from medi.grouping.constraints import Constraints
from medi.grouping.numbers import interval

if TYPE_CHECKING:
    from medi.grouping.recogniser import Recogniser
    from medi.grouping.representation import Representation

ALONE = -1
"""The label of an item that is in no group. Items of known class c have the label `known_label(c)`."""


GUESS = 0.5
"""No line is surer where rehearsals say nothing of it."""


def known_label(c: int) -> int:
    """The label of items of known class c; groups have labels from 0 on.

    >>> known_label(0), known_label(1)
    (-2, -3)
    """
    return -2 - c


def place_numbers(labels: Ints, classes: int) -> Ints:
    """The number (n,) of the place of each label: groups first, then so many known classes, then alone.

    >>> place_numbers(np.array([0, 2, -3, ALONE]), classes=4)
    array([0, 2, 4, 7])
    """
    groups = int(labels.max(initial=-1)) + 1
    return np.where(labels >= 0, labels, np.where(labels == ALONE, groups + classes, groups + known_label(0) - labels))


Kind = Literal["novel", "known", "alone"]
"""novel: in a group that was found; known: looks like a known class; alone: resembles nothing else."""


def kind_of(label: int) -> Kind:
    """The kind of an item by its label.

    >>> kind_of(0), kind_of(ALONE), kind_of(known_label(3))
    ('novel', 'alone', 'known')
    """
    return "novel" if label >= 0 else "alone" if label == ALONE else "known"


@dataclass(frozen=True)
class Ask:
    """What is asked of a grouping.

    Attributes:
        k: The number of groups; None where it is to be found.
        equal_sizes: Whether every group is said to have equally many items.
        only_novel: Whether the pool holds nothing known and nothing alone; single items then count as groups.
        constraints: What a person said of the items.

    >>> Ask().singles, Ask(only_novel=False).singles, Ask(k=3, only_novel=False).singles
    (True, False, True)
    """

    k: int | None = None
    equal_sizes: bool = False
    only_novel: bool = True
    constraints: Constraints[int] = field(default_factory=Constraints)

    @property
    def singles(self) -> bool:
        """Whether a single item counts as a group: where nothing is alone, or the number of groups was given."""
        return self.only_novel or self.k is not None


@dataclass(frozen=True)
class Anchors:
    """Known classes: groups that are there already.

    Attributes:
        means: (c, d) of their points.
        counts: (c,) items behind each.

    >>> len(Anchors(means=np.zeros((2, 5)), counts=np.array([9.0, 12.0]))), len(Anchors.none(width=5))
    (2, 0)
    """

    means: Floats
    counts: Floats

    def __len__(self) -> int:
        """How many."""
        return len(self.counts)

    @classmethod
    def none(cls, width: int) -> Anchors:
        """No known class, beside points of so many dimensions."""
        return cls(np.zeros((0, width)), np.zeros(0))


@dataclass(frozen=True)
class Stage:
    """A split of the known classes as points, to rehearse on.

    Attributes:
        held_out: (n, d) items of classes that nothing was fitted to.
        labels: (n,) their classes.
        kept_back: (m, d) items of the other classes that nothing was fitted to.
        kept_labels: (m,) their classes, numbers of `anchors`.
        anchors: The classes learnt from.

    >>> held, kept = np.ones((4, 2)), np.zeros((3, 2))
    >>> Stage(held, np.array([0, 0, 1, 1]), kept, np.zeros(3, int), Anchors(kept[:1], np.ones(1))).labels
    array([0, 0, 1, 1])
    """

    held_out: Floats
    labels: Ints
    kept_back: Floats
    kept_labels: Ints
    anchors: Anchors


@dataclass(frozen=True)
class Grouping(ABC):
    """The groups of n points.

    Attributes:
        points: (n, d), all different.
        copies: (n,) how many copies of each there are.
        ask: What was asked.
        labels: (n,) groups from 0 on, the largest 0; `ALONE`; or `known_label` of a known class.
        numbers: (most + 1,) probability of each number of groups.
        chances: (n, groups + known classes + 1) probability of every place of each point; alone is last. None is
            likelier than that of the label; what is missing to 1 is a class that has no group.
        between: (groups, groups) mean probability that an item of one and an item of another are together.
        known: The known classes, where the model has them.

    >>> from medi.grouping.grouper import PosteriorGrouper
    >>> line, nobody = np.array([[0.0], [0.1], [0.2], [9.0], [9.1]]), np.zeros(0, int)
    >>> grouping = PosteriorGrouper((), np.zeros((0, 1)), nobody).group(line, Anchors.none(width=1), Ask(k=2))
    >>> grouping.labels, grouping.k, grouping.interval, grouping.calibrated
    (array([0, 0, 0, 1, 1]), 2, (2, 2), False)
    >>> grouping.assign(np.array([[9.05]])).argmax(1)  # a further point belongs to group 1
    array([1])
    """

    points: Floats
    copies: Ints
    ask: Ask
    labels: Ints
    numbers: Floats
    chances: Floats
    between: Floats
    known: Anchors

    @property
    def confidence(self) -> Floats:
        """(n,) probability that each label is right."""
        return self.chances[np.arange(len(self.labels)), place_numbers(self.labels, len(self.known))]

    @property
    @abstractmethod
    def calibrated(self) -> bool:
        """Whether rehearsals on known classes set what is said."""

    @property
    @abstractmethod
    def right(self) -> tuple[float, float]:
        """Share of rehearsed items that were put right, and its standard error; NaN where that is not known."""

    @property
    def k(self) -> int:
        """How many groups there are."""
        return int(self.labels.max(initial=-1)) + 1

    @property
    def interval(self) -> tuple[int, int]:
        """Between which numbers of groups the true one lies with a probability of 90 %."""
        return interval(self.numbers)

    @property
    @abstractmethod
    def pure(self) -> Floats:
        """Probability (k,) that all items of a group are of one class."""

    @property
    @abstractmethod
    def kin(self) -> Floats:
        """Probability (k, k) that two groups are of one class."""

    @abstractmethod
    def sample(self, n: int) -> Ints:
        """(n, items) labels of groupings drawn as likely as they are."""

    @abstractmethod
    def assign(self, points: Floats) -> Floats:
        """Probability (m, groups + known classes + 1) of every place for further points (m, d); none is last.

        Each point is assigned by itself, as if the others did not exist.
        """

    @abstractmethod
    def likeness(self, points: Floats) -> Floats:
        """How like (m, known classes) further points are to each known class; larger is more, only order matters."""

    @abstractmethod
    def relabelled(self, labels: Ints) -> Self:
        """The same points in other groups (n,): how sure each line is follows from them."""

    @abstractmethod
    def extended(self, points: Floats, copies: Ints, labels: Ints, chances: Floats) -> Self:
        """The same groups with further points in them: all points (m, d), and what is said of each (m, …)."""

    @abstractmethod
    def regroup(self, constraints: Constraints[int]) -> Self:
        """The same points under what a person said of them."""

    @abstractmethod
    def split(self, some: Ints, parts: int) -> Ints:
        """The part (s,) of each of some points, the largest part 0, where they are shared out among so many parts."""

    @abstractmethod
    def recogniser(self, representation: Representation, names: tuple[str, ...]) -> Recogniser:
        """What recognises further items: made points by a representation, with the names of the known classes."""

    @property
    def numbers_by_size(self) -> Ints:
        """(k,) new numbers of groups: the largest 0, copies counted; of equal ones that with the smaller number."""
        novel = self.labels >= 0
        sizes = np.bincount(self.labels[novel], self.copies[novel], minlength=self.k)
        return np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")

    def renumbered(self, number: Ints) -> Self:
        """The same groups with new numbers (k,)."""
        labels, chances = self.labels.copy(), self.chances.copy()
        labels[labels >= 0] = number[labels[labels >= 0]]
        chances[:, number] = self.chances[:, : len(number)]
        order = np.argsort(number)
        return replace(self, labels=labels, chances=chances, between=self.between[order][:, order])

    def doubted(self) -> Self:
        """The same with no line surer than a guess."""
        return replace(self, chances=np.minimum(self.chances, GUESS))

    @abstractmethod
    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON-able facts; what a person said is kept elsewhere, in the journal of the review."""

    def save(self, file: Path) -> None:
        """Write what `load` reads; whole, or not at all."""
        save_arrays(file, *self.pack())

    @classmethod
    @abstractmethod
    def load(cls, file: Path) -> Self:
        """Read what `save` wrote; a file that holds anything else is refused by name."""


class Grouper(ABC):
    """A way to group points.

    >>> from medi.grouping.grouper import PosteriorGrouper
    >>> issubclass(PosteriorGrouper, Grouper)
    True
    """

    @abstractmethod
    def group(self, points: Floats, known: Anchors, ask: Ask, copies: Ints | None = None) -> Grouping:
        """Group points (n, d) beside known classes.

        Args:
            points: All different.
            known: The known classes; not used where the pool is only novel.
            ask: Number and kind of groups.
            copies: (n,) how many copies of each point there are; they say nothing new.
        """
