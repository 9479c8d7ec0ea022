"""Convolutions that stay fast when every task of a batch has weights of its own.

Under `vmap` over weights torch runs one grouped convolution, a group a task. On images of a few pixels with hundreds of
channels a GPU is better at one batched matrix product a layer, over the windows written out as columns. The columns
are as large as nine activations, so they are made when needed and never kept: the three products that convolution and
its gradients consist of are each other's derivatives, to any order.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Conv2d(nn.Conv2d):
    """A convolution that multiplies matrices where images are small.

    Attributes:
        matmul_side: Images up to this side are convolved by a matrix product; 0 for none. Only with stride 1, an odd
            kernel, an output as large as the input and no bias. Set it with `multiply_up_to`.
    """

    matmul_side: int = 0

    def forward(self, x: Tensor) -> Tensor:
        """Convolve (n, c, h, w)."""
        if max(x.shape[2:]) > self.matmul_side or not self._plain():
            return super().forward(x)
        weight = self.weight
        if torch.is_autocast_enabled(x.device.type):  # which knows torch's own functions only
            dtype = torch.get_autocast_dtype(x.device.type)
            x, weight = x.to(dtype), weight.to(dtype)
        result: Tensor = _Convolve.apply(x[None], weight[None])  # type: ignore[no-untyped-call]
        return result[0]

    def _plain(self) -> bool:
        (k, other), same = self.kernel_size, (self.kernel_size[0] // 2,) * 2
        return k == other and k % 2 == 1 and self.stride == (1, 1) and self.padding == same and self.bias is None


def multiply_up_to(module: nn.Module, side: int) -> None:
    """Let every `Conv2d` of a network multiply matrices on images up to a side; 0 switches it off."""
    for layer in module.modules():
        if isinstance(layer, Conv2d):
            layer.matmul_side = side


class _Bilinear(torch.autograd.Function):
    """A product of two tensors with a leading task axis; `vmap` adds to that axis."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        flat = []
        for tensor, dim in zip(inputs[:2], in_dims[:2], strict=True):
            batched = tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            flat.append(batched.flatten(0, 1))
        result: Tensor = cls.apply(*flat, *inputs[2:])  # type: ignore[no-untyped-call]
        return result.view(info.batch_size, -1, *result.shape[1:]), 0


class _Convolve(_Bilinear):
    """Images (t, n, c, h, w) and weights (t, o, c, k, k) to (t, n, o, h, w)."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        t, n, _, h, w = x.shape
        product = weight.flatten(2) @ _columns(x, weight.shape[-1])
        return product.view(t, -1, n, h, w).transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (y,), (x, weight) = gradients, ctx.saved_tensors
        return (
            _Spread.apply(y, weight) if ctx.needs_input_grad[0] else None,  # type: ignore[no-untyped-call]
            _Correlate.apply(x, y, weight.shape[-1]) if ctx.needs_input_grad[1] else None,  # type: ignore[no-untyped-call]
        )


class _Spread(_Bilinear):
    """The transpose of `_Convolve` in the images: (t, n, o, h, w) and weights (t, o, c, k, k) to (t, n, c, h, w)."""

    @staticmethod
    def forward(y: Tensor, weight: Tensor) -> Tensor:
        return _Convolve.forward(y, weight.flip(-1, -2).transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (x,), (y, weight) = gradients, ctx.saved_tensors
        return (
            _Convolve.apply(x, weight) if ctx.needs_input_grad[0] else None,  # type: ignore[no-untyped-call]
            _Correlate.apply(x, y, weight.shape[-1]) if ctx.needs_input_grad[1] else None,  # type: ignore[no-untyped-call]
        )


class _Correlate(_Bilinear):
    """The transpose in the weights: images (t, n, c, h, w) and outputs (t, n, o, h, w) to (t, o, c, k, k)."""

    @staticmethod
    def forward(x: Tensor, y: Tensor, kernel: int) -> Tensor:
        product = y.transpose(1, 2).flatten(2) @ _columns(x, kernel).mT
        return product.view(len(x), y.shape[2], x.shape[2], kernel, kernel)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (weight,), (x, y) = gradients, ctx.saved_tensors
        return (
            _Spread.apply(y, weight) if ctx.needs_input_grad[0] else None,  # type: ignore[no-untyped-call]
            _Convolve.apply(x, weight) if ctx.needs_input_grad[1] else None,  # type: ignore[no-untyped-call]
            None,
        )


def _columns(x: Tensor, kernel: int) -> Tensor:
    """The windows of images (t, n, c, h, w), padded by zeros, as columns (t, c * kernel * kernel, n * h * w)."""
    t, n, c, h, w = x.shape
    edge = kernel // 2
    padded = nn.functional.pad(x.transpose(1, 2), (edge,) * 4)  # (t, c, n, …)
    windows = padded.unfold(3, kernel, 1).unfold(4, kernel, 1)  # (t, c, n, h, w, kernel, kernel), no copies
    return windows.permute(0, 1, 5, 6, 2, 3, 4).reshape(t, c * kernel * kernel, n * h * w)
