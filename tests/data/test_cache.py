"""What was computed is found again; whatever goes wrong with the cache costs time, never a result."""

import multiprocessing
import os
import signal
import sqlite3

import pytest

from medi.data.cache import FeatureCache, cache_folder
from medi.progress import Silent


class Told(Silent):
    def __init__(self):
        super().__init__()
        self.said = []

    def say(self, message):
        self.said.append(message)


def open_cache(folder, encoder="net-1", told=None):
    return FeatureCache(encoder, told or Silent(), folder)


def test_what_was_put_is_found_by_the_next_run_and_by_the_same_encoder_only(tmp_path):
    cache = open_cache(tmp_path)
    cache.put([(b"a", b"1"), (b"b", b"22")])
    cache.close()
    again = open_cache(tmp_path)
    assert (again.get(b"a"), again.get(b"b"), again.get(b"c")) == (b"1", b"22", None)
    assert open_cache(tmp_path, "net-2").get(b"a") is None


def test_the_environment_chooses_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDI_CACHE", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"
    monkeypatch.delenv("MEDI_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    assert cache_folder().name == "features"


def _write_for_ever(folder, started):
    cache = open_cache(folder)
    number = 0
    while True:
        cache.put([(f"{number}.{i}".encode(), bytes([number % 256]) * 5000) for i in range(20)])
        number += 1
        started.set()


def test_a_process_killed_while_it_writes_leaves_whole_batches(tmp_path):
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    process = context.Process(target=_write_for_ever, args=(tmp_path, started))
    process.start()
    assert started.wait(30)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    cache = open_cache(tmp_path)
    number = 0
    while cache.get(f"{number}.0".encode()) is not None:
        for i in range(20):
            assert cache.get(f"{number}.{i}".encode()) == bytes([number % 256]) * 5000
        number += 1
    assert number >= 1
    assert all(cache.get(f"{number}.{i}".encode()) is None for i in range(20))


def test_two_programs_write_at_once(tmp_path):
    one, two = open_cache(tmp_path), open_cache(tmp_path)
    for i in range(20):
        one.put([(f"one {i}".encode(), b"1")])
        two.put([(f"two {i}".encode(), b"2"), (f"one {i}".encode(), b"1")])
    assert all(two.get(f"one {i}".encode()) == b"1" and one.get(f"two {i}".encode()) == b"2" for i in range(20))


def test_a_damaged_file_is_replaced(tmp_path):
    (tmp_path / "net-1.sqlite").write_bytes(b"this is no database, but long enough to be taken for one" * 100)
    told = Told()
    cache = open_cache(tmp_path, told=told)
    cache.put([(b"a", b"1")])
    assert cache.get(b"a") == b"1"
    assert not told.said


def test_a_folder_that_cannot_be_had_is_told_once_and_done_without(tmp_path):
    (tmp_path / "file").touch()
    told = Told()
    cache = open_cache(tmp_path / "file", told=told)
    cache.put([(b"a", b"1")])
    assert cache.get(b"a") is None
    assert len(told.said) == 1
    assert "not kept" in told.said[0]


@pytest.mark.parametrize("fault", [sqlite3.OperationalError("database or disk is full"), sqlite3.DatabaseError("bad")])
def test_a_cache_that_fails_later_is_told_once_and_done_without(tmp_path, fault):
    class Failing:
        def execute(self, *_):
            raise fault

        executemany = execute

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def close(self):
            pass

    told = Told()
    cache = open_cache(tmp_path, told=told)
    cache.close()
    cache._connection = Failing()
    cache.put([(b"a", b"1")])
    cache.put([(b"b", b"1")])
    assert cache.get(b"a") is None
    assert len(told.said) == 1
    assert str(fault) in told.said[0]
