"""VGG-16 for small images, without the fully connected layers."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from medi.nn.norm import Norm, normalisation
from medi.nn.per_task_conv import Conv2d

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
"""Channels of the 13 convolutions; each stage ends in a 2x2 max-pooling."""


class VGG16(nn.Module):
    """Thirteen 3x3 convolutions with norm and ReLU, in five stages that each halve the image."""

    smallest: ClassVar[int | None] = 32

    def __init__(self, shape: tuple[int, ...], *, norm: Norm = "running") -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = shape[0]
        for stage in STAGES:
            for width in stage:
                # No bias: the norm takes it away again.
                conv = Conv2d(channels, width, 3, padding=1, bias=False)
                layers += [conv, normalisation(norm, width), nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)
        self.width = channels

    def forward(self, x: Tensor) -> Tensor:
        """Embed images (n, c, h, w) as (n, 512), averaged over what space is left (none at 32 x 32)."""
        features: Tensor = self.layers(x)
        return features.mean((2, 3))
