"""A step's loss, recorded once as a CUDA graph and replayed: launching a small network's steps is what takes time."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


@contextmanager
def replayed(loss: nn.Module, *, record: bool = True) -> Iterator[Callable[..., Tensor]]:
    """Inside, a loss that a GPU records when it is first called and from then on replays, gradients included.

    On a CPU it is the loss as it was given. What a call returns, and its gradients, are gone with the next call. The
    loss is a function of tensors alone whose work does not depend on what is in them: what is drawn at random or read
    on the CPU stays outside, and so does a change between training and evaluation.
    """
    first: tuple[object, ...] | None = None

    def call(*batch: Tensor) -> Tensor:
        nonlocal first
        kinds = tuple((tensor.shape, tensor.dtype, tensor.device) for tensor in batch)
        if first is None:
            first = kinds
            if record and _on_gpu(batch[0]):
                _record(loss, batch)
        if kinds != first:  # a recording would take them all the same, and give something else
            raise ValueError(f"a recorded loss takes tensors like those of its first call, {first}, not {kinds}.")
        result: Tensor = loss(*batch)
        return result

    try:
        yield call
    finally:
        if vars(loss).pop("forward", None):  # where the recording is
            for parameter in loss.parameters():
                parameter.grad = None  # it lies in the recording's memory
            gc.collect()  # a recording refers to itself, and keeps the memory of a whole step


def _record(loss: nn.Module, batch: tuple[Tensor, ...]) -> None:
    device = batch[0].device.type
    mixed, dtype, plain = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device), loss.forward

    def forward(*arguments: Tensor) -> Tensor:
        # Without a cache of cast weights: a recording must not depend on one.
        with torch.autocast(device, dtype, mixed, cache_enabled=False):
            result: Tensor = plain(*arguments)
            return result

    loss.forward = forward
    # Recording is done on a stream of its own, and the nodes of gradients are made there: meant so.
    warnings.filterwarnings("ignore", message="The AccumulateGrad node's stream")
    before = [buffer.clone() for buffer in loss.buffers()]
    try:
        # Mixed precision is for the way forward: here the way back is recorded as well.
        with torch.autocast(device, enabled=False):
            torch.cuda.make_graphed_callables(loss, tuple(tensor.clone() for tensor in batch))
    finally:
        # Torch warms up by a few calls, and these must leave no trace in running averages.
        with torch.no_grad():
            for buffer, value in zip(loss.buffers(), before, strict=True):
                buffer.copy_(value)


def _on_gpu(tensor: Tensor) -> bool:
    return tensor.is_cuda
