import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.core.errors import InputError
from medi.core.files import (
    append_to_journal,
    make_folder,
    only_process,
    read_journal,
    remove_leftovers,
    waiting_lock,
    write_atomically,
)


def test_a_journal_gives_back_what_was_appended(tmp_path):
    path, rows = tmp_path / "j.jsonl", [{"a": 1}, {"b": "ж", "c": [1.5, None]}]
    assert read_journal(path) == []
    for row in rows:
        append_to_journal(path, row)
    assert read_journal(path) == rows


@settings(deadline=None)  # it waits for the disk, which may be busy
@given(cut=st.integers(min_value=0, max_value=60))
def test_a_journal_cut_anywhere_keeps_its_whole_lines_and_can_be_continued(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("journal") / "j.jsonl"
    rows = [{"number": i, "text": "x" * i} for i in range(4)]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(content[: len(content) - min(cut, len(content))])
    kept = read_journal(path)
    assert kept == rows[: len(kept)]
    append_to_journal(path, {"new": True})
    assert read_journal(path) == [*kept, {"new": True}]


def test_damage_in_the_middle_of_a_journal_is_an_error_that_names_the_line(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_text('{"a": 1}\n{"a": \n{"a": 3}\n')
    with pytest.raises(InputError, match="line 2"):
        read_journal(path)


def test_a_row_that_is_not_a_number_is_refused_rather_than_written_as_broken_json(tmp_path):
    with pytest.raises(ValueError, match="Out of range float"):
        append_to_journal(tmp_path / "j.jsonl", {"acc": float("nan")})


def test_an_atomic_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="no space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_whose_place_is_taken_by_a_file_is_an_error_that_names_it(tmp_path):
    (tmp_path / "taken").write_text("")
    for path in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(InputError, match="taken"):
            make_folder(path)


@contextmanager
def held_elsewhere(lock, path):
    """Another process that holds a lock for a while."""
    code = (
        "import sys, time; from pathlib import Path; from medi.core.files import only_process, waiting_lock\n"
        f"with {lock}: print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        yield other


def test_a_folder_in_use_is_refused_and_free_again_once_its_process_is_killed(tmp_path):
    with held_elsewhere("only_process(Path(sys.argv[1]))", tmp_path) as other:
        with pytest.raises(InputError, match="in use by another medi process"), only_process(tmp_path):
            pass
        other.kill()
    with only_process(tmp_path):
        pass


def test_who_waits_for_a_lock_is_told_once_and_gets_it_when_its_holder_is_killed(tmp_path):
    path, told = tmp_path / "training.lock", []
    with held_elsewhere("waiting_lock(Path(sys.argv[1]), lambda: None)", path) as other:

        def told_then_kill() -> None:
            told.append(other.poll())
            other.kill()

        with waiting_lock(path, told_then_kill):
            assert other.wait() != 0
    assert told == [None], "told once, while the other was alive"


def test_leftovers_of_one_file_are_removed_and_of_others_not(tmp_path):
    for name in (".mp-1.safetensors.7.tmp", ".mp-1.jsonl.7.tmp", ".mp-12.safetensors.7.tmp", "mp-1.safetensors"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path, "mp-1")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mp-12.safetensors.7.tmp", "mp-1.safetensors"]
