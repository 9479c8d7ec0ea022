"""`--jobs N`: work shared among several processes of this machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import Any

from medi.core.errors import InputError, LostError
from medi.core.progress import Reporter
from medi.core.system import failed_by_itself
from medi.jobs.workers import NO_MEMORY, SHOW_SECONDS, Rows, WorkItem, receive, rows_of_answer, send, serve

ATTEMPTS = 3
"""How often an item is begun whose worker is killed, or has too little memory beside the others."""
END_SECONDS = 2.0
"""How long a worker that has closed its pipe may take to end."""
SPAWN = get_context("spawn")
"""A forked process could not use CUDA."""

Choose = Callable[[Sequence[Any], Sequence[Any]], int]
"""Which of the items that wait is begun next, by its place, given those under way."""


class LocalWorkers:
    """So many processes of this machine that do items of work, by a function `module:name` that they alone import.

    They take the GPUs in turn. `choose` says which item is next: the first, without one. An item that fails ends the
    work, or is noted in `failures` where it is to keep going.
    """

    def __init__(
        self, count: int, do: str, *, gpus: int = 0, choose: Choose | None = None, keep_going: bool = False
    ) -> None:
        self.count, self.do, self.gpus, self.keep_going = count, do, gpus, keep_going
        self.choose: Choose = choose or (lambda waiting, under_way: 0)
        self.failures: list[str] = []

    def __call__(self, items: Sequence[WorkItem], reporter: Reporter) -> Generator[Rows, None, None]:
        """Yield the rows of each item as it is finished."""
        waiting, losses, crew = list(items), Counter[WorkItem](), list[Worker]()
        count = min(self.count, len(items))
        reporter.say(f"{len(items)} trainings on {count} processes.")
        try:
            crew += [Worker(self.do, self._environment(number)) for number in range(count)]
            with reporter.track("grid", len(items)) as tick:
                while busy := self._share_out(waiting, crew):
                    for number in speaking(busy):
                        rows = self._listen(crew[number], waiting, losses, reporter)
                        if crew[number].gone:
                            crew[number] = Worker(self.do, self._environment(number))
                        if rows is not None:
                            yield rows
                    left = len(waiting) + sum(worker.item is not None for worker in crew)
                    tick(len(items) - left, "; ".join(worker.progress for worker in crew if worker.progress))
        finally:
            for worker in crew:
                worker.end()

    def _share_out(self, waiting: list[WorkItem], crew: Sequence[Worker]) -> dict[int, Worker]:
        """Give every worker something to do, as long as there is anything; the busy ones by number."""
        for worker in crew:
            if worker.item is None and waiting:
                under_way = [other.item for other in crew if other.item]
                worker.begin(waiting.pop(self.choose(waiting, under_way)))
        return {number: worker for number, worker in enumerate(crew) if worker.item}

    def _listen(
        self, worker: Worker, waiting: list[WorkItem], losses: Counter[WorkItem], reporter: Reporter
    ) -> Rows | None:
        """The rows that a worker answers; None where it says something else, or is lost, or its item failed."""
        item, kind, text = worker.hear()
        try:
            if kind == "answer":
                return rows_of_answer(text)
            if kind == "say":
                reporter.say(f"{item.describe()}: {text}")
            elif kind == "progress":
                worker.progress = f"{item.describe()} {text}"
            else:
                losses[item] += 1
                why = why_lost(worker.end(END_SECONDS), item, last=losses[item] == ATTEMPTS)
                reporter.say(f"{why}: trying again.")
                waiting.append(item)  # after the others, beside which there may be too little memory
        except (InputError, LostError) as error:
            if not self.keep_going:
                raise
            self.failures.append(item.describe())
            reporter.say(f"FAILED: {item.describe()}: {error}")
        return None

    def _environment(self, number: int) -> dict[str, str]:
        """One thread each where there are several, and GPUs in turn."""
        theirs = {"OMP_NUM_THREADS": "1"} if self.count > 1 and "OMP_NUM_THREADS" not in os.environ else {}
        if self.gpus:
            names = (os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(self.gpus)))).split(",")
            theirs["CUDA_VISIBLE_DEVICES"] = names[number % len(names)]
        return theirs


class Worker:
    """A process that does one item after the other, what it is at, and how far it says it is."""

    def __init__(self, do: str, environment: dict[str, str]) -> None:
        self.pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=serve, args=(do, theirs, environment), daemon=True)
        self.process.start()
        theirs.close()
        self.item: WorkItem | None = None
        self.progress = ""

    @property
    def gone(self) -> bool:
        """Whether the pipe is closed."""
        return self.pipe.closed

    def begin(self, item: WorkItem) -> None:
        """Ask for an item; where the process is gone, that is heard."""
        self.item = item
        send(self.pipe, "item", item.as_json())

    def hear(self) -> tuple[WorkItem, str, str]:
        """The item under way, the kind of the next message and its text; two empty ones where the process is gone."""
        item = self.item
        assert item is not None
        kind, text = receive(self.pipe)
        if kind in ("answer", ""):
            self.item, self.progress = None, ""
        return item, kind, text

    def end(self, patience: float = 0.0) -> int:
        """Kill the process if it does not end by itself; its exit code."""
        self.process.join(patience)
        self.process.kill()  # loses nothing: a checkpoint is whole or absent
        self.process.join()
        self.pipe.close()
        return self.process.exitcode or 0


def speaking(workers: dict[int, Worker]) -> list[int]:
    """The numbers of those that have said something or are gone, after waiting a while for one."""
    ready = wait([worker.pipe for worker in workers.values()], SHOW_SECONDS)
    return [number for number, worker in workers.items() if worker.pipe in ready]


def why_lost(code: int, item: WorkItem, *, last: bool) -> str:
    """Why a process ended at an item, by its exit code; an error where that is to be tried no more."""
    if failed_by_itself(code) and code != NO_MEMORY:
        raise LostError(f"a worker failed at {item.describe()}, see above: remove the cause, then go on with --resume.")
    why = "had too little memory" if code == NO_MEMORY else f"was killed ({code})"
    if last:
        raise LostError(
            f"{ATTEMPTS} times a worker {why} at {item.describe()}: is there too little memory? "
            "Go on with --resume and fewer --jobs."
        )
    return f"a worker {why} at {item.describe()}"
