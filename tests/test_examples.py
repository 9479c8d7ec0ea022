"""The scripts of `examples/` run, in an empty folder."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
WRITES = {
    "sort_folder": "sorted/report.html",
    "table": None,
    "own_grouping": "own_grouping/results.jsonl",
    "own_encoder": "outlines/report.html",
    "own_dataset": "own_dataset/results.jsonl",
    "own_method": "own_method/results.jsonl",
    "photo_benchmark": "benchmark/results.jsonl",
}
"""What each of them leaves behind."""


@pytest.fixture
def quick(medi_, hurry, monkeypatch):
    """Commands that a script starts run in this process, with short work."""

    in_a_process = subprocess.run

    def run(words, **more):
        if words[:3] != [sys.executable, "-m", "medi"]:
            return in_a_process(words, **more)
        few = ("--episodes", "2") if "bench" in words else ()
        result = medi_(*words[3:], *few)
        assert result.code == 0, result.err
        return subprocess.CompletedProcess(words, result.code, result.out)

    monkeypatch.setattr(subprocess, "run", run)
    hurry()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", WRITES)
def test_an_example_runs_and_leaves_its_results(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert WRITES[name] is None or (tmp_path / WRITES[name]).is_file()


def test_examples_are_short_and_all_of_them_are_run():
    lines = {path.stem: len(path.read_text(encoding="utf-8").splitlines()) for path in EXAMPLES.glob("*.py")}
    assert lines.keys() == WRITES.keys()
    assert max(lines.values()) < 40
