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
    """Inside, a loss that is recorded when it is first called and from then on replayed, gradients included.

    On a CPU it is the loss as it was given.

    Args:
        loss: A function of tensors alone whose work does not depend on what is in them: every call must have tensors
            of the same shapes, and what is drawn at random, or read from them on the CPU, stays outside.
        record: False to leave it as it is.
    """
    pending = record

    def call(*batch: Tensor) -> Tensor:
        nonlocal pending
        if pending and _on_gpu(batch[0]):
            _record(loss, batch)
        pending = False
        result: Tensor = loss(*batch)
        return result

    try:
        with warnings.catch_warnings():
            # Recording is done on a stream of its own, and the gradients' nodes are made there: meant so.
            warnings.filterwarnings("ignore", message="The AccumulateGrad node's stream")
            yield call
    finally:
        if vars(loss).pop("forward", None):  # where torch puts the recording
            gc.collect()  # it refers to itself, and keeps the memory of a whole step


def _record(loss: nn.Module, batch: tuple[Tensor, ...]) -> None:
    # Torch warms up by a few calls, and these must leave no trace in running averages.
    before = [buffer.clone() for buffer in loss.buffers()]
    torch.cuda.make_graphed_callables(loss, batch)
    with torch.no_grad():
        for buffer, value in zip(loss.buffers(), before, strict=True):
            buffer.copy_(value)


def _on_gpu(tensor: Tensor) -> bool:
    return tensor.is_cuda
