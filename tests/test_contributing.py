"""Scores from Python are those of the command line."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from medi.cli.main import app
from medi.methods.mp import MP

ROOT = Path(__file__).resolve().parents[1]


def python_blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def run(*words: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(app, ["bench", "run", *words, "--seeds", "1", "--episodes", "20", "--out", "out"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in Path("out/results.jsonl").read_text().splitlines()]


def test_scores_from_python_are_the_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = python_blocks("docs/tutorials/method.md")[-1]
    monkeypatch.chdir(tmp_path)
    short = MP.presets["cpu"] | {"schedule": {"steps": 3}}  # both are as quick
    monkeypatch.setattr(MP, "presets", {**MP.presets, "cpu": short})
    there: dict[str, object] = {}
    exec(block.replace("seed=0)", "seed=0, episodes=20)"), there)
    (row,) = run("--dataset", "glyphs", "--method", "mp")
    assert there["scores"]["honest"].acc == row["acc"]
