"""A grid on several processes: nothing lost, nothing twice, whatever happens to a worker."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import know_tiny

from medi.bench.grid import Run
from medi.bench.run import run_grid
from medi.bench.work import Order, Relay, do, rows_of_answer
from medi.errors import InputError, LostError
from medi.methods import MP
from medi.runtime.files import read_journal
from medi.runtime.local_workers import Jobs
from medi.runtime.progress import Silent

KMEANS = Run("rules", "kmeans", "default", None, 5, 5, "honest", "episode", 0)
TINY = Run("rules", "mp", "tiny", "uniform", 5, 2, "honest", "episode", 0)
ORDERS = [Order((replace(KMEANS, seed=seed),), "out", 5, "cpu") for seed in range(4)]


class Listener(Silent):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def say(self, message: str) -> None:
        self.heard.append(message)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(MP, "configs", MP.presets)  # set back afterwards
    know_tiny()


def timeless(rows) -> list[dict]:
    return sorted(({k: v for k, v in row.items() if k != "seconds"} for row in rows), key=json.dumps)


def grid(out: Path, runs, **options):
    defaults = {"episodes": 5, "device": torch.device("cpu"), "resume": False, "reporter": Silent()}
    return run_grid(runs, out, **(defaults | options))


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_two_workers_share_a_training_survive_a_kill_and_give_the_rows_of_one_process(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))  # rows say how many threads there were
    runs = [TINY, replace(TINY, observations=3), replace(TINY, observations=3, regime="grouped"), KMEANS]
    alone = grid(tmp_path / "alone", runs)
    worker = [sys.executable, str(Path(__file__).parents[1] / "support" / "tiny.py"), str(tmp_path)]
    listener = Listener()
    together = grid(tmp_path / "together", runs, spread=Jobs(2, command=worker), spread_device="cpu", reporter=listener)
    assert timeless(read_journal(tmp_path / "together" / "results.jsonl")) == timeless(alone)
    assert timeless(together) == timeless(alone)
    assert sum("a worker was killed (-9)" in line for line in listener.heard) == 1
    # Begun once by the worker that was killed, then once for both that need it.
    trainings = (tmp_path / "trainings").read_text().split()
    assert len(trainings) == 2
    assert len(set(trainings)) == 1


def stub(code: str) -> list[str]:
    """A worker that knows nothing of medi, and so starts at once."""
    return [
        sys.executable,
        "-c",
        f"import sys, os, json, time\nfor line in sys.stdin:\n    order = json.loads(line)\n{code}",
    ]


def test_every_order_is_answered_once(tmp_path):
    echo = stub("    print(json.dumps({'rows': [{'seed': order['runs'][0]['seed']}]}), flush=True)")
    answers = list(Jobs(3, command=echo)(ORDERS, Silent()))
    assert sorted(row["seed"] for rows in answers for row in rows) == [0, 1, 2, 3]


def test_a_worker_that_is_killed_again_and_again_ends_the_grid_with_the_run_and_a_cure(tmp_path):
    note = f"    open({str(tmp_path / 'begun')!r}, 'a').write('x')\n    os.kill(os.getpid(), 9)"
    with pytest.raises(LostError, match=r"3 workers were killed \(-9\) at rules kmeans .* fewer --jobs"):
        list(Jobs(1, command=stub(note))(ORDERS[:1], Silent()))
    assert (tmp_path / "begun").read_text() == "xxx"


def test_a_worker_that_fails_by_itself_is_not_tried_again(tmp_path):
    note = f"    open({str(tmp_path / 'begun')!r}, 'a').write('x')\n    sys.exit(3)"
    with pytest.raises(LostError, match="a worker failed at rules kmeans"):
        list(Jobs(1, command=stub(note))(ORDERS[:1], Silent()))
    assert (tmp_path / "begun").read_text() == "x"


def test_input_at_fault_in_a_worker_is_an_input_error_here_and_stops_the_others_at_once():
    code = (
        "    if order['runs'][0]['seed'] == 0: print(json.dumps({'error': 'no such data: fetch it.'}), flush=True)\n"
        "    time.sleep(300)"
    )
    with pytest.raises(InputError, match="no such data"):
        list(Jobs(4, command=stub(code))(ORDERS, Silent()))


def test_rows_that_came_before_an_error_are_kept(tmp_path):
    def spread(orders, reporter):
        yield rows_of_answer(do(orders[0].as_json()))
        raise LostError("gone")

    with pytest.raises(LostError):
        grid(tmp_path, [KMEANS, replace(KMEANS, seed=1)], spread=spread)
    assert [row["seed"] for row in read_journal(tmp_path / "results.jsonl")] == [0]
    rows = grid(tmp_path, [KMEANS, replace(KMEANS, seed=1)], resume=True)
    assert [row["seed"] for row in read_journal(tmp_path / "results.jsonl")] == [0, 1]
    assert len(rows) == 2


def test_an_order_survives_its_way_as_json():
    order = Order((KMEANS, replace(KMEANS, observations="all")), "out", 7, "cuda")
    assert Order.of_json(order.as_json()) == order
    assert "\n" not in order.as_json()


def test_an_order_that_asks_for_too_much_is_answered_with_the_error(tmp_path):
    answer = do(Order((replace(KMEANS, way=500),), str(tmp_path), 5, "cpu").as_json())
    with pytest.raises(InputError, match="--way 500"):
        rows_of_answer(answer)


def test_processors_and_gpus_are_shared_out_among_workers(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert [Jobs(4, gpus=2)._environment(n, {})["CUDA_VISIBLE_DEVICES"] for n in range(4)] == ["0", "1", "0", "1"]
    assert Jobs(4, gpus=2)._environment(1, {"CUDA_VISIBLE_DEVICES": "5,7"})["CUDA_VISIBLE_DEVICES"] == "7"
    assert Jobs(3)._environment(0, {})["OMP_NUM_THREADS"] == "2"
    assert Jobs(3)._environment(0, {"OMP_NUM_THREADS": "6"})["OMP_NUM_THREADS"] == "6"
    assert "CUDA_VISIBLE_DEVICES" not in Jobs(3)._environment(0, {})


def test_progress_is_passed_on_but_not_every_step(tmp_path):
    with (tmp_path / "lines").open("w") as stream, Relay(stream).track("training mp", 50) as tick:
        for done in range(50):
            tick(done)
    assert [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()] == [
        {"progress": "training mp 0/50"}
    ]
