"""`--jobs N`: a grid on several processes of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Queue
from threading import Lock

from medi.bench.work import Order, Rows, rows_of_answer
from medi.errors import LostError
from medi.runtime.progress import Reporter

WORKER = (sys.executable, "-m", "medi.bench.work")
ATTEMPTS = 3
"""How often a piece of work is begun whose worker is killed, by a lack of memory perhaps."""
SHOW_SECONDS = 1.0
END_SECONDS = 2.0


class Jobs:
    """Local processes that do orders.

    Args:
        count: How many at a time.
        gpus: Number of GPUs they take in turn; 0 for none.
        command: What a worker is started with.
    """

    def __init__(self, count: int, gpus: int = 0, command: Sequence[str] = WORKER) -> None:
        self.count, self.gpus, self.command = count, gpus, command
        self.working: dict[int, str] = {}
        self.workers: dict[int, subprocess.Popen[str]] = {}
        self.starting = Lock()
        self.stopped = False

    def __call__(self, orders: Sequence[Order], reporter: Reporter) -> Generator[Rows, None, None]:
        """Yield the rows of each order as it is finished."""
        waiting: Queue[Order] = Queue()
        for order in orders:
            waiting.put(order)
        finished: Queue[Rows | BaseException] = Queue()
        self.stopped = False
        count = min(self.count, len(orders))
        reporter.say(f"{len(orders)} trainings on {count} processes.")
        with ThreadPoolExecutor(max(1, count)) as threads, reporter.track("grid", len(orders)) as tick:
            for number in range(count):
                threads.submit(self._work, number, waiting, finished, reporter)
            try:
                done = 0
                while done < len(orders):
                    try:
                        answer = finished.get(timeout=SHOW_SECONDS)
                    except Empty:
                        tick(done, "; ".join(dict(self.working).values()))
                        continue
                    if isinstance(answer, BaseException):
                        raise answer
                    done += 1
                    yield answer
                    tick(done)
            finally:
                self._stop()

    def _work(
        self, number: int, waiting: Queue[Order], finished: Queue[Rows | BaseException], reporter: Reporter
    ) -> None:
        """One thread, one worker: order after order, until there is none left."""
        try:
            while not (self.stopped or waiting.empty()):
                with suppress(Empty):
                    finished.put(rows_of_answer(self._attempt(number, waiting.get_nowait(), reporter)))
        except BaseException as error:
            finished.put(error)
        finally:
            self._end(number)

    def _attempt(self, number: int, order: Order, reporter: Reporter) -> str:
        """The answer to an order, from a new worker where the old one was killed."""
        for attempt in range(1, ATTEMPTS + 1):
            worker = self._worker(number)
            answer = self._ask(worker, number, order, reporter)
            if answer:
                return answer
            self._end(number)
            if self.stopped:
                break
            if worker.returncode > 0:  # it ended by itself and has said why
                raise LostError(f"a worker failed at {order.describe()}, see above: mend it, then go on with --resume.")
            if attempt < ATTEMPTS:
                reporter.say(f"a worker was killed ({worker.returncode}) at {order.describe()}: trying again.")
        raise LostError(
            f"{ATTEMPTS} workers were killed ({worker.returncode}) at {order.describe()}: is there too little memory? "
            "Go on with --resume and fewer --jobs."
        )

    def _ask(self, worker: subprocess.Popen[str], number: int, order: Order, reporter: Reporter) -> str:
        """The answer of a worker; empty where it was lost."""
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(order.as_json() + "\n")
            worker.stdin.flush()
            for line in worker.stdout:
                fields = json.loads(line) if line.endswith("\n") else {}  # not what a killed worker left of one
                if "say" in fields:
                    reporter.say(f"{order.describe()}: {fields['say']}")
                elif "progress" in fields:
                    self.working[number] = f"{order.runs[0].dataset} seed {order.runs[0].seed} {fields['progress']}"
                elif fields:
                    return line
        except OSError:  # it went while we wrote
            pass
        finally:
            self.working.pop(number, None)
        return ""

    def _worker(self, number: int) -> subprocess.Popen[str]:
        with self.starting:
            if number not in self.workers and not self.stopped:
                self.workers[number] = subprocess.Popen(
                    self.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=self._environment(number, os.environ),
                    start_new_session=True,  # Ctrl-C is for us: we end the workers
                )
            return self.workers[number]

    def _environment(self, number: int, ours: Mapping[str, str]) -> dict[str, str]:
        """Processors shared out among the workers, GPUs in turn."""
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
            with suppress(OSError, subprocess.TimeoutExpired):  # without further orders it goes by itself
                worker.communicate(timeout=END_SECONDS)
            worker.kill()  # has nothing to lose: a checkpoint is whole or absent
            worker.wait()

    def _stop(self) -> None:
        """Leave nothing running, whatever ended the grid."""
        with self.starting:
            self.stopped = True
            for worker in self.workers.values():
                worker.kill()
