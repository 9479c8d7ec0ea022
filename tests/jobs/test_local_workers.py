"""Work on several processes of this machine: every item once, whatever happens to a worker."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import workers
from listening import Listener
from systems import posix

from medi.core.errors import InputError, LostError
from medi.core.progress import Silent
from medi.jobs.local_workers import LocalWorkers


@dataclass(frozen=True)
class Item:
    number: int

    def as_json(self) -> str:
        return json.dumps({"number": self.number})

    def describe(self) -> str:
        return f"item {self.number}"


ITEMS = [Item(number) for number in range(4)]


@pytest.fixture(autouse=True)
def notes(tmp_path, monkeypatch) -> Path:
    """The items that workers began, in their order."""
    monkeypatch.setenv(workers.NOTES, str(tmp_path / "notes"))
    return tmp_path / "notes"


def numbers(answers) -> list[int]:
    return [row["number"] for rows in answers for row in rows]


def test_every_item_is_answered_once(notes):
    assert sorted(numbers(LocalWorkers(3, "workers:echo")(ITEMS, Silent()))) == [0, 1, 2, 3]
    assert sorted(notes.read_text().split()) == ["0", "1", "2", "3"]


def test_the_next_item_can_be_chosen_by_what_is_under_way():
    last = LocalWorkers(1, "workers:echo", choose=lambda waiting, under_way: len(waiting) - 1)
    assert numbers(last(ITEMS, Silent())) == [3, 2, 1, 0]


@posix
def test_an_item_whose_worker_was_killed_is_done_again_after_the_others(notes):
    listener = Listener()
    assert numbers(LocalWorkers(1, "workers:first_killed_once")(ITEMS, listener)) == [1, 2, 3, 0]
    assert notes.read_text().split() == ["0", "1", "2", "3", "0"]
    assert [line for line in listener.heard if "killed (-9) at item 0" in line]


@posix
def test_a_worker_that_is_killed_again_and_again_ends_the_work_with_the_item_and_a_cure(notes):
    with pytest.raises(LostError, match=r"3 times a worker was killed \(-9\) at item 0.* fewer --jobs"):
        list(LocalWorkers(1, "workers:killed")(ITEMS[:1], Silent()))
    assert notes.read_text().split() == ["0"] * 3


def test_too_little_memory_is_tried_again_and_then_said(notes):
    with pytest.raises(LostError, match=r"3 times a worker had too little memory at item 0.* fewer --jobs"):
        list(LocalWorkers(1, "workers:short_of_memory")(ITEMS[:1], Silent()))
    assert notes.read_text().split() == ["0"] * 3


def test_a_worker_that_fails_by_itself_is_not_tried_again(notes):
    with pytest.raises(LostError, match="a worker failed at item 0"):
        list(LocalWorkers(1, "workers:exits")(ITEMS[:1], Silent()))
    assert notes.read_text().split() == ["0"]


def test_input_at_fault_in_a_worker_is_an_input_error_here_and_stops_the_others_at_once():
    with pytest.raises(InputError, match="no such data"):
        list(LocalWorkers(4, "workers:first_at_fault_others_endless")(ITEMS, Silent()))


def test_workers_that_keep_going_say_what_failed_and_do_the_others():
    crew, listener = LocalWorkers(2, "workers:first_fails", keep_going=True), Listener()
    assert sorted(numbers(crew(ITEMS, listener))) == [2, 3]
    assert sorted(crew.failures) == ["item 0", "item 1"]
    assert [line for line in listener.heard if "no such data" in line]


def test_what_a_worker_prints_is_no_output_and_what_it_says_is_passed_on(capfd):
    listener = Listener()
    list(LocalWorkers(2, "workers:talks")(ITEMS, listener))
    assert listener.heard.count("item 0: hello") == 1
    printed = capfd.readouterr()
    assert (printed.out, printed.err.count("not for the output")) == ("", 4)


def test_workers_have_one_thread_each_and_take_gpus_in_turn(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    rows = [row for rows in LocalWorkers(2, "workers:talks", gpus=2)(ITEMS[:2], Silent()) for row in rows]
    assert sorted(row["gpu"] for row in rows) == ["5", "7"]
    assert {row["threads"] for row in rows} == {"1"}
    monkeypatch.setenv("OMP_NUM_THREADS", "6")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    ((row,),) = LocalWorkers(2, "workers:talks")(ITEMS[:1], Silent())
    assert row == {"threads": "6", "gpu": None}
