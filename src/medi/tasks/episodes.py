"""Tasks as index tensors, and the sampler that draws them uniformly."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from medi.core.errors import InputError


@dataclass(frozen=True)
class Task:
    """A batch of tasks over one pool of items: which items are observed, which are asked about.

    Attributes:
        support: (tasks, way, observations) int64, indices of the observed items, a row a class.
        query: (tasks, way, queries) int64, indices of the items asked about.
        classes: (tasks, way) int64, the class each row was drawn from.
    """

    support: Tensor
    query: Tensor
    classes: Tensor

    @property
    def way(self) -> int:
        """Number of classes in each task."""
        return self.support.shape[1]

    @property
    def support_labels(self) -> Tensor:
        """(tasks, way * observations) int64, class of each observed item as a row number 0 to way - 1."""
        return _rows(self.support)

    @property
    def query_labels(self) -> Tensor:
        """(tasks, way * queries) int64, class of each query item as a row number 0 to way - 1."""
        return _rows(self.query)


def _rows(items: Tensor) -> Tensor:
    way = torch.arange(items.shape[1], device=items.device)
    return way[None, :, None].expand(items.shape).flatten(1)


class UniformSampler:
    """N-way tasks over classes and items drawn uniformly without replacement.

    Labels (n,) are on the device where tasks are wanted; -1 is never drawn. Names of classes are for messages.
    """

    def __init__(
        self, labels: Tensor, way: int, observations: int, queries: int, names: tuple[str, ...] | None = None
    ) -> None:
        if way < 1 or observations < 1 or queries < 0:
            raise InputError(
                f"a task of {way} classes with {observations} observations and {queries} queries is empty: "
                "way and observations start at 1."
            )
        self.way, self.observations, self.queries = way, observations, queries
        self.classes, counts = torch.unique(labels[labels >= 0], return_counts=True)
        if len(self.classes) < way:
            raise InputError(
                f"a {way}-way task needs {way} classes but there are {len(self.classes)}: lower the way or add classes."
            )
        if int(counts.min()) < observations + queries:
            scarce = int(self.classes[counts.argmin()])
            raise InputError(
                f"class {names[scarce] if names else scarce} has {int(counts.min())} images but a task needs "
                f"{observations} observations + {queries} queries = {observations + queries}: "
                "ask for fewer or add images."
            )
        self._items, self._absent = _by_class(labels, self.classes, counts)

    def sample(self, tasks: int, generator: torch.Generator) -> Task:
        """Draw a batch of tasks on the device of the labels."""
        rows = self._pick_classes(self._random(tasks, len(self.classes), generator=generator))
        return self._pick_items(rows, self._random(*rows.shape, self._items.shape[1], generator=generator))

    def _random(self, *shape: int, generator: torch.Generator) -> Tensor:
        return torch.rand(shape, generator=generator, device=self._items.device)

    def _pick_classes(self, keys: Tensor) -> Tensor:
        """Rows (tasks, way) of the table: the classes with the largest keys (tasks, classes)."""
        return keys.topk(self.way).indices

    def _pick_items(self, rows: Tensor, keys: Tensor) -> Task:
        """Tasks of those items of the classes `rows` (tasks, way) that have the largest keys (tasks, way, items).

        Random keys, largest first, are a draw without replacement from every class of every task at once.
        """
        chosen = keys.masked_fill(self._absent[rows], -torch.inf).topk(self.observations + self.queries).indices
        items = self._items[rows[:, :, None], chosen]
        return Task(items[:, :, : self.observations], items[:, :, self.observations :], self.classes[rows])


def _by_class(labels: Tensor, classes: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """A table of item indices, (classes, largest class), and where it is padding."""
    order = torch.argsort(labels, stable=True)
    order = order[labels[order] >= 0]
    starts = counts.cumsum(0) - counts
    place = torch.arange(int(counts.max()), device=labels.device)
    absent = place[None] >= counts[:, None]
    items = order[(starts[:, None] + place[None]).clamp(max=len(order) - 1)]
    return items, absent
