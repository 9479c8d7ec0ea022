import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from medi.cli.theory import app, read_features
from medi.core.errors import InputError
from medi.theory import generalisation_bound, tasks_needed


def said(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_bound_is_printed_and_called_vacuous_where_it_is():
    options = ("--tasks", 100000, "--max-loss", 1)
    words = said("bound", "--beta", 1e-5, *options)
    assert f"epsilon = {generalisation_bound(100000, 1e-5, 1, 0.05):.6g}" in words
    assert "Vacuous" not in words
    assert "Vacuous" in said("bound", "--beta", 0.1, *options)
    assert "Vacuous" in said("bound", "--beta", 0, "--tasks", 1, "--max-loss", 1)
    assert f"takes {tasks_needed(0.2, 10, 1, 0.05)} tasks" in said("bound", "--beta", 1e-4, *options, "--epsilon", 0.2)


def test_the_overlap_of_a_file_is_printed(tmp_path):
    y = np.arange(400) % 2
    np.savez(tmp_path / "features.npz", z=np.random.default_rng(0).random((400, 1)) + 0.5 * y[:, None], y=y)
    options = ("overlap", "--features", tmp_path / "features.npz")
    found = json.loads(said(*options, "--json"))
    assert found["low"] < 0.5 < found["high"]
    assert f"tau = {found['tau']:.4f}" in said(*options)


def test_looking_into_theory_needs_no_torch():
    code = "import sys, medi.cli.theory; assert not {'torch', 'scipy', 'matplotlib'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


Z, Y = np.zeros((4, 2)), np.zeros(4, dtype=np.int64)


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        (None, "no such file"),
        ({"z": Z}, "y is not a file"),
        (Z, "no readable .npz"),
        ({"z": np.array(["a", "b"]), "y": Y}, "needs numbers"),
        ({"z": Z, "y": Z[:, 0]}, "integers"),
        ({"z": np.array([{}, {}], dtype=object), "y": Y}, "no readable .npz"),
        (b"not a zip at all", "no readable .npz"),
        (b"PK\x03\x04cut", "no readable .npz"),
        (b"", "no readable .npz"),
    ],
)
def test_files_that_cannot_be_features_are_named(tmp_path: Path, arrays, why: str):
    file = tmp_path / "given.npz"
    if isinstance(arrays, dict):
        np.savez(file, **arrays)
    elif isinstance(arrays, bytes):
        file.write_bytes(arrays)
    elif arrays is not None:
        with file.open("wb") as opened:
            np.save(opened, arrays)
    with pytest.raises(InputError, match=why) as error:
        read_features(file)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
