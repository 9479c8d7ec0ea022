"""A piece of a grid as another process does it: `python -m medi.bench.work` reads orders and writes answers.

Orders and answers are lines of JSON, so that nothing is unpickled. The process that gives orders alone writes results;
workers share the folder of trained models, where a training that several pieces need is done once (`train.loop`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Protocol

from medi.bench.grid import Run
from medi.data.benchmarks import Benchmark, load
from medi.errors import InputError
from medi.runtime.progress import Reporter, Silent, Tick

Rows = list[dict[str, Any]]


class Piece(Protocol):
    """Work that can be done elsewhere."""

    def as_json(self) -> str:
        """One line, from which the other side knows what to do."""

    def describe(self) -> str:
        """The work in a few words."""


Spread = Callable[[Sequence["Order"], Reporter], Generator[Rows, None, None]]
"""Has orders done elsewhere; yields the rows of each as it is finished, in any order, and each once.

Closing the generator ends what is still at work.
"""


@dataclass(frozen=True)
class Order:
    """Runs that share a learner.

    Attributes:
        runs: Next to each other in a grid.
        out: The results folder, absolute.
        episodes: Scoring episodes.
        device: Where to work: auto, cpu or cuda, on the machine that does it.
    """

    runs: tuple[Run, ...]
    out: str
    episodes: int
    device: str

    @classmethod
    def of_json(cls, text: str) -> Order:
        """What `as_json` wrote."""
        fields = json.loads(text)
        return cls(**fields | {"runs": tuple(Run(**run) for run in fields["runs"])})

    def as_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    def describe(self) -> str:
        """The runs in a few words."""
        return self.runs[0].describe()


def do(order: str, reporter: Reporter | None = None) -> str:
    """Do an order; the answer has `rows`, or `error` where the input is at fault."""
    from medi.bench.run import rows_of
    from medi.runtime.devices import choose_device

    wanted = Order.of_json(order)
    try:
        device = choose_device(wanted.device)
        benchmark = _loaded(wanted.runs[0].dataset, device.type)
        rows = rows_of(wanted.runs, benchmark, Path(wanted.out), wanted.episodes, device, reporter or Silent())
        return json.dumps({"rows": list(rows)})
    except InputError as error:
        return json.dumps({"error": str(error)})


def rows_of_answer(answer: str) -> Rows:
    """The rows of an answer; what was at fault there is at fault here."""
    fields = json.loads(answer)
    if "error" in fields:
        raise InputError(fields["error"])
    rows: Rows = fields["rows"]
    return rows


@cache
def _loaded(name: str, device: str) -> Benchmark:
    return load(name, device)


class Relay(Reporter):
    """Passes progress on as lines of JSON, not more often than anyone can read."""

    SECONDS = 0.5

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self.shown = 0.0

    def say(self, message: str) -> None:
        """Pass a message on."""
        self._write({"say": message})

    @contextmanager
    def track(self, title: str, total: int) -> Iterator[Tick]:
        """Pass on how far the work has come."""

        def tick(done: int, remark: str = "") -> None:
            if time.monotonic() - self.shown >= self.SECONDS:
                self.shown = time.monotonic()
                self._write({"progress": f"{title} {done}/{total}"})

        yield tick

    def _write(self, fields: dict[str, str]) -> None:
        self.stream.write(json.dumps(fields) + "\n")
        self.stream.flush()


def main() -> None:
    """Do the orders on stdin, one after the other, until there are no more."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # whatever prints must not print into the answers
    for order in sys.stdin:
        answer = do(order, Relay(answers))
        answers.write(answer + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
