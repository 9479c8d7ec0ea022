"""What a method learnt, as a step of a representation: arrays go in and out, torch works between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from medi.core.arrays import Floats
from medi.methods.embedding import PixelEmbedding
from medi.methods.mm_learner import ReferenceEmbedding
from medi.methods.readout import ReadoutEmbedding
from medi.nn.embed import Embedding, NetworkEmbedding

_EMBEDDINGS: Mapping[str, type[Embedding]] = {
    kind.kind: kind for kind in (NetworkEmbedding, PixelEmbedding, ReadoutEmbedding, ReferenceEmbedding)
}


class TorchStep:
    """An embedding that takes and gives arrays; see `medi.grouping.representation.LearntStep`."""

    def __init__(self, embedding: Embedding) -> None:
        self.embedding, self.kind = embedding.exact(), embedding.kind

    def __call__(self, items: NDArray[Any]) -> Floats:
        """Points (n, e) float64 of items (n, …)."""
        points: Floats = self.embedding(torch.from_numpy(np.ascontiguousarray(items))).cpu().double().numpy()
        return points

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and facts of the embedding."""
        tensors, facts = self.embedding.pack()
        return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}, facts


def unpack_step(kind: str, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> TorchStep:
    """The saved step of a kind; KeyError, TypeError, ValueError or RuntimeError where it is damaged."""
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return TorchStep(_EMBEDDINGS[kind].unpack(tensors, facts))
