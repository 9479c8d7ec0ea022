"""ResNet-18 for small images: a 3x3 stem of stride 1 and no max-pooling."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, relu

from medi.nn.norm import Norm, normalisation
from medi.nn.per_task_conv import Conv2d


class ResidualBlock(nn.Module):
    """relu(shortcut(x) + two 3x3 convolutions of x); more channels mean half the side."""

    def __init__(self, channels: int, width: int, norm: Norm) -> None:
        super().__init__()
        stride = 1 if channels == width else 2
        self.residual = nn.Sequential(
            _conv3x3(channels, width, stride),
            normalisation(norm, width),
            nn.ReLU(),
            _conv3x3(width, width),
            normalisation(norm, width),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1:
            self.shortcut = self.widening(channels, width, norm)

    def widening(self, channels: int, width: int, norm: Norm) -> nn.Module:
        """The shortcut to more channels and half the side."""
        return nn.Sequential(Conv2d(channels, width, 1, 2, bias=False), normalisation(norm, width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, h, w) to (n, width, h / stride, w / stride), odd sides rounded up."""
        return relu(self.shortcut(x) + self.residual(x))


class PaddedBlock(ResidualBlock):
    """A block whose shortcut learns nothing: means of 2x2 places, and zeros for the channels that are new."""

    def widening(self, channels: int, width: int, norm: Norm) -> nn.Module:
        """The shortcut to more channels and half the side."""
        return nn.Sequential(nn.AvgPool2d(2, ceil_mode=True), _NewChannels(width - channels))


class _NewChannels(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def forward(self, x: Tensor) -> Tensor:
        return pad(x, (0, 0, 0, 0, 0, self.number))


class ResNet18(nn.Module):
    """A stem and four stages of two residual blocks: 64, 128, 256 and 512 channels."""

    smallest: ClassVar[int | None] = 8
    widths: ClassVar[tuple[int, ...]] = (64, 128, 256, 512)
    block: ClassVar[type[ResidualBlock]] = ResidualBlock

    def __init__(self, shape: tuple[int, ...], *, norm: Norm = "running") -> None:
        super().__init__()
        first = self.widths[0]
        self.stem = nn.Sequential(_conv3x3(shape[0], first), normalisation(norm, first), nn.ReLU())
        blocks = []
        for before, after in zip((first, *self.widths), self.widths, strict=False):
            blocks += [self.block(before, after, norm), self.block(after, after, norm)]
        self.stages = nn.Sequential(*blocks)
        self.width = self.widths[-1]

    def forward(self, x: Tensor) -> Tensor:
        """Embed images (n, c, h, w) as (n, width): ReLU'd features, averaged over space."""
        features: Tensor = self.stages(self.stem(x))
        # Rank statistics compare features: rounded ones, as of mixed precision, would tie.
        return features.mean((2, 3), dtype=torch.promote_types(features.dtype, torch.float32))


class PaddedResNet18(ResNet18):
    """The same with shortcuts that learn nothing, as the authors of RS have it."""

    block: ClassVar[type[ResidualBlock]] = PaddedBlock


def _conv3x3(channels: int, width: int, stride: int = 1) -> Conv2d:
    # No bias: the norm that follows takes it away again.
    return Conv2d(channels, width, 3, stride, padding=1, bias=False)
