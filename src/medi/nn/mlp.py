"""A multilayer perceptron, for plain vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from medi.core.errors import InputError
from medi.nn.norm import Norm, normalisation


class MLP(nn.Module):
    """Linear layers of sizes `hidden`, each with norm and ReLU; images (c, h, w) are flattened."""

    smallest: ClassVar[int | None] = None

    def __init__(self, shape: tuple[int, ...], *, norm: Norm = "running", hidden: Sequence[int] = (256, 256)) -> None:
        super().__init__()
        if not hidden or min(hidden) < 1:
            raise InputError(f"hidden={tuple(hidden)} is no list of layer sizes: give one or more, such as (256, 256).")
        layers: list[nn.Module] = [nn.Flatten()]
        features = math.prod(shape)
        for width in hidden:
            # No bias: the norm takes it away again.
            layers += [nn.Linear(features, width, bias=False), normalisation(norm, width), nn.ReLU()]
            features = width
        self.layers = nn.Sequential(*layers)
        self.width = features

    def forward(self, x: Tensor) -> Tensor:
        """Embed vectors (n, d) or images (n, c, h, w) as (n, hidden[-1])."""
        embedding: Tensor = self.layers(x)
        return embedding
