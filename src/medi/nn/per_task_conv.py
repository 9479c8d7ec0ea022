"""Convolutions that stay fast when every task of a batch has weights of its own, to the second order.

Under `vmap` over weights torch runs one grouped convolution, a group a task, but differentiates it twice by a loop over
the groups. Here the three products that a convolution and its gradients consist of are each other's derivatives, so
every order is one call for all tasks. A call is either such a grouped convolution or, for images of a few pixels with
hundreds of channels, a batched matrix product over the windows written out as columns; the columns are as large as nine
activations, so they are made when needed and never kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.grad import conv2d_input, conv2d_weight

FEW_CHANNELS = 4


class Conv2d(nn.Conv2d):
    """A convolution of an odd kernel, padding of half its size and no bias, that can have weights for each task.

    Attributes:
        per_task: Whether to use the products of this module. Set it with `batch_over_tasks`.
        matmul_side: Images up to this side are convolved by a matrix product; so are, unless it is 0, images of a few
            channels, whose columns are small.
    """

    per_task: bool = False
    matmul_side: int = 0

    def forward(self, x: Tensor) -> Tensor:
        """Convolve (n, c, h, w)."""
        if not self.per_task:
            return super().forward(x)
        weight = self.weight
        if torch.is_autocast_enabled(x.device.type):  # which knows torch's own functions only
            dtype = torch.get_autocast_dtype(x.device.type)
            x, weight = x.to(dtype), weight.to(dtype)
        (down, across), single = self.stride, self.kernel_size == (1, 1)
        if single and self.stride != (1, 1):
            x = x[..., ::down, ::across]
        small = max(x.shape[2:]) <= self.matmul_side or self.in_channels <= FEW_CHANNELS
        matmul = self.matmul_side > 0 and small
        result: Tensor = _Convolve.apply(x[None], weight[None], matmul)  # type: ignore[no-untyped-call]
        result = result.squeeze(0)  # cheaper to differentiate than [0]
        if single or self.stride == (1, 1):
            return result
        # A stride keeps every other place of the whole result: more products, but each order is still one call.
        return result[..., ::down, ::across]


def batch_over_tasks(module: nn.Module, matmul_side: int = 0, *, on: bool = True) -> None:
    """Let every `Conv2d` of a network use the products of this module, or not."""
    for layer in module.modules():
        if isinstance(layer, Conv2d):
            layer.per_task, layer.matmul_side = on, matmul_side


class _Bilinear(torch.autograd.Function):
    """A product of two tensors with a leading task axis, and settings; `vmap` adds to that axis."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.matmul = inputs[2]

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        flat = []
        for tensor, dim in zip(inputs[:2], in_dims[:2], strict=True):
            batched = tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            flat.append(batched.flatten(0, 1))
        result: Tensor = cls.apply(*flat, *inputs[2:])  # type: ignore[no-untyped-call]
        return result.unflatten(0, (info.batch_size, -1)), 0  # type: ignore[no-untyped-call]


class _Convolve(_Bilinear):
    """Images (t, n, c, h, w) and weights (t, o, c, k, k) to (t, n, o, h, w)."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, matmul: bool) -> Tensor:
        t, n, _, h, w = x.shape
        if matmul:
            product = weight.flatten(2) @ _columns(x, weight.shape[-1])
            return product.view(t, -1, n, h, w).transpose(1, 2)
        edge = weight.shape[-1] // 2
        return _apart(nn.functional.conv2d(_abreast(x), weight.flatten(0, 1), padding=edge, groups=t), t)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (y,), (x, weight), matmul = gradients, ctx.saved_tensors, ctx.matmul
        return (
            _Spread.apply(y, weight, matmul) if ctx.needs_input_grad[0] else None,  # type: ignore[no-untyped-call]
            _Correlate.apply(x, y, matmul, weight.shape[-1]) if ctx.needs_input_grad[1] else None,  # type: ignore[no-untyped-call]
            None,
        )


class _Spread(_Bilinear):
    """The transpose of `_Convolve` in the images: (t, n, o, h, w) and weights (t, o, c, k, k) to (t, n, c, h, w)."""

    @staticmethod
    def forward(y: Tensor, weight: Tensor, matmul: bool) -> Tensor:
        if matmul:
            return _Convolve.forward(y, weight.flip(-1, -2).transpose(1, 2), matmul)
        t, n, _, h, w = y.shape
        size = (n, t * weight.shape[2], h, w)
        edge = weight.shape[-1] // 2
        x: Tensor = conv2d_input(size, weight.flatten(0, 1), _abreast(y), padding=edge, groups=t)  # type: ignore[no-untyped-call]
        return _apart(x, t)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (x,), (y, weight), matmul = gradients, ctx.saved_tensors, ctx.matmul
        return (
            _Convolve.apply(x, weight, matmul) if ctx.needs_input_grad[0] else None,  # type: ignore[no-untyped-call]
            _Correlate.apply(x, y, matmul, weight.shape[-1]) if ctx.needs_input_grad[1] else None,  # type: ignore[no-untyped-call]
            None,
        )


class _Correlate(_Bilinear):
    """The transpose in the weights: images (t, n, c, h, w) and outputs (t, n, o, h, w) to (t, o, c, k, k)."""

    @staticmethod
    def forward(x: Tensor, y: Tensor, matmul: bool, kernel: int) -> Tensor:
        shape = (len(x), y.shape[2], x.shape[2], kernel, kernel)
        if matmul:
            return (y.transpose(1, 2).flatten(2) @ _columns(x, kernel).mT).view(shape)
        size = (shape[0] * shape[1], *shape[2:])
        edge, tasks = kernel // 2, len(x)
        weight: Tensor = conv2d_weight(_abreast(x), size, _abreast(y), padding=edge, groups=tasks)  # type: ignore[no-untyped-call]
        return weight.view(shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (weight,), (x, y), matmul = gradients, ctx.saved_tensors, ctx.matmul
        return (
            _Spread.apply(y, weight, matmul) if ctx.needs_input_grad[0] else None,  # type: ignore[no-untyped-call]
            _Convolve.apply(x, weight, matmul) if ctx.needs_input_grad[1] else None,  # type: ignore[no-untyped-call]
            None,
            None,
        )


def _abreast(x: Tensor) -> Tensor:
    """Images (t, n, c, h, w) with the tasks side by side as channels, (n, t * c, h, w): a copy only where need be."""
    return x.transpose(0, 1).flatten(1, 2)


def _apart(x: Tensor, tasks: int) -> Tensor:
    """The inverse of `_abreast`, never a copy."""
    return x.view(len(x), tasks, -1, *x.shape[2:]).transpose(0, 1)


def _columns(x: Tensor, kernel: int) -> Tensor:
    """The windows of images (t, n, c, h, w), padded by zeros, as columns (t, c * kernel * kernel, n * h * w)."""
    t, n, c, h, w = x.shape
    edge = kernel // 2
    padded = nn.functional.pad(x.transpose(1, 2), (edge,) * 4)  # (t, c, n, …)
    windows = padded.unfold(3, kernel, 1).unfold(4, kernel, 1)  # (t, c, n, h, w, kernel, kernel), no copies
    return windows.permute(0, 1, 5, 6, 2, 3, 4).reshape(t, c * kernel * kernel, n * h * w)
