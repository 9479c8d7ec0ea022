"""Every script of `benchmarks` and `experiments` answers bad input in one line, with exit code 2."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from script import positive, run, some_of, write_json

from medi.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    path.stem
    for folder in ("benchmarks", "experiments", "experiments/theory")
    for path in (ROOT / folder).glob("*.py")
    if "\ndef main(parser: Parser)" in path.read_text()
)


def answer(main, capsys, monkeypatch, *words: object) -> tuple[int, str]:
    """Exit code and stderr of a script."""
    monkeypatch.setattr(sys, "argv", ["script.py", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        run(main, "what it does")
    return ended.value.code, capsys.readouterr().err


def test_all_scripts_are_found():
    assert {"speed", "complexity", "solvability"} < set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_unknown_arguments_are_one_line(name, capsys, monkeypatch):
    code, said = answer(import_module(name).main, capsys, monkeypatch, "--out", "nowhere", "--nonsense")
    assert code == 2
    assert "--nonsense" in said or "required" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["speed", "discover", "reading"])
def test_missing_data_is_one_line(name, tmp_path):
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), "--out", str(tmp_path / "out.json")]
    environment = os.environ | {"MEDI_DATA": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{name}.py: ")
    assert "medi data fetch" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "words", "reason"),
    [
        ("complexity", ["--methods", "MMM"], "unknown name 'MMM'"),
        ("complexity", ["--table", "nothing.json"], "cannot read nothing.json"),
        ("complexity", ["--table", "broken.json"], "broken.json is not JSON"),
        ("complexity", ["--device", "abacus"], "unknown device 'abacus'"),
        ("overlap", ["--repeats", "0"], "--repeats: 0 is too small"),
        ("overlap", ["--repeats", "two"], "--repeats"),
        ("reading", ["--only", "half"], "unknown name 'half'"),
        ("maml", ["--device", "cpu", "--network", "mlp", "--only", "abacus"], "no way has 'abacus'"),
        ("diagnose", [], "give --out"),
        ("diagnose", ["--table", "nothing.jsonl"], "nothing.jsonl has no rows"),
        ("diagnose", ["--table", "other.json"], "other.json has no rows"),
        ("views", ["--dataset", "glyph", "--out", "out"], "unknown dataset 'glyph'"),
        ("separability", ["--dataset", "cifar10", "--out", "out"], "medi data fetch cifar10"),
        ("solvability", ["--out", "broken.json"], "a file is in the way"),
    ],
)
def test_bad_input_is_one_line_that_names_it(name, words, reason, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEDI_DATA", str(tmp_path))
    Path("broken.json").write_text("{")
    Path("other.json").write_text('{"seconds": 1}\n')
    code, said = answer(import_module(name).main, capsys, monkeypatch, *words)
    assert code == 2
    assert reason in said
    assert said.count("\n") == 1


def test_ctrl_c_is_one_line_too(capsys, monkeypatch):
    def main(parser) -> None:
        raise KeyboardInterrupt

    assert answer(main, capsys, monkeypatch) == (130, "script.py: stopped.\n")


def test_arguments_are_checked():
    assert positive("3") == 3
    assert some_of(["a", "b"])("b,a") == ["b", "a"]
    with pytest.raises(InputError, match="unknown name 'c'"):
        some_of(["a", "b"])("a,c")


def test_figures_are_written_into_a_new_folder_and_nowhere_without_a_path(tmp_path):
    write_json(tmp_path / "new" / "out.json", {"seconds": 1})
    assert (tmp_path / "new" / "out.json").read_text() == '{\n "seconds": 1\n}\n'
    write_json(None, {})
