"""Embedding many images with a trained network."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from medi.data.augment import to_float
from medi.train.devices import Precision, mixed_precision

BATCH = {"cpu": 256, "cuda": 4096}
"""Images embedded at a time: large enough to fill the device, small enough for its memory."""


def network_encoder(
    model: nn.Module, device: torch.device, precision: Precision = "auto"
) -> Callable[[Tensor], Tensor]:
    """A function from images (n, …) to features (n, d) float32, on the device, each image on its own.

    The network is in evaluation mode: what it normalises with was learnt from known classes, never from other images
    of the same call.
    """

    @torch.inference_mode()
    def encode(images: Tensor) -> Tensor:
        model.eval()
        parts = []
        size = BATCH.get(device.type, BATCH["cpu"])
        for start in range(0, len(images), size):
            batch = images[start : start + size]
            with mixed_precision(device, precision):
                parts.append(model(to_float(batch.to(device))).float())
        return torch.cat(parts)

    return encode
