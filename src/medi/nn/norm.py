"""Normalisation by batch statistics: with gradients of every order right under `vmap`, or over several ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm
from torch.nn.modules.batchnorm import _BatchNorm

from medi.core.errors import InputError, refuse_unknown
from medi.data.augment import augment
from medi.data.facts import Augmentation
from medi.jobs import ranks
from medi.nn import across_ranks

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

    leading: int | None = None

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x (n, width) or (n, width, h, w); the shape stays the same."""
        mean, variance = _Moments.apply(x[: self.leading], (0, *range(2, x.ndim)))  # type: ignore[no-untyped-call]
        per_channel = (-1,) + (1,) * (x.ndim - 2)
        # One multiply-add over the batch: second-order gradients keep every intermediate, so memory is what counts.
        scale = self.weight.view(per_channel) * torch.rsqrt(variance + self.eps)
        shift = self.bias.view(per_channel) - mean * scale
        return torch.addcmul(shift.to(x.dtype), x, scale.to(x.dtype))


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


def statistics_from(module: nn.Module, leading: int) -> AbstractContextManager[None]:
    """Inside the context, the first `leading` items of a batch alone define its statistics.

    Put a task's observations first and its queries after them: queries are then normalised as the observations were and
    cannot see one another. Works through `functional_call`, `grad` and `vmap`, where a batch is one task's.
    """
    return _with(module, BatchStatisticsNorm, "leading", leading)


@contextmanager
def _with(module: nn.Module, kind: type[nn.Module], name: str, value: object) -> Iterator[None]:
    """Inside, every layer of a kind has an attribute of another value than its class."""
    layers = [layer for layer in module.modules() if isinstance(layer, kind)]
    for layer in layers:
        setattr(layer, name, value)
    try:
        yield
    finally:
        for layer in layers:
            delattr(layer, name)


class _NormaliseAcross(torch.autograd.Function):
    """Batch normalisation over the parts of all ranks; autograd's own steps would take several times as long."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, ...]:
        """The normalised part of this rank; mean, variance and size of the whole batch."""
        wide = x if x.dtype == torch.float64 else x.float()
        variance, mean = torch.var_mean(wide, (0, *range(2, x.ndim)), correction=0)
        width = len(mean)
        size = mean.new_tensor([x.numel() // width])
        parts = across_ranks.gather(torch.cat([mean, variance, size])[None], ranks.count())
        means, variances, sizes = parts[:, :width], parts[:, width:-1], parts[:, -1:]  # a row for each rank
        items = sizes.sum()
        mean = (sizes * means).sum(0) / items
        variance = (sizes * (variances + (means - mean).square())).sum(0) / items
        ctx.save_for_backward(x, weight, mean, variance, items)
        ctx.eps = eps
        result = batch_norm(x, mean, variance, weight, bias, eps=eps)
        ctx.mark_non_differentiable(mean, variance, items)
        return result, mean, variance, items

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradient of x: scale * (gradient - mean(gradient) - z * mean(gradient * z)), z being normalised x."""
        x, weight, mean, variance, items = ctx.saved_tensors
        # As if mean and variance were given: scale * gradient, and sums of gradient * z and of gradient.
        fixed, of_weight, of_bias = torch.ops.aten.native_batch_norm_backward(
            gradients[0], x, weight, mean, variance, None, None, False, ctx.eps, [True, True, True]
        )
        sums = across_ranks.gather(torch.stack([of_weight, of_bias])[None], ranks.count()).sum(0)
        inverse = torch.rsqrt(variance + ctx.eps)
        scale = weight * inverse / items
        slope = (-scale * sums[0] * inverse).to(x.dtype)
        shift = (-scale * sums[1]).to(x.dtype) - slope * mean.to(x.dtype)
        per_channel = (-1,) + (1,) * (x.ndim - 2)
        fixed += torch.addcmul(shift.view(per_channel), x, slope.view(per_channel))
        return fixed, of_weight, of_bias, None


class RunningNorm(_BatchNorm):
    """Batch normalisation whose batch may be spread over ranks.

    `nn.SyncBatchNorm` does the same on GPUs only, and for processes that draw batches of their own.

    Attributes:
        across: Normalise by the statistics of all ranks' parts of the batch. Set it with `forward_together`.
    """

    across = False

    def _check_input_dim(self, input: Tensor) -> None:
        """Vectors and images alike."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x (n, width) or (n, width, h, w); the shape stays the same."""
        if not (self.across and self.training):
            return super().forward(x)
        result, mean, variance, items = _NormaliseAcross.apply(x, self.weight, self.bias, self.eps)  # type: ignore[no-untyped-call]
        for running, now in ((self.running_mean, mean), (self.running_var, variance * (items / (items - 1)))):
            if running is not None and self.momentum is not None:
                running.lerp_(now.to(running.dtype), self.momentum)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
        normal: Tensor = result
        return normal


def forward_together(network: nn.Module, mine: Tensor, items: int) -> Tensor:
    """What a network makes of a batch of so many items as if one process had it all: (items, …).

    Every rank has the same network, and its own `ranks.part(items)` of the batch.
    """
    if ranks.count() == 1:
        outputs: Tensor = network(mine)
        return outputs
    for layer in network.modules():
        if isinstance(layer, _BatchNorm) and layer.training and not isinstance(layer, RunningNorm):
            raise InputError(f"{type(layer).__name__} cannot normalise over processes: build it with normalisation().")
    with _with(network, RunningNorm, "across", True):
        return across_ranks.gather(network(mine), items)


def embed_together(
    network: nn.Module, images: Tensor, augmentation: Augmentation, generator: torch.Generator
) -> Tensor:
    """What a network makes of randomly changed images (n, …), as if one process had changed and embedded them all.

    Every process has the same images and draws the same random numbers.
    """
    mine = augment(images, augmentation, generator, ranks.part(len(images)))
    return forward_together(network, mine, len(images))


def normalisation(norm: Norm, width: int) -> nn.Module:
    """A normalisation layer for (n, width) and (n, width, h, w)."""
    refuse_unknown("norm", norm, get_args(Norm))
    return BatchStatisticsNorm(width) if norm == "batch" else RunningNorm(width)
