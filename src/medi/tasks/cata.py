"""CATA, the clustering-rule-aware task sampler: every task is drawn from one view (the paper's Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from medi.tasks.episodes import Task, UniformSampler


@dataclass(frozen=True)
class Views:
    """The views of items.

    Attributes:
        log_probabilities: (n, M) what each head gives each item's own label.
    """

    log_probabilities: Tensor

    @property
    def view(self) -> Tensor:
        """(n,) int64, the dominating view of each item (Eq. 2)."""
        return self.log_probabilities.argmax(1)

    @property
    def ranks(self) -> Tensor:
        """(n, M) int64, place of each view in an item's own order: 0 for its dominating view, 1 for the next."""
        return self.log_probabilities.argsort(dim=1, descending=True, stable=True).argsort(dim=1)

    @property
    def sizes(self) -> Tensor:
        """(M,) int64, items in each view."""
        return torch.bincount(self.view, minlength=self.log_probabilities.shape[1])


class CataSampler(UniformSampler):
    """N-way tasks whose items share a view; views are drawn in proportion to their size.

    Where a class has too few items in a task's view, it is topped up with items for which that view comes second, then
    third. No item appears twice in a task.
    """

    def __init__(
        self,
        labels: Tensor,
        views: Views,
        way: int,
        observations: int,
        queries: int,
        names: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(labels, way, observations, queries, names)
        self.views = views
        self._ranks = views.ranks
        self._sizes = views.sizes.float()
        own = torch.zeros(len(self._sizes), len(self.classes), dtype=torch.int64, device=labels.device)
        labelled = labels >= 0
        places = torch.searchsorted(self.classes, labels[labelled])
        own.index_put_((views.view[labelled], places), torch.ones_like(places), accumulate=True)
        self._enough = (own >= observations + queries).float()  # (views, classes): no need to top up

    def sample(self, tasks: int, generator: torch.Generator) -> Task:
        """Draw a batch of tasks, each from one view."""
        return self.sample_with_views(tasks, generator)[0]

    def sample_with_views(self, tasks: int, generator: torch.Generator) -> tuple[Task, Tensor]:
        """A batch of tasks and the view (tasks,) each was drawn from."""
        view = torch.multinomial(self._sizes, tasks, replacement=True, generator=generator)
        # Classes that the view has enough of come first: what is topped up does not share its rule.
        rows = self._pick_classes(self._random(tasks, len(self.classes), generator=generator) + self._enough[view])
        candidates, of_view = self._items[rows], view[:, None, None]
        random = self._random(*candidates.shape, generator=generator)
        keys = random - self._ranks[candidates, of_view]  # a view's own items come before all others
        return self._mixed(self._pick_items(rows, keys), generator), view

    def _mixed(self, task: Task, generator: torch.Generator) -> Task:
        """The same tasks with observations and queries redrawn: those of the task's own view came first."""
        items = torch.cat([task.support, task.query], 2)
        order = self._random(*items.shape, generator=generator).argsort(2)
        items = items.gather(2, order)
        return Task(items[:, :, : self.observations], items[:, :, self.observations :], task.classes)
