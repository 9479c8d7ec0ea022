"""Work that other processes do: what they are asked and what they answer are lines of JSON; nothing is unpickled.

`local_workers` starts processes on this machine, `ray_workers` uses a Ray cluster. Both take any `WorkItem` and yield
the rows of each item as it is finished; only the process that asks writes results.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Protocol

from medi.errors import InputError
from medi.runtime.progress import Reporter, Tick

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


def rows_of_answer(line: str) -> Rows:
    """The rows of an answer; a worker's `InputError` is raised again here."""
    fields = json.loads(line)
    if "error" in fields:
        raise InputError(fields["error"])
    rows: Rows = fields["rows"]
    return rows


def serve(do: Callable[[str, Reporter], str]) -> None:
    """The main loop of a local worker: answer the items on stdin one after the other until stdin ends."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # whatever prints must not print into the answers
    for item in sys.stdin:
        answers.write(do(item, ProgressLines(answers)) + "\n")
        answers.flush()


class ProgressLines(Reporter):
    """Writes progress as lines of JSON, for the process that started this worker; at most two a second."""

    SECONDS = 0.5

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self.written = 0.0

    def say(self, message: str) -> None:
        """Pass a message on."""
        self._write({"say": message})

    @contextmanager
    def track(self, title: str, total: int) -> Iterator[Tick]:
        """Pass on how far the work has come."""

        def tick(done: int, remark: str = "") -> None:
            if time.monotonic() - self.written >= self.SECONDS:
                self.written = time.monotonic()
                self._write({"progress": f"{title} {done}/{total}"})

        yield tick

    def _write(self, fields: dict[str, str]) -> None:
        self.stream.write(json.dumps(fields) + "\n")
        self.stream.flush()
