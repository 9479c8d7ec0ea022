"""One job on several processes: `torchrun --nproc-per-node N -m medi bench run …`, or `discover`, or `assign`.

Every rank runs the same program on the same random draws. What costs time is done in parts, and ranks put their parts
together (`medi.nn.across_ranks`); photos are shared out by shards. Without torchrun all of this does nothing, costs
nothing, and needs no torch.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from medi.core.errors import InputError, LostError
from medi.core.extras import imported

RANKS_PATIENCE = timedelta(hours=2)
"""How long a rank waits for the others: the first one also writes checkpoints. A dead one is noticed at once."""


def asked_for() -> int:
    """Number of processes that torchrun started, 1 outside it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def count() -> int:
    """Number of ranks, 1 outside torchrun."""
    group: Any = sys.modules.get("torch.distributed")
    return group.get_world_size() if group is not None and group.is_available() and group.is_initialized() else 1


def rank() -> int:
    """Number of this rank, from 0."""
    return _group().get_rank() if count() > 1 else 0


def is_first() -> bool:
    """Whether this rank is the one that writes and reports."""
    return rank() == 0


@contextmanager
def joined(device: str) -> Iterator[None]:
    """Work with the other processes that torchrun started, if it did; each takes the GPU of its local number.

    Args:
        device: auto, cpu or cuda.
    """
    if asked_for() == 1:
        yield
        return
    cuda = imported("train", "torch.cuda", "torchrun")
    backend = "gloo"
    if device != "cpu" and cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        local = int(os.environ.get("LOCAL_RANK", "0"))
        if local >= cuda.device_count():
            raise InputError(f"process {local} has no GPU: start at most {cuda.device_count()} a machine.")
        cuda.set_device(local)
    with peers():
        _group().init_process_group(backend, timeout=RANKS_PATIENCE)
    # torchrun asks the survivors of a dead rank to go: say so, wherever it finds them.
    signal.signal(signal.SIGTERM, _asked_to_go)
    yield
    _group().destroy_process_group()  # not after an error: others may be waiting in there


def part(items: int) -> slice:
    """Which of the items of a batch are this rank's; the parts differ in size by one at most."""
    if items < count():
        raise InputError(f"{count()} processes have only {items} items of a batch to share: start at most {items}.")
    return slice(rank() * items // count(), (rank() + 1) * items // count())


def wait() -> None:
    """Return once every rank has come here."""
    if count() > 1:
        with peers():
            _group().all_reduce(imported("train", "torch", "torchrun").zeros(1))


@contextmanager
def peers() -> Iterator[None]:
    """Say in one line that another rank is gone, whatever the backend calls it."""
    try:
        yield
    except RuntimeError as error:
        # Without the place in the backend's source before it and its advice after it.
        reason = re.sub(r"^\[\S*\]\s*", "", str(error).strip().splitlines()[0]).split(". ")[0]
        raise _lost(f"another process of the job is gone ({reason})") from error


def _group() -> Any:
    return imported("train", "torch.distributed", "torchrun")


def _asked_to_go(number: int, frame: object) -> None:
    raise _lost("torchrun ended this process, because another one failed or the job was stopped")


def _lost(what: str) -> LostError:
    return LostError(
        f"{what}: start again (bench run with --resume, on as many processes as you like); what was saved is kept."
    )
