"""One job on several processes: `torchrun --nproc-per-node N -m medi bench run …`, or `discover`, or `assign`.

Every rank runs the same program on the same random draws. What costs time, the forward and backward passes, is done in
parts: a rank takes its `part` of a batch, ranks put their outputs together (`gather`, `mean`), and everyone goes on
with all of them. So the loss is the same number on every rank, and the same as on one process.

`gather` and `mean` multiply what flows back by the number of ranks, and `average_gradients` divides by it: what only
one rank did is counted once, and so is what every rank did alike. Code that knows nothing of ranks stays right, it is
just not shared. Without torchrun all of this does nothing and costs nothing.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from medi.errors import InputError, LostError

PATIENCE = timedelta(hours=2)
"""How long a rank waits for the others: the first one also writes checkpoints. A dead one is noticed at once."""


def asked_for() -> int:
    """Number of processes that torchrun started, 1 outside it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def count() -> int:
    """Number of ranks, 1 outside torchrun."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Number of this rank, from 0."""
    return dist.get_rank() if count() > 1 else 0


def is_first() -> bool:
    """Whether this rank is the one that writes and reports."""
    return rank() == 0


@contextmanager
def joined(device: torch.device) -> Iterator[None]:
    """Work with the other processes that torchrun started, if it did; each takes the GPU of its local number."""
    if asked_for() == 1:
        yield
        return
    backend = "gloo"
    if device.type == "cuda":
        backend = "cpu:gloo,cuda:nccl"
        local = int(os.environ.get("LOCAL_RANK", "0"))
        if local >= torch.cuda.device_count():
            raise InputError(f"process {local} has no GPU: start at most {torch.cuda.device_count()} a machine.")
        torch.cuda.set_device(local)
    with _peers():
        dist.init_process_group(backend, timeout=PATIENCE)
    # torchrun asks the survivors of a dead rank to go: say so, wherever it finds them.
    signal.signal(signal.SIGTERM, _asked_to_go)
    yield
    dist.destroy_process_group()  # not after an error: others may be waiting in there


def part(items: int) -> slice:
    """Which of the items of a batch are this rank's; the parts differ in size by one at most."""
    if items < count():
        raise InputError(f"{count()} processes have only {items} items of a batch to share: start at most {items}.")
    return slice(rank() * items // count(), (rank() + 1) * items // count())


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
        with _peers():
            for tensor in tensors:
                dist.broadcast(tensor.detach(), 0)


def wait() -> None:
    """Return once every rank has come here."""
    if count() > 1:
        _reduce(torch.zeros(1))


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
    with _peers():
        dist.all_reduce(x)
    return x


@contextmanager
def _peers() -> Iterator[None]:
    """Say in one line that another rank is gone, whatever the backend calls it."""
    try:
        yield
    except RuntimeError as error:
        # Without the place in the backend's source before it and its advice after it.
        reason = re.sub(r"^\[\S*\]\s*", "", str(error).strip().splitlines()[0]).split(". ")[0]
        raise _lost(f"another process of the job is gone ({reason})") from error


def _asked_to_go(number: int, frame: object) -> None:
    raise _lost("torchrun ended this process, because another one failed or the job was stopped")


def _lost(what: str) -> LostError:
    return LostError(
        f"{what}: start again (bench run with --resume, on as many processes as you like); what was saved is kept."
    )
