"""Normalisation by batch statistics, with gradients of every order right under `vmap`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from medi.errors import InputError, unknown_name

Norm = Literal["running", "batch"]
"""running: batch statistics in training, running averages of the known data in eval mode. batch: always the batch's."""


class BatchStatisticsNorm(nn.Module):
    """Normalise each channel by the mean and variance of the batch, then scale and shift it.

    Written out by hand because `vmap` over `nn.BatchNorm2d(track_running_stats=False)` gives silently wrong
    second-order gradients (torch 2.11 to 2.13, functorch issue 534).

    Attributes:
        leading: The statistics come from this many items at the front of the batch; None for all of them.
            Set it with `statistics_from`.
    """

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.eps = eps
        self.leading: int | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x (n, width) or (n, width, h, w); the shape stays the same."""
        if self.leading is not None and len(x) < self.leading:
            raise InputError(
                f"statistics are to come from the first {self.leading} items, but the batch has {len(x)}: "
                "put observations and queries into one batch, observations first."
            )
        reference = x if self.leading is None else x[: self.leading]
        mean, variance = _Moments.apply(reference, (0, *range(2, x.ndim)))  # type: ignore[no-untyped-call]
        per_channel = (-1,) + (1,) * (x.ndim - 2)
        # One multiply-add over the batch: second-order gradients keep every intermediate, so memory is what counts.
        scale = self.weight.view(per_channel) * torch.rsqrt(variance + self.eps)
        shift = self.bias.view(per_channel) - mean * scale
        return torch.addcmul(shift.to(x.dtype), x, scale.to(x.dtype))

    def extra_repr(self) -> str:
        """Shown when the module is printed."""
        return f"{len(self.weight)}, eps={self.eps}"


class _Moments(torch.autograd.Function):
    """Mean and variance of x over some dimensions, which are kept with size 1; in float32 where x is coarser.

    Its gradient is one multiply-add over x. Torch's own makes several passes, which add up in gradients of gradients.
    """

    @staticmethod
    def forward(x: Tensor, dims: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        coarse = x.dtype in (torch.bfloat16, torch.float16)  # under autocast: too coarse to average in
        variance, mean = torch.var_mean(x.float() if coarse else x, dims, correction=0, keepdim=True)
        return mean, variance

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(inputs[0], output[0])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (of_mean, of_variance), (x, mean) = gradients, ctx.saved_tensors
        count = x.numel() // mean.numel()
        slope = of_variance * (2 / count)
        shift = of_mean / count - slope * mean
        return torch.addcmul(shift.to(x.dtype), x, slope.to(x.dtype)), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int, None], x: Tensor, dims: tuple[int, ...]) -> tuple[tuple[Tensor, ...], Any]:
        # Tasks become one more dimension in front that is not averaged over.
        moments = _Moments.apply(x.movedim(in_dims[0], 0), tuple(d + 1 for d in dims))  # type: ignore[no-untyped-call]
        return moments, (0, 0)


@contextmanager
def statistics_from(module: nn.Module, leading: int) -> Iterator[None]:
    """Inside the context, the first `leading` items of a batch alone define its statistics.

    Put a task's observations first and its queries after them: queries are then normalised as the observations were
    and cannot see one another. Works through `functional_call`, `grad` and `vmap`, where a batch is one task's.

    Args:
        module: A network; all its `BatchStatisticsNorm` layers are set, and set back afterwards.
        leading: Number of items, at least 1.
    """
    if leading < 1:
        raise InputError(f"statistics cannot come from {leading} items: give at least 1.")
    if any(isinstance(layer, _BatchNorm) and layer.training for layer in module.modules()):
        raise InputError(
            "an nn.BatchNorm layer in training mode would mix all items of the batch: "
            "call .eval() first, or build the network with norm='batch'."
        )
    layers = [layer for layer in module.modules() if isinstance(layer, BatchStatisticsNorm)]
    before = [layer.leading for layer in layers]
    try:
        for layer in layers:
            layer.leading = leading
        yield
    finally:
        for layer, value in zip(layers, before, strict=True):
            layer.leading = value


def normalisation(norm: Norm, width: int, *, images: bool = True) -> nn.Module:
    """A normalisation layer for (n, width, h, w), or for (n, width) where `images` is false."""
    if norm not in get_args(Norm):
        raise unknown_name("norm", norm, get_args(Norm))
    if norm == "batch":
        return BatchStatisticsNorm(width)
    return nn.BatchNorm2d(width) if images else nn.BatchNorm1d(width)
