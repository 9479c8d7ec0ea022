"""Embedding many images with a trained network."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from medi.data.augment import to_float
from medi.runtime.devices import Precision, mixed_precision

BATCH = {"cpu": 256, "cuda": 4096}
"""Images embedded at a time: large enough to fill the device, small enough for its memory."""


class NetworkEncoder:
    """A function from images (n, …) to features (n, d) float32, on the device, each image on its own.

    The network is in evaluation mode: what it normalises with was learnt from known classes, never from other images
    of the same call.

    Attributes:
        model: The network.
    """

    def __init__(self, model: nn.Module, device: torch.device, precision: Precision = "auto") -> None:
        self.model, self.device, self.precision = model, device, precision

    def __call__(self, images: Tensor) -> Tensor:
        """Features (n, d) of images (n, …)."""
        self.model.eval()
        return in_batches(
            lambda batch: self.model(to_float(batch)).float(), self.device, images, precision=self.precision
        )


def network_encoder(model: nn.Module, device: torch.device, precision: Precision = "auto") -> NetworkEncoder:
    """The encoder that a trained network is."""
    return NetworkEncoder(model, device, precision)


@torch.inference_mode()
def in_batches(
    function: Callable[..., Tensor], device: torch.device, *inputs: Tensor, precision: Precision = "auto"
) -> Tensor:
    """Apply a function to inputs (n, …) a batch at a time, on the device and without gradients; results (n, …)."""
    size = BATCH.get(device.type, BATCH["cpu"])
    parts = []
    for start in range(0, len(inputs[0]), size):
        with mixed_precision(device, precision):
            parts.append(function(*(values[start : start + size].to(device) for values in inputs)))
    return torch.cat(parts)
