"""`--jobs N`: work shared among several processes of this machine."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Queue
from threading import Lock

from medi.errors import LostError
from medi.runtime.progress import Reporter
from medi.runtime.system import apart_from_ctrl_c, failed_by_itself
from medi.runtime.workers import Rows, WorkItem, rows_of_answer

ATTEMPTS = 3
"""How often an item is begun whose worker is killed, by a lack of memory perhaps."""
SHOW_SECONDS = 1.0
END_SECONDS = 2.0


class LocalWorkers:
    """Processes of this machine that do items of work.

    Args:
        count: How many at a time.
        command: Starts a worker, which runs `medi.runtime.workers.serve`.
        gpus: Number of GPUs they take in turn; 0 for none.
    """

    def __init__(self, count: int, command: Sequence[str], gpus: int = 0) -> None:
        self.count, self.command, self.gpus = count, command, gpus
        self.progress: dict[int, str] = {}
        self.workers: dict[int, subprocess.Popen[str]] = {}
        self.starting = Lock()
        self.stopped = False

    def __call__(self, items: Sequence[WorkItem], reporter: Reporter) -> Generator[Rows, None, None]:
        """Yield the rows of each item as it is finished."""
        waiting: Queue[WorkItem] = Queue()
        for item in items:
            waiting.put(item)
        finished: Queue[Rows | BaseException] = Queue()
        self.stopped = False
        count = min(self.count, len(items))
        reporter.say(f"{len(items)} trainings on {count} processes.")
        with ThreadPoolExecutor(max(1, count)) as threads, reporter.track("grid", len(items)) as tick:
            for number in range(count):
                threads.submit(self._work, number, waiting, finished, reporter)
            try:
                done = 0
                while done < len(items):
                    try:
                        rows = finished.get(timeout=SHOW_SECONDS)
                    except Empty:
                        tick(done, "; ".join(dict(self.progress).values()))
                        continue
                    if isinstance(rows, BaseException):
                        raise rows
                    done += 1
                    yield rows
                    tick(done)
            finally:
                self._stop()

    def _work(
        self, number: int, waiting: Queue[WorkItem], finished: Queue[Rows | BaseException], reporter: Reporter
    ) -> None:
        """One thread, one worker: item after item, until there is none left."""
        try:
            while not (self.stopped or waiting.empty()):
                with suppress(Empty):
                    finished.put(rows_of_answer(self._attempt(number, waiting.get_nowait(), reporter)))
        except BaseException as error:
            finished.put(error)
        finally:
            self._end(number)

    def _attempt(self, number: int, item: WorkItem, reporter: Reporter) -> str:
        """The answer to an item, from a new worker where the old one was killed."""
        for attempt in range(1, ATTEMPTS + 1):
            worker = self._worker(number)
            answer = self._ask(worker, number, item, reporter)
            if answer:
                return answer
            self._end(number)
            if self.stopped:
                break
            if failed_by_itself(worker.returncode):  # it has said why
                raise LostError(
                    f"a worker failed at {item.describe()}, see above: remove the cause, then go on with --resume."
                )
            if attempt < ATTEMPTS:
                reporter.say(f"a worker was killed ({worker.returncode}) at {item.describe()}: trying again.")
        raise LostError(
            f"{ATTEMPTS} workers were killed ({worker.returncode}) at {item.describe()}: is there too little memory? "
            "Go on with --resume and fewer --jobs."
        )

    def _ask(self, worker: subprocess.Popen[str], number: int, item: WorkItem, reporter: Reporter) -> str:
        """The answer of a worker; empty where the worker was lost."""
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(item.as_json() + "\n")
            worker.stdin.flush()
            for line in worker.stdout:
                fields = json.loads(line) if line.endswith("\n") else {}  # a killed worker may leave part of a line
                if "say" in fields:
                    reporter.say(f"{item.describe()}: {fields['say']}")
                elif "progress" in fields:
                    self.progress[number] = f"{item.describe()} {fields['progress']}"
                elif fields:
                    return line
        except OSError:  # it ended while we wrote
            pass
        finally:
            self.progress.pop(number, None)
        return ""

    def _worker(self, number: int) -> subprocess.Popen[str]:
        with self.starting:
            if number not in self.workers and not self.stopped:
                self.workers[number] = subprocess.Popen(
                    self.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    encoding="utf-8",
                    env=self._environment(number, os.environ),
                    **apart_from_ctrl_c(),
                )
            return self.workers[number]

    def _environment(self, number: int, ours: Mapping[str, str]) -> dict[str, str]:
        """Processors divided among the workers, GPUs in turn."""
        threads = max(1, (os.cpu_count() or 1) // self.count)
        theirs = {"OMP_NUM_THREADS": str(threads)} | dict(ours)
        if self.gpus:
            names = ours.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(self.gpus)))
            theirs["CUDA_VISIBLE_DEVICES"] = names.split(",")[number % len(names.split(","))]
        return theirs

    def _end(self, number: int) -> None:
        with self.starting:
            worker = self.workers.pop(number, None)
        if worker is not None:
            with suppress(OSError, subprocess.TimeoutExpired):  # it ends by itself when its stdin is closed
                worker.communicate(timeout=END_SECONDS)
            worker.kill()  # loses nothing: a checkpoint is whole or absent
            worker.wait()

    def _stop(self) -> None:
        """Leave nothing running, whatever ended the work."""
        with self.starting:
            self.stopped = True
            for worker in self.workers.values():
                worker.kill()
