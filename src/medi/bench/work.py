"""Runs as another process does them: `python -m medi.bench.work` is a worker of `--jobs`, `do` one of `--ray`.

Workers share the folder of trained models, where a training that several batches need is done once (`train.loop`).
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from medi.bench.datasets import load_dataset
from medi.bench.grid import Run
from medi.data.benchmarks import Benchmark
from medi.runtime.progress import Reporter, Silent
from medi.runtime.system import keep_freed_memory
from medi.runtime.workers import answer, serve

WORKER = (sys.executable, "-m", "medi.bench.work")
"""The command of a local worker."""


@dataclass(frozen=True)
class RunBatch:
    """Runs that share a learner.

    Attributes:
        runs: Next to each other in a grid.
        out: The results folder, absolute.
        episodes: Scoring episodes.
        device: Where to work: auto, cpu or cuda, on the machine that does it.
        here: The folder that relative paths of methods and datasets start from.
    """

    runs: tuple[Run, ...]
    out: str
    episodes: int
    device: str
    here: str = "."

    @classmethod
    def of_json(cls, text: str) -> RunBatch:
        """What `as_json` wrote."""
        fields = json.loads(text)
        return cls(**fields | {"runs": tuple(Run(**run) for run in fields["runs"])})

    def as_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    def describe(self) -> str:
        """What the runs share, in a few words."""
        run = self.runs[0]
        return f"{run.dataset} {run.method} ({run.config}) {run.observations}-obs seed {run.seed}"


def do(batch: str, reporter: Reporter | None = None) -> str:
    """Do a batch, given as JSON; the answer has its rows."""
    from medi.bench.run import rows_of
    from medi.runtime.devices import choose_device

    wanted = RunBatch.of_json(batch)

    def work() -> list[dict[str, object]]:
        os.chdir(wanted.here)
        device = choose_device(wanted.device)
        benchmark = _loaded(wanted.runs[0].dataset, device.type)
        out = Path(wanted.out)
        return list(rows_of(wanted.runs, benchmark, out, wanted.episodes, device, reporter or Silent()))

    return answer(work)


@cache
def _loaded(name: str, device: str) -> Benchmark:
    return load_dataset(name, device)


if __name__ == "__main__":
    keep_freed_memory()
    serve(do)
