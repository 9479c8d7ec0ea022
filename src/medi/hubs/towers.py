"""What is taken of other libraries' models: their image towers, and how their authors mean photos to be prepared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from medi.core.errors import InputError
from medi.nn.devices import cpu_threads, tensor_float32
from medi.photos.decode import Cut


@dataclass(frozen=True)
class Preprocessing:
    """How a model's authors mean a photo to be shown to it."""

    cut: Cut  # the part of it
    mean: tuple[float, ...]  # of each channel, on the scale of 0 to 255
    std: tuple[float, ...]  # of each channel, likewise

    @classmethod
    def of_fractions(cls, cut: Cut, mean: Iterable[float], std: Iterable[float]) -> Self:
        """The same where mean and deviation are said of colours from 0 to 1."""
        return cls(cut, tuple(255 * value for value in mean), tuple(255 * value for value in std))


def side_of(name: str, size: Sequence[int]) -> int:
    """Of the square that a model of a name wants, of height and width."""
    height, width = size
    if height != width:
        raise InputError(f"{name} wants images of {width} x {height} pixels, not squares: choose another model.")
    return int(height)


def processing_of(name: str, processor: Any) -> Preprocessing:
    """What an image processor does; colours and size are read off what it makes of a black and a white square."""
    try:
        black, white = (
            processor(images=Image.new("RGB", (512, 512), colour), return_tensors="pt")["pixel_values"][0].double()
            for colour in ("black", "white")
        )
        channels, *size = black.shape
        size_of = {key: value for key, value in dict(processor.size).items() if value}
        edge = size_of.get("shortest_edge") or min(size_of["height"], size_of["width"])
        filter = Image.Resampling(int(processor.resample))
    except Exception as error:  # there are processors for documents, videos, …
        raise _unsupported(name) from error
    if channels != 3 or len(size) != 2:
        raise _unsupported(name)
    side = side_of(name, size)
    crop = getattr(processor, "crop_pct", None)
    if crop and edge < 384:  # ConvNeXt and its like: larger ones are not cropped
        edge = int(edge / crop)
    middle = (slice(None), side // 2, side // 2)
    std = 255 / (white - black)[middle]
    mean = -black[middle] * std
    squash = "shortest_edge" not in size_of and size_of["height"] == size_of["width"]
    cut = Cut(side, min(1.0, side / edge), filter, squash)
    return Preprocessing(cut, tuple(mean.tolist()), tuple(std.tolist()))


def _unsupported(name: str) -> InputError:
    return InputError(f"{name} wants its images prepared in a way that is not supported here: choose another model.")


class First(nn.Module):
    """The first output of a network that may have several."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Embed images (n, 3, side, side) as (n, d)."""
        made = self.network(x)
        features: Tensor = made[0] if isinstance(made, tuple) else made
        return features


class Pooled(nn.Module):
    """The pooled output of a tower of transformers, or the mean of its patches where it has none."""

    def __init__(self, network: Any, patches: int | None) -> None:
        super().__init__()
        self.network = network
        self.patches = patches

    def forward(self, x: Tensor) -> Tensor:
        """Embed images (n, 3, side, side) as (n, d)."""
        made = self.network(pixel_values=x)
        pooled: Tensor | None = getattr(made, "pooler_output", None)
        if pooled is not None:
            return pooled.flatten(1)
        places: Tensor = made.last_hidden_state
        if places.ndim == 4:
            return places.mean((2, 3))
        return places[:, -self.patches :].mean(1) if self.patches else places.mean(1)  # tokens of classes come first


def frozen(body: nn.Module, device: torch.device, looks: Preprocessing) -> Callable[[NDArray[np.uint8]], NDArray[Any]]:
    """A network as a function from images uint8 (n, 3, side, side) to features (n, d); it is never trained."""
    body = body.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    mean, std = (torch.tensor(of_channels, device=device).view(3, 1, 1) for of_channels in (looks.mean, looks.std))
    on_gpu = device.type == "cuda"

    @torch.inference_mode()
    def encode(images: NDArray[np.uint8]) -> NDArray[Any]:
        # The threads that read photos each encode their own, so none of them needs help. Features of a GPU are those of
        # a CPU, which the cache takes them for: in TF32 they are 1e-3 apart.
        with tensor_float32(False) if on_gpu else cpu_threads(1):
            pixels = torch.from_numpy(images)
            on_device = pixels.pin_memory().to(device, non_blocking=True) if on_gpu else pixels
            x = (on_device.float() - mean) / std
            features: Tensor = body(x.contiguous(memory_format=torch.channels_last))
            return features.float().cpu().numpy()

    return encode
