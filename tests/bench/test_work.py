"""A grid on several processes gives what one process gives, whatever happens to a worker."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from listening import Listener
from tiny import KMEANS_RUN, TINY_RUN, tiny_benchmark

from medi.bench import run as bench_run
from medi.bench import work
from medi.bench.run import run_grid
from medi.bench.setup import Setup
from medi.bench.work import RunBatch, do
from medi.core.errors import InputError, LostError
from medi.core.files import read_journal
from medi.core.progress import Silent
from medi.jobs.local_workers import LocalWorkers
from medi.jobs.workers import rows_of_answer


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for module in (bench_run, work):
        monkeypatch.setattr(module, "load_dataset", tiny_benchmark)
    work._loaded.cache_clear()
    yield
    work._loaded.cache_clear()


def without_time(rows) -> list[dict]:
    return sorted(({k: v for k, v in row.items() if k != "seconds"} for row in rows), key=json.dumps)


def grid(out: Path, runs, resume: bool = False, listener: Silent | None = None, **workers):
    return run_grid(runs, Setup(out, 5, torch.device("cpu"), listener or Silent(), resume), **workers)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_two_workers_share_a_training_survive_a_kill_and_give_the_rows_of_one_process(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))  # rows say how many threads there were
    monkeypatch.setenv("TRAININGS", str(tmp_path))
    more = replace(TINY_RUN, observations=3)
    runs = [TINY_RUN, more, replace(more, regime="grouped"), KMEANS_RUN]
    alone = grid(tmp_path / "alone", runs)
    workers, listener = LocalWorkers(2, "doomed:do"), Listener()
    together = grid(tmp_path / "together", runs, workers=workers, worker_device="cpu", listener=listener)
    assert without_time(read_journal(tmp_path / "together" / "results.jsonl")) == without_time(alone)
    assert without_time(together) == without_time(alone)
    assert sum("a worker was killed (-9)" in line for line in listener.heard) == 1
    # Begun once by the worker that was killed, then once for both that need it.
    trainings = (tmp_path / "trainings").read_text().split()
    assert len(trainings) == 2
    assert len(set(trainings)) == 1


def test_rows_that_came_before_an_error_are_kept(tmp_path):
    def lost_after_one(items, reporter):
        yield rows_of_answer(do(items[0].as_json()))
        raise LostError("gone")

    runs = [KMEANS_RUN, replace(KMEANS_RUN, seed=1)]
    with pytest.raises(LostError):
        grid(tmp_path, runs, workers=lost_after_one)
    assert [row["seed"] for row in read_journal(tmp_path / "results.jsonl")] == [0]
    assert len(grid(tmp_path, runs, resume=True)) == 2
    assert [row["seed"] for row in read_journal(tmp_path / "results.jsonl")] == [0, 1]


def test_a_batch_that_asks_for_too_much_is_answered_with_the_error(tmp_path):
    answer = do(RunBatch((replace(KMEANS_RUN, way=500),), str(tmp_path), 5, "cpu").as_json())
    with pytest.raises(InputError, match="--way 500"):
        rows_of_answer(answer)
