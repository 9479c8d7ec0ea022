"""What docs/programs.md says to programs: exit codes, pipes, and its examples."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from contracts import check
from people import PALETTES, tinted

from medi.bench import rerun
from medi.cli import main as cli
from medi.core.errors import Exit, LostError

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "programs.md").read_text()
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
unix = pytest.mark.skipif(sys.platform == "win32", reason="pipes and signals of another kind")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def run(*words: str, code: str = "", **options) -> subprocess.CompletedProcess[bytes]:
    """The program in a process of its own; `code` is run before it."""
    start = f"{code}\nimport sys\nsys.argv[0] = 'medi'\nfrom medi.__main__ import main\nmain()"
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([sys.executable, "-c", start, *words], timeout=120, env=ENVIRONMENT, check=False, **options)


def run_here(*words: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["medi", *words])
        with pytest.raises(SystemExit) as end:
            cli.run()
    return end.value.code


def test_the_page_lists_every_exit_code():
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)} == set(Exit)
    assert dict(Exit.__members__) == {"DONE": 0, "FAILED": 1, "INPUT": 2, "STOPPED": 130, "CLOSED_PIPE": 141}


def test_what_is_done_exits_with_0():
    assert run("schema").returncode == Exit.DONE


@pytest.mark.parametrize(
    "words", [("nonsense",), ("schema", "discovry"), ("schema", "--nope"), ("theory", "bound", "--tasks", "many")]
)
def test_a_fault_of_the_input_or_the_command_line_exits_with_2_and_one_line(words):
    done = run(*words)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (Exit.INPUT, b"", 1)


def test_a_fault_of_the_program_exits_with_1_and_a_traceback():
    done = run("data", "list", code="from medi.data import commands\ncommands.BENCHMARKS = {1: 2}")
    assert (done.returncode, done.stdout) == (Exit.FAILED, b"")
    assert b"Traceback" in done.stderr


def test_a_lost_part_exits_with_1_and_one_line(monkeypatch, capsys):
    def lose(*_):
        raise LostError("a machine was lost: start again.")

    monkeypatch.setattr("medi.schemas.text", lose)
    assert run_here("schema", "row") == Exit.FAILED
    assert capsys.readouterr() == ("", "medi: a machine was lost: start again.\n")


@pytest.mark.parametrize(("again", "code"), [(0.5, Exit.DONE), (0.55, Exit.DONE), (0.7, Exit.FAILED)])
def test_a_result_that_differs_when_it_is_repeated_exits_with_1(monkeypatch, again, code):
    row = {"acc": 0.5, "nmi": 0.5, "ari": 0.5, "acc_ci95": 0.1}
    monkeypatch.setattr(rerun, "read_row", lambda text: row)
    monkeypatch.setattr(rerun, "rerun", lambda *_: rerun.Comparison(row, row | {"acc": again}))
    assert run_here("bench", "rerun", "results.jsonl:1", "--device", "cpu") == code


@unix
@pytest.mark.parametrize(
    ("words", "stream"),
    [
        (("--help",), "stdout"),
        (("schema", "discovery"), "stdout"),
        (("data", "list"), "stdout"),
        (("data", "list", "--json"), "stdout"),
        (("nonsense",), "stderr"),
    ],
)
def test_a_reader_that_left_gives_141_and_no_traceback(words, stream):
    reading, writing = os.pipe()
    os.close(reading)
    done = run(*words, **{stream: writing})
    os.close(writing)
    assert done.returncode == Exit.CLOSED_PIPE
    assert not done.stderr
    assert not done.stdout


def test_a_file_of_a_users_own_that_exits_is_no_closed_pipe(monkeypatch):
    monkeypatch.setattr("medi.schemas.text", lambda name: sys.exit(3))
    assert run_here("schema", "row") == 3


@unix
def test_sigterm_ends_it_by_that_signal(tmp_path):
    start = "from medi.__main__ import main; print('go', flush=True); main()"
    words = ("bench", "run", "--dataset", "glyphs", "--method", "mp", "--out", str(tmp_path / "out"))
    process = subprocess.Popen([sys.executable, "-c", start, *words], stdout=subprocess.PIPE, env=ENVIRONMENT)
    assert process.stdout.readline() == b"go\n"
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM


@unix
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
def test_the_pages_commands_work_also_in_ascii_and_with_names_that_are_no_unicode(tmp_path):
    for number, name in enumerate(("reds", "greens")):
        for i in range(3):
            tinted(tmp_path / "known" / name / f"{i}.png", PALETTES[name], 10 * number + i)
            tinted(tmp_path / "novel" / f"{name} {i}.png", PALETTES["blues"], 100 + 10 * number + i)
    tinted(tmp_path / "novel" / os.fsdecode(b"caf\xe9.png"), PALETTES["greys"], 200)
    (block,) = blocks("console")
    commands = [line.removeprefix("$ ") for line in block.splitlines()]
    script = "\n".join(["set -eo pipefail", f'medi() {{ "{sys.executable}" -m medi "$@"; }}', *commands])
    environment = ENVIRONMENT | {"MEDI_CACHE": str(tmp_path / "cache"), "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    verdict, printed = done.stdout.split("\n", 1)
    assert verdict in ("trustworthy", "doubtful", "no help")
    assert check("assign", json.loads(printed))["photos"] == 7
    assert json.loads((tmp_path / "discovery.schema.json").read_text())["$id"] == "urn:medi:schema:discovery:1"
