"""Clusters of a network that was adapted to each bag: read off its head, or found in its embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from medi.data.augment import to_float
from medi.methods.base import Assignment, Clustering
from medi.methods.embedding import CentreClustering, prepare
from medi.methods.inner_steps import Clusterer, Parameters, respond

MOST_AT_ONCE = 2000
"""Items asked about that are answered at a time: a pool may be large."""


@dataclass(frozen=True)
class AdaptedNetwork:
    """A network adapted to each of some bags.

    Attributes:
        model: The network.
        parameters: Its parameters for each bag, (episodes, …) each.
        observations: (episodes, n, …) the bags, whose statistics normalise whatever is asked.
        precision: Of activations.
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


class HeadClustering(Clustering):
    """Clusters that are outputs of an adapted network."""

    def __init__(self, adapted: AdaptedNetwork) -> None:
        self.adapted = adapted
        self.labels, self.confidence = _largest(adapted.respond(adapted.observations[:, :0])[1])

    def assign(self, encoded: Tensor, items: Tensor) -> Assignment:
        """The head's largest output for each item, normalised by the observations alone."""
        return self._assigned(encoded, items, together=False)

    def refine(self, encoded: Tensor, items: Tensor, *, equal_sizes: bool = False) -> Assignment:
        """The head's largest output, with normalisation by all items that are seen together."""
        return self._assigned(encoded, items, together=True)

    def _assigned(self, encoded: Tensor, items: Tensor, *, together: bool) -> Assignment:
        _, logits = self.adapted.respond(to_float(encoded[items]), together=together)
        return _largest(logits[:, self.adapted.observations.shape[1] :])


def _largest(logits: Tensor) -> Assignment:
    confidence, labels = logits.softmax(-1).max(-1)
    return Assignment(labels, confidence)


class AdaptedCentres(CentreClustering):
    """Clusters that are points in the embedding of an adapted network."""

    def __init__(self, adapted: AdaptedNetwork, *arguments: Any, **options: Any) -> None:
        self.adapted = adapted
        super().__init__(*arguments, **options)

    def _points(self, encoded: Tensor, items: Tensor) -> Tensor:
        return prepare(self.adapted.embed(encoded, items), self.grouping)
