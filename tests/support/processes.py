"""Processes for tests: forked, so that they start at once and inherit what a test has patched."""

import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess

import pytest

PATIENCE = 120
"""Seconds until a test gives a process up."""


def start(function: Callable[..., None], *arguments: object) -> BaseProcess:
    if sys.platform != "linux":
        pytest.skip("processes are forked")
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments, daemon=True)
    process.start()
    return process


def end(process: BaseProcess) -> int:
    """The exit code of a process that should end by itself; minus the signal that ended it."""
    process.join(PATIENCE)
    if process.exitcode is None:
        process.kill()
        raise TimeoutError(f"still running after {PATIENCE} s")
    return process.exitcode


def kill(process: BaseProcess) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def start_ranks(count: int, function: Callable[..., None], *arguments: object) -> list[BaseProcess]:
    """What torchrun does: `function` in several processes that know of one another."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def one(number: int) -> None:
        os.environ |= {"RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": str(count)}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        function(*arguments)

    return [start(one, number) for number in range(count)]
