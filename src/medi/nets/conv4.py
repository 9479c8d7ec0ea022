"""Conv-4, the small network of the few-shot literature."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from medi.nets.conv import Conv2d
from medi.nets.norm import Norm, normalisation


class Conv4(nn.Module):
    """Four blocks of 3x3 convolution to 64 channels, norm, ReLU and 2x2 max-pooling.

    Args:
        shape: An item's shape, (c, h, w).
        norm: Where the statistics of the norm layers come from.
    """

    smallest: ClassVar[int | None] = 16

    def __init__(self, shape: tuple[int, ...], *, norm: Norm = "running") -> None:
        super().__init__()
        channels, height, width = shape
        self.blocks = nn.Sequential(_block(channels, norm), *(_block(64, norm) for _ in range(3)))
        self.width = 64 * (height // 16) * (width // 16)

    def forward(self, x: Tensor) -> Tensor:
        """Embed images (n, c, h, w) as (n, 64 * (h // 16) * (w // 16)): 256 numbers at 32 x 32."""
        features: Tensor = self.blocks(x)
        return features.flatten(1)


def _block(channels: int, norm: Norm) -> nn.Sequential:
    # No bias: the norm takes it away again.
    conv = Conv2d(channels, 64, 3, padding=1, bias=False)
    return nn.Sequential(conv, normalisation(norm, 64), nn.ReLU(), nn.MaxPool2d(2))
