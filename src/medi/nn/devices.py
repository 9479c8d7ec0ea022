"""Where the work is done."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

import torch

from medi.core.errors import InputError
from medi.core.workplace import check_device
from medi.jobs import ranks

Precision = Literal["auto", "float32", "bfloat16"]


def choose_device(name: str = "auto") -> torch.device:
    """`auto` takes a CUDA device where there is one; asking for one that is not there is an error."""
    check_device(name)
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise InputError("no CUDA device was found: use --device cpu, or install a CUDA build of torch.")
    return torch.device("cuda" if there and name != "cpu" else "cpu")


def describe_device(device: torch.device) -> str:
    """The device in words, as stored with every number."""
    processes = f"{ranks.count()} x " if ranks.count() > 1 else ""
    if device.type == "cuda":
        return processes + torch.cuda.get_device_name(device)
    return f"{processes}cpu ({platform.machine()}, {torch.get_num_threads()} threads)"


def mixed_precision(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """The context a forward pass runs in: bfloat16 on CUDA unless told otherwise, plain float32 on a CPU."""
    if precision == "bfloat16" or (precision == "auto" and device.type == "cuda"):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


@contextmanager
def tensor_float32(allowed: bool) -> Iterator[None]:
    """Inside, a GPU's products and convolutions of float32 may (or may not) round their inputs to 11 bits (TF32)."""
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    products.allow_tf32 = convolutions.allow_tf32 = allowed
    try:
        yield
    finally:
        products.allow_tf32, convolutions.allow_tf32 = before


@contextmanager
def cpu_threads(number: int) -> Iterator[None]:
    """Let torch use so many threads for one operation, and as many as before afterwards.

    Many small operations are done faster by one: on a busy machine two wait for each other at every one of them.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def wait_for(device: torch.device) -> None:
    """Return once the device has done what it was told, so that a clock can be read."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
