"""Conv-4, the small network of the few-shot literature, and one of its build with wider layers."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from medi.nn.norm import Norm, normalisation
from medi.nn.per_task_conv import Conv2d


class Conv4(nn.Module):
    """Four blocks of 3x3 convolution to 64 channels, norm, ReLU and 2x2 max-pooling."""

    smallest: ClassVar[int | None] = 16
    widths: ClassVar[tuple[int, ...]] = (64, 64, 64, 64)

    def __init__(self, shape: tuple[int, ...], *, norm: Norm = "running") -> None:
        super().__init__()
        channels, height, width = shape
        steps = zip((channels, *self.widths), self.widths, strict=False)
        self.blocks = nn.Sequential(*(_block(before, after, norm) for before, after in steps))
        side = 2 ** len(self.widths)
        self.width = self.widths[-1] * (height // side) * (width // side)

    def forward(self, x: Tensor) -> Tensor:
        """Embed images (n, c, h, w) as (n, width): 64 * (h // 16) * (w // 16), 256 numbers at 32 x 32."""
        features: Tensor = self.blocks(x)
        return features.flatten(1)


class WideConv4(Conv4):
    """Conv-4 with 64, 128, 256 and 256 channels: what the baselines use on Omniglot, 1024 numbers at 32 x 32."""

    widths: ClassVar[tuple[int, ...]] = (64, 128, 256, 256)


def _block(channels: int, width: int, norm: Norm) -> nn.Sequential:
    # No bias: the norm takes it away again.
    conv = Conv2d(channels, width, 3, padding=1, bias=False)
    return nn.Sequential(conv, normalisation(norm, width), nn.ReLU(), nn.MaxPool2d(2))
