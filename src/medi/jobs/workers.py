"""Work that other processes do: what they are asked and what they answer is JSON; nothing is unpickled.

`local_workers` starts processes on this machine, `ray_workers` uses a Ray cluster. Both take any `WorkItem` and yield
the rows of each item as it is finished; only the process that asks writes results.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Protocol

from medi.core.errors import InputError
from medi.core.progress import Reporter, Tick
from medi.core.reading import refusal
from medi.core.system import keep_freed_memory

NO_MEMORY = 75
"""Exit code of a local worker that had too little memory: beside fewer others it may have enough."""

SHOW_SECONDS = 1.0
"""How long to wait for workers before saying again how far they are."""

Rows = list[dict[str, Any]]


class WorkItem(Protocol):
    """Work that can be done by another process."""

    def as_json(self) -> str:
        """One line that tells the worker what to do."""

    def describe(self) -> str:
        """The work in a few words."""


Workers = Callable[[Sequence[WorkItem], Reporter], Generator[Rows, None, None]]
"""Have items done elsewhere; yield the rows of each item once, as it is finished, in any order.

Closing the generator stops what is still running.
"""


def answer(work: Callable[[], Rows]) -> str:
    """Do some work; the answer has its `rows`, or `error` where the input is at fault."""
    try:
        return json.dumps({"rows": work()})
    except InputError as error:
        return json.dumps({"error": str(error)})
    except OSError as error:
        if error.errno is None:
            raise
        return json.dumps({"error": str(refusal(error))})


def rows_of_answer(line: str) -> Rows:
    """The rows of an answer; a worker's `InputError` is raised again here."""
    fields = json.loads(line)
    if "error" in fields:
        raise InputError(fields["error"])
    rows: Rows = fields["rows"]
    return rows


def serve(do: str, pipe: Connection, environment: Mapping[str, str]) -> None:
    """What a local worker runs: it answers items one after the other, until nobody asks any more.

    `module:function` takes an item as JSON and a reporter, and gives an answer. The environment is set before anything
    is imported that looks at it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks, which then ends this one
    sys.stdout = sys.stderr  # the output is that of the process that asks
    os.environ.update(environment)
    keep_freed_memory()
    module, _, function = do.partition(":")
    work = getattr(import_module(module), function)
    while item := receive(pipe)[1]:
        try:
            send(pipe, "answer", work(item, Teller(pipe)))
        except MemoryError:
            sys.exit(NO_MEMORY)


class Teller(Reporter):
    """Tells the process that asks how the work goes, progress at most twice a second; ends this one if it is gone."""

    SECONDS = 0.5

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.told = 0.0

    def say(self, message: str) -> None:
        """Pass a message on."""
        self._tell("say", message)

    @contextmanager
    def track(self, title: str, total: int) -> Iterator[Tick]:
        """Pass on how far the work has come."""

        def tick(done: int, remark: str = "") -> None:
            if time.monotonic() - self.told >= self.SECONDS:
                self.told = time.monotonic()
                self._tell("progress", f"{title} {done}/{total}")

        yield tick

    def _tell(self, kind: str, text: str) -> None:
        if not send(self.pipe, kind, text):
            sys.exit()


def send(pipe: Connection, kind: str, text: str) -> bool:
    """Send a message: an item, an answer, or one of a `Teller`; False where the other process is gone."""
    try:
        pipe.send_bytes(json.dumps([kind, text]).encode())
    except OSError:
        return False
    return True


def receive(pipe: Connection) -> tuple[str, str]:
    """The kind of the next message, and its text; two empty ones where the other process is gone."""
    try:
        kind, text = json.loads(pipe.recv_bytes())
    except (EOFError, OSError):
        return "", ""
    return kind, text
