"""`medi bench paper`: in a clone it works, elsewhere it says what it needs; Ctrl-C keeps what is finished."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from systems import posix

import medi
from medi.core.files import read_journal

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--dataset", "rules", "--part", "kmeans", "--episodes", "3", "--device", "cpu")


def test_in_a_clone_it_writes_rows_and_tables(medi_, tmp_path):
    done = medi_("bench", "paper", *SMALL, "--seeds", "1", "--jobs", "2", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert {row["observations"] for row in read_journal(tmp_path / "out" / "results.jsonl")} == {5, 1}
    assert done.out == f"wrote {tmp_path / 'out' / 'paper' / 'kmeans.md'}\n"


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """As if this were an installed package, used in an empty folder."""
    monkeypatch.setattr(medi, "__file__", str(tmp_path / "lib" / "site-packages" / "medi" / "__init__.py"))
    monkeypatch.chdir(tmp_path)


def test_an_installed_wheel_says_in_one_line_what_is_needed_and_where_it_looked(medi_, tmp_path, installed):
    done = medi_("bench", "paper", *SMALL, "--out", tmp_path / "out")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert str(tmp_path / "lib" / "paper") in done.err
    assert not (tmp_path / "out").exists()


@posix
@pytest.mark.slow
def test_ctrl_c_ends_it_with_130_keeps_finished_rows_and_leaves_no_process(tmp_path):
    command = [sys.executable, "-m", "medi", "bench", "paper", *SMALL[:3], "kmeans,few-observations", *SMALL[4:]]
    command += ["--seeds", "50", "--jobs", "2", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    rows, until = tmp_path / "out" / "results.jsonl", time.monotonic() + 100
    while not read_journal(rows) and time.monotonic() < until:
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to every process
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert read_journal(rows)
    with suppress(ProcessLookupError):
        while not os.killpg(process.pid, 0):  # the last of them end a moment after the first
            assert time.monotonic() < until
            time.sleep(0.1)
