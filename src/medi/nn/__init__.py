"""The networks that embed items, by name, and the one way to build them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from medi.core.errors import InputError, refuse_unknown
from medi.nn.context import Context
from medi.nn.conv4 import Conv4, WideConv4
from medi.nn.mlp import MLP
from medi.nn.norm import Norm
from medi.nn.resnet18 import PaddedResNet18, ResNet18
from medi.nn.vgg16 import STAGES, VGG16

Body = Conv4 | VGG16 | ResNet18 | MLP

NETWORKS: Mapping[str, type[Body]] = MappingProxyType(
    {
        "conv4": Conv4,
        "conv4-wide": WideConv4,
        "vgg16": VGG16,
        "resnet18": ResNet18,
        "resnet18-padded": PaddedResNet18,
        "mlp": MLP,
    }
)


class Network(nn.Module):
    """A body and, where another size of embedding was asked for, a linear layer to it.

    Attributes:
        width: Size of the embedding.
        blueprint: What `build` has to be given to make one of the same shape, JSON-able.
    """

    def __init__(self, body: Body, blueprint: Mapping[str, Any]) -> None:
        super().__init__()
        embedding = blueprint["embedding"]
        self.body, self.blueprint = body, blueprint
        self.head = nn.Identity() if embedding is None else nn.Linear(body.width, embedding)
        self.width = embedding or body.width

    def forward(self, x: Tensor) -> Tensor:
        """Embed items (n, *shape) as (n, width)."""
        embedding: Tensor = self.head(self.body(x))
        return embedding


def build(
    name: str,
    shape: tuple[int, ...],
    *,
    embedding: int | None = None,
    norm: Norm = "running",
    seed: int = 0,
    **options: Any,
) -> Network:
    """Build a network on the CPU that embeds items (n, *shape) as (n, width).

    The same seed gives the same weights and leaves the global generators alone. Images are floats as
    `medi.data.augment.to_float` gives.

    Args:
        name: A name in `NETWORKS`.
        shape: An item's shape: (c, h, w) for images, (d,) for vectors.
        embedding: Size of the embedding; None for the network's own.
        norm: "running" for ordinary training, "batch" for statistics of the batch in every mode.
        seed: Seed of the weights.
        **options: The network's own, such as `hidden` of the MLP.
    """
    refuse_unknown("network", name, NETWORKS)
    body = NETWORKS[name]
    _check_shape(name, shape, body.smallest)
    if embedding is not None and embedding < 1:
        raise InputError(f"embedding={embedding} is no size: give at least 1, or None for the network's own.")
    blueprint = {"name": name, "shape": list(shape), "embedding": embedding, "norm": norm, **options}
    with seeded(seed):
        return Network(body(shape, norm=norm, **options), blueprint)


def build_for(name: str, items: Tensor, context: Context, *, embedding: int | None = None) -> Network:
    """A network that reads such items (n, …), from the seed of a context and on its device."""
    network = build(name, tuple(items.shape[1:]), embedding=embedding, seed=context.seed)
    return place(network, context.device)


def rebuild(blueprint: Mapping[str, Any]) -> Network:
    """An untrained network of the same shape as one that was built before."""
    return build(**{**blueprint, "shape": tuple(blueprint["shape"])})


@contextmanager
def seeded(seed: int, stream: int = 0) -> Iterator[None]:
    """Layers made inside are on the CPU and follow from the seed; the global generators are left alone.

    Stream 0 is for a network's body; another for what is put on top of it, which would have the same weights else.
    """
    # Seeding the CPU's generator alone: torch.manual_seed would reset those of the GPUs as well.
    with torch.device("cpu"), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed + 1_000_003 * stream)
        yield


def last_stage(network: Network) -> nn.Module:
    """The part that is trained where all but the last stage of a network is frozen."""
    match network.body:
        case ResNet18():
            return network.body.stages[-2:]
        case Conv4():
            return network.body.blocks[-1:]
        case VGG16():
            return network.body.layers[-len(STAGES[-1]) * 3 - 1 :]  # convolution, norm and ReLU each, and a pooling
        case MLP():
            return network.body.layers[-3:]


def place(network: Network, device: torch.device) -> Network:
    """Move a network to a device, in the memory format its convolutions are fastest in."""
    return network.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def _check_shape(name: str, shape: tuple[int, ...], smallest: int | None) -> None:
    """Refuse items that a network cannot read; `smallest` is None for networks that read any."""
    if not shape or min(shape) < 1:
        raise InputError(f"{name} cannot read items of shape {shape}: every side has to be at least 1.")
    if smallest is None:
        return
    if len(shape) != 3:
        cure = "use mlp." if len(shape) == 1 else "add or drop a dimension."
        raise InputError(f"{name} reads images (channels, height, width), not items of shape {shape}: {cure}")
    if min(shape[1:]) < smallest:
        raise InputError(
            f"{name} reads images of {smallest} x {smallest} pixels or more, not {shape[1]} x {shape[2]}: "
            "enlarge them, or use mlp."
        )
