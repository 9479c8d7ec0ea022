"""How to discover, and who teaches: the method that learns from known classes, if one does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from medi.core.arrays import Ints
from medi.core.errors import InputError, unknown_name
from medi.core.extras import needs
from medi.core.workplace import Workplace
from medi.data.facts import Augmentation
from medi.data.items import Items
from medi.grouping.partition import Partition
from medi.grouping.representation import Representation
from medi.registry import FILE_MARK, GROUPING_NAMES, METHOD_NAMES, PLAIN, load_listed

TEACHER = "medi.methods.teacher:MethodTeacher"


class Teacher(Protocol):
    """A method that learns from known classes; `medi.methods.teacher` has it."""

    trains_on_observations: bool

    def learns(self, *, vectors: bool) -> bool:
        """Whether known classes teach it anything."""

    def projector(self, known: Items, work: Workplace, name: str) -> Representation:
        """Features, put through what the method learns from known ones."""

    def network(self, known: Items, work: Workplace, name: str) -> Representation:
        """Images, put through what the method learns from known ones."""

    def partition(self, work: Workplace, *, vectors: bool) -> Partition | None:
        """The method's own way to share points out among groups; None where it leaves that to the engine."""

    def trained_groups(
        self, known: Items, represent: Representation, novel: NDArray[Any], k: int, work: Workplace
    ) -> Ints:
        """The groups (n,) of novel items that the method makes by training on them."""


@dataclass(frozen=True)
class DiscoveryConfig:
    """How to discover.

    Attributes:
        classes: Number of novel classes, or "auto" to estimate it.
        method: `plain`, which needs no training, or a name in `medi.methods.METHODS`.
        network: What a method trains on images; vectors always take `mlp`.
        preset: The method's named settings; None for "cpu" on a CPU where it has them, and `default` otherwise.
        sampler: How training tasks are drawn, for methods that train on tasks.
        augmentation: Changes of an image that leave its class alone; vectors are not changed.
        features: What the vectors are called in reports.
        only_novel: Whether the pool holds nothing of known classes and no one-offs.
        noun: What an item is called in reports.
        aside: Items of the pool that a person set aside: they are in no group.
        grouping: `posterior`, or `path/to/file.py:Name` with a partition of the user's own.
    """

    classes: int | Literal["auto"] = "auto"
    method: str = PLAIN
    network: str = "conv4"
    preset: str | None = None
    sampler: str = "cata"
    augmentation: Augmentation = field(default_factory=Augmentation)
    features: str = "encoder"
    only_novel: bool = True
    noun: str = "item"
    aside: frozenset[int] = frozenset()
    grouping: str = GROUPING_NAMES[0]

    def __post_init__(self) -> None:
        if self.classes != "auto" and (
            not isinstance(self.classes, int) or isinstance(self.classes, bool) or self.classes < 1
        ):
            raise InputError(f"classes={self.classes!r}: give a whole number from 1 on, or 'auto'.")
        check_method(self.method)
        check_grouping(self.grouping)

    def teacher(self) -> Teacher | None:
        """Who teaches; None where nothing is to be learnt."""
        if self.method == PLAIN:
            return None
        make: Callable[..., Teacher] = load_listed(TEACHER, f"--method {self.method}")
        return make(self.method, self.network, self.preset, self.sampler, self.augmentation)


def check_grouping(name: str) -> None:
    """Refuse a way to group that is not there."""
    if FILE_MARK not in name and name not in GROUPING_NAMES:
        raise unknown_name("grouping", name, (*GROUPING_NAMES, "path/to/file.py:Name"))


def check_method(name: str) -> None:
    """Refuse a method that is not there, or that lacks torch, before anything long begins."""
    if FILE_MARK not in name and name not in (PLAIN, *METHOD_NAMES):
        raise unknown_name("method", name, (PLAIN, *METHOD_NAMES))
    if name != PLAIN:
        needs("train", "torch", f"--method {name}")
