"""Runs as another process does them, one of `--jobs` or of `--ray`.

Workers share the folder of trained models, where a training that several batches need is done once (`train.loop`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import torch

from medi.bench.datasets import load_dataset
from medi.bench.grid import Run
from medi.core.progress import Reporter, Silent
from medi.data.benchmarks import Benchmark
from medi.jobs.local_workers import LocalWorkers
from medi.jobs.workers import answer

DO = "medi.bench.work:do"
"""What a local worker runs."""


@dataclass(frozen=True)
class RunBatch:
    """Runs next to each other in a grid that share a learner, and what another process needs to do them.

    The results folder is absolute; relative paths of methods and datasets start from `here`; the device is the
    machine's.
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


def local_workers(jobs: int, device: str, *, keep_going: bool = False) -> LocalWorkers:
    """So many processes of this machine that do batches, on CPUs or on its GPUs (`device` is cpu or cuda)."""
    gpus = torch.cuda.device_count() if device == "cuda" else 0
    return LocalWorkers(jobs, DO, gpus=gpus, choose=next_batch, keep_going=keep_going)


def next_batch(waiting: Sequence[RunBatch], under_way: Sequence[RunBatch]) -> int:
    """The place of the batch to begin: of the first one's seed, and if possible of a dataset and method not under way.

    Those of one dataset and method share stages of training, for which one would wait while the other does them.
    """

    def kind(batch: RunBatch) -> tuple[str, str, int]:
        run = batch.runs[0]
        return run.dataset, run.method, run.seed

    busy, seed = set(map(kind, under_way)), waiting[0].runs[0].seed
    return next((n for n, batch in enumerate(waiting) if kind(batch)[-1] == seed and kind(batch) not in busy), 0)


def do(batch: str, reporter: Reporter | None = None) -> str:
    """Do a batch, given as JSON; the answer has its rows."""
    from medi.bench.run import rows_of
    from medi.bench.setup import Setup
    from medi.nn.devices import choose_device

    wanted = RunBatch.of_json(batch)

    def work() -> list[dict[str, object]]:
        os.chdir(wanted.here)
        device = choose_device(wanted.device)
        setup = Setup(Path(wanted.out), wanted.episodes, device, reporter or Silent())
        return list(rows_of(wanted.runs, _loaded(*wanted.runs[0].source, device.type), setup))

    try:
        return answer(work)
    except torch.OutOfMemoryError as error:
        raise MemoryError(str(error)) from error


@cache
def _loaded(name: str, as_people_do: bool, device: str) -> Benchmark:
    return load_dataset(name, as_people_do, device)
