"""Embeddings: functions from items to points, each item by itself, that can be saved and loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from medi.core.errors import InputError
from medi.data.augment import to_float
from medi.nn import Network, rebuild
from medi.nn.devices import Precision, mixed_precision

EMBEDDED_AT_ONCE = {"cpu": 256, "cuda": 4096}
"""Items embedded at a time: large enough to fill the device, small enough for its memory."""


class Embedding(ABC):
    """Turns each item into a point; Euclidean distances between points are what matters.

    Attributes:
        kind: Names the class in a saved model.
    """

    kind: ClassVar[str]

    @property
    def network_name(self) -> str | None:
        """Name of the network behind it; None where there is none."""
        return None

    @abstractmethod
    def __call__(self, items: Tensor) -> Tensor:
        """Points (n, d) of items (n, …): uint8 images, floats that were scaled or augmented, or vectors."""

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON-able facts from which `unpack` makes it again, where it can be saved."""
        raise InputError(
            f"a {self.kind} cannot be saved: let the method's `learn` return a network of medi.nn.build, "
            "or an Embedding with pack and unpack."
        )

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Self:
        """What `pack` took apart, on the CPU; KeyError, TypeError, ValueError or RuntimeError where it is damaged."""
        raise ValueError(f"a {cls.kind} is never saved")

    def exact(self) -> Self:
        """The same without mixed precision, and in float64 on vectors: a point does not depend on its batch."""
        return self


class NetworkEmbedding(Embedding):
    """What a network makes of items.

    The network is in evaluation mode: what it normalises with was learnt from known classes, never from other items of
    the same call.
    """

    kind = "network"

    def __init__(self, network: Network, precision: Precision = "auto") -> None:
        self.network, self.precision = network, precision

    @property
    def network_name(self) -> str:
        """Name of the network."""
        return str(self.network.blueprint["name"])

    def __call__(self, items: Tensor) -> Tensor:
        """Points (n, d) of items (n, …), on the network's device, float32 or wider."""
        self.network.eval()
        weight = next(self.network.parameters())

        def embed(batch: Tensor) -> Tensor:
            points: Tensor = self.network(to_float(batch).to(weight.dtype))
            return points

        points = in_batches(embed, weight.device, items, precision=self.precision)
        return points.to(torch.promote_types(points.dtype, torch.float32))

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The weights, and how the network is built."""
        return dict(self.network.state_dict()), {"network": dict(self.network.blueprint)}

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Self:
        """What `pack` took apart."""
        return cls(load_weights(rebuild(facts["network"]), tensors)).exact()

    def exact(self) -> Self:
        """The same without mixed precision, and in float64 on vectors."""
        return type(self)(exact_network(self.network), "float32")


def exact_network(network: Network) -> Network:
    """A copy in float64 of a network that reads vectors; one that reads images as it is."""
    return deepcopy(network).double() if len(network.blueprint["shape"]) == 1 else network


def load_weights(network: Network, weights: Mapping[str, Tensor]) -> Network:
    """The network with these weights, as wide as they are, in evaluation mode."""
    if any(tensor.dtype == torch.float64 for tensor in weights.values()):
        network = network.double()
    network.load_state_dict(dict(weights))
    return network.eval()


@torch.inference_mode()
def in_batches(
    function: Callable[..., Tensor], device: torch.device, *inputs: Tensor, precision: Precision = "auto"
) -> Tensor:
    """Apply a function to inputs (n, …) a batch at a time, on the device and without gradients; results (n, …)."""
    size = EMBEDDED_AT_ONCE.get(device.type, EMBEDDED_AT_ONCE["cpu"])
    parts = []
    for start in range(0, max(1, len(inputs[0])), size):  # of no items, too, the result has its width
        with mixed_precision(device, precision):
            parts.append(function(*(values[start : start + size].to(device) for values in inputs)))
    return torch.cat(parts)
