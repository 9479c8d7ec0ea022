"""Clusters of a network that was adapted to each bag: read off its head, or found in its embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from medi.data.augment import to_float
from medi.methods.base import Assignment
from medi.methods.embedding import CentreClustering, prepare
from medi.methods.inner_steps import Clusterer, Parameters, respond
from medi.methods.outputs import OutputClustering

MOST_AT_ONCE = 2000
"""Items asked about that are answered at a time: a pool may be large."""


@dataclass(frozen=True)
class AdaptedNetwork:
    """A network adapted to each of some bags: their parameters, (episodes, …) each, and the bags (episodes, n, …).

    The statistics of its bag normalise whatever is asked.
    """

    model: Clusterer
    parameters: Parameters
    observations: Tensor
    precision: str

    @torch.no_grad()
    def respond(self, items: Tensor, *, together: bool = False) -> tuple[Tensor, Tensor]:
        """Embeddings and logits of the observations and then of further items (episodes, m, …), floats.

        Normalised by the observations alone, or by everything that is seen together.
        """
        shown = self.observations.shape[1]
        parts_of_items = [items] if together else torch.split(items, MOST_AT_ONCE, dim=1)
        answers = [
            respond(
                self.model,
                self.parameters,
                torch.cat([self.observations, part], 1),
                leading=None if together else shown,
                precision=self.precision,
            )
            for part in parts_of_items
        ]
        embedded, logits = (
            torch.cat([first, *(part[:, shown:] for part in rest)], 1) for first, *rest in zip(*answers, strict=True)
        )
        return embedded, logits

    def embed(self, encoded: Tensor, items: Tensor) -> Tensor:
        """Embeddings (episodes, m, width) of items (episodes, m) of the pool, each on its own."""
        return self.respond(to_float(encoded[items]))[0][:, self.observations.shape[1] :]


class HeadClustering(OutputClustering):
    """Clusters that are outputs of an adapted network."""

    def __init__(self, adapted: AdaptedNetwork, *, equal_sizes: bool = False) -> None:
        self.adapted = adapted
        super().__init__(adapted.respond(adapted.observations[:, :0])[1], equal_sizes=equal_sizes)

    def assign(self, encoded: Tensor, items: Tensor) -> Assignment:
        """The head's answer for each item, normalised by the observations alone."""
        return self.answer(self._logits(encoded, items, together=False))

    def refine(self, encoded: Tensor, items: Tensor, *, equal_sizes: bool = False) -> Assignment:
        """The head's answers, with normalisation by all items that are seen together."""
        logits = self._logits(encoded, items, together=True)
        return self.share_out(logits) if equal_sizes else self.answer(logits)

    def _logits(self, encoded: Tensor, items: Tensor, *, together: bool) -> Tensor:
        _, logits = self.adapted.respond(to_float(encoded[items]), together=together)
        return logits[:, self.adapted.observations.shape[1] :]


class AdaptedCentres(CentreClustering):
    """Clusters that are points in the embedding of an adapted network."""

    def __init__(self, adapted: AdaptedNetwork, *arguments: Any, **options: Any) -> None:
        self.adapted = adapted
        super().__init__(*arguments, **options)

    def _points(self, encoded: Tensor, items: Tensor) -> Tensor:
        return prepare(self.adapted.embed(encoded, items), self.grouping)
