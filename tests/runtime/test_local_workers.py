"""Work on several processes of this machine: every item once, whatever happens to a worker."""

import json
import sys
from dataclasses import dataclass

import pytest
from systems import posix

from medi.errors import InputError, LostError
from medi.runtime.local_workers import LocalWorkers
from medi.runtime.progress import Silent
from medi.runtime.workers import ProgressLines


@dataclass(frozen=True)
class Item:
    number: int

    def as_json(self) -> str:
        return json.dumps({"number": self.number})

    def describe(self) -> str:
        return f"item {self.number}"


ITEMS = [Item(number) for number in range(4)]


def worker(code: str) -> list[str]:
    """A command that runs some code for each item; it imports nothing of ours, and so starts at once."""
    loop = "import sys, os, json, time\nfor line in sys.stdin:\n    number = json.loads(line)['number']\n"
    return [sys.executable, "-c", loop + code]


def test_every_item_is_answered_once():
    echo = worker("    print(json.dumps({'rows': [{'number': number}]}), flush=True)")
    answers = list(LocalWorkers(3, echo)(ITEMS, Silent()))
    assert sorted(row["number"] for rows in answers for row in rows) == [0, 1, 2, 3]


@posix
def test_a_worker_that_is_killed_again_and_again_ends_the_work_with_the_item_and_a_cure(tmp_path):
    dies = worker(f"    open({str(tmp_path / 'begun')!r}, 'a').write('x')\n    os.kill(os.getpid(), 9)")
    with pytest.raises(LostError, match=r"3 workers were killed \(-9\) at item 0.* fewer --jobs"):
        list(LocalWorkers(1, dies)(ITEMS[:1], Silent()))
    assert (tmp_path / "begun").read_text() == "xxx"


def test_a_worker_that_fails_by_itself_is_not_tried_again(tmp_path):
    fails = worker(f"    open({str(tmp_path / 'begun')!r}, 'a').write('x')\n    sys.exit(3)")
    with pytest.raises(LostError, match="a worker failed at item 0"):
        list(LocalWorkers(1, fails)(ITEMS[:1], Silent()))
    assert (tmp_path / "begun").read_text() == "x"


def test_input_at_fault_in_a_worker_is_an_input_error_here_and_stops_the_others_at_once():
    code = (
        "    if number == 0: print(json.dumps({'error': 'no such data: fetch it.'}), flush=True)\n    time.sleep(300)"
    )
    with pytest.raises(InputError, match="no such data"):
        list(LocalWorkers(4, worker(code))(ITEMS, Silent()))


def test_processors_and_gpus_are_divided_among_workers(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    two, none = LocalWorkers(4, [], gpus=2), LocalWorkers(3, [])
    assert [two._environment(n, {})["CUDA_VISIBLE_DEVICES"] for n in range(4)] == ["0", "1", "0", "1"]
    assert two._environment(1, {"CUDA_VISIBLE_DEVICES": "5,7"})["CUDA_VISIBLE_DEVICES"] == "7"
    assert none._environment(0, {})["OMP_NUM_THREADS"] == "2"
    assert none._environment(0, {"OMP_NUM_THREADS": "6"})["OMP_NUM_THREADS"] == "6"
    assert "CUDA_VISIBLE_DEVICES" not in none._environment(0, {})


def test_progress_is_passed_on_but_not_every_step(tmp_path):
    with (tmp_path / "lines").open("w") as stream, ProgressLines(stream).track("training mp", 50) as tick:
        for done in range(50):
            tick(done)
    assert [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()] == [
        {"progress": "training mp 0/50"}
    ]
