"""Runs of the tiny benchmark, for workers alone to import: the first that begins any training is killed.

Every training that is begun is noted in `trainings` of the folder `TRAININGS`.
"""

import os
import signal
from pathlib import Path

from tiny import tiny_benchmark

from medi.bench import work
from medi.nn.loop import _Run

TRAININGS = Path(os.environ["TRAININGS"]) / "trainings"
do = work.do
work.load_dataset = tiny_benchmark
fit_loop = _Run.fit_loop


def watched(self: _Run) -> None:
    first = not TRAININGS.exists()
    with TRAININGS.open("a") as file:
        file.write(f"{self.checkpoint.name}\n")
    if first:
        os.kill(os.getpid(), signal.SIGKILL)
    fit_loop(self)


_Run.fit_loop = watched
