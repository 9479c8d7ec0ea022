"""What the ranks of one job made, put together: sums, means, gradients, and what the first one has.

The expensive parts of a step, the forward and backward passes, are done in parts: a rank takes its `ranks.part` of a
batch, ranks put their outputs together (`gather`, `mean`), and everyone goes on with all of them. So the loss is the
same number on every rank, and the same as on one process.

`gather` and `mean` multiply what flows back by the number of ranks, and `average_gradients` divides by it: what only
one rank did is counted once, and so is what every rank did alike. Code that knows nothing of ranks stays right, it is
just not shared. On a single process all of this does nothing and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from medi.jobs.ranks import count, is_first, part, peers


def gather(mine: Tensor, items: int) -> Tensor:
    """What all ranks made of their parts (len(part), …), together: (items, …), float32 or wider. Differentiable."""
    if count() == 1:
        return mine
    whole = part(items)
    ends = (whole.start, items - whole.stop)
    mine = mine if mine.dtype == torch.float64 else mine.float()
    return _sum(functional.pad(mine, (0, 0) * (mine.ndim - 1) + ends))


def mean(mine: Tensor, items: int) -> Tensor:
    """The mean over a batch of items from every rank's mean over its part. Differentiable."""
    if count() == 1:
        return mine
    own = part(items)
    return _sum(mine * ((own.stop - own.start) / items))


def average_gradients(model: nn.Module) -> None:
    """Replace every gradient by its mean over ranks."""
    if count() == 1:
        return
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    flat = _reduce(torch.cat([gradient.flatten() for gradient in gradients])) / count()  # one message, not hundreds
    averages = torch.split_with_sizes(flat, [gradient.numel() for gradient in gradients])
    for gradient, average in zip(gradients, averages, strict=True):
        gradient.copy_(average.view_as(gradient))


def copy_from_first(*tensors: Tensor) -> None:
    """Overwrite tensors by the first rank's."""
    if count() > 1:
        with peers():
            for tensor in tensors:
                dist.broadcast(tensor.detach(), 0)


def from_first(read: Callable[[], bytes]) -> bytes:
    """What the first rank reads; the others need not see its files."""
    if count() == 1:
        return read()
    content = read() if is_first() else b""
    length = torch.tensor([len(content)])
    copy_from_first(length)
    buffer = torch.zeros(int(length), dtype=torch.uint8)
    if is_first():
        buffer.numpy()[:] = bytearray(content)
    copy_from_first(buffer)
    return buffer.numpy().tobytes()


class _Sum(torch.autograd.Function):
    """Sum over ranks, forwards and backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _reduce(x.clone())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return _reduce(gradients[0].clone())


def _sum(x: Tensor) -> Tensor:
    total: Tensor = _Sum.apply(x)  # type: ignore[no-untyped-call]
    return total


def _reduce(x: Tensor) -> Tensor:
    """Sum a tensor over ranks, in place where it is contiguous; every rank gets the same bits."""
    x = x.contiguous()
    with peers():
        dist.all_reduce(x)
    return x
