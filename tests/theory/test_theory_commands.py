import json
import os
import subprocess
import sys

import numpy as np
import pytest

from medi.errors import InputError
from medi.theory import generalisation_bound, tasks_needed
from medi.theory.commands import read_features


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "medi", "theory", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def test_the_bound_is_printed_and_called_vacuous_where_it_is():
    options = ("--tasks", "100000", "--max-loss", "1", "--delta", "0.05")
    said = run("bound", "--beta", "1e-5", *options)
    assert said.returncode == 0, said.stderr
    assert f"epsilon = {generalisation_bound(100000, 1e-5, 1, 0.05):.6g}" in said.stdout
    assert "Vacuous" not in said.stdout
    assert "Vacuous" in run("bound", "--beta", "0.1", *options).stdout
    assert "too few" in run("bound", "--beta", "0", "--tasks", "1", "--max-loss", "1", "--delta", "0.05").stdout
    counted = run("bound", "--beta", "1e-4", *options, "--epsilon", "0.2")  # 10 / n
    assert f"takes {tasks_needed(0.2, 10, 1, 0.05)} tasks" in counted.stdout
    refused = run("bound", "--beta", "-1", *options)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_the_overlap_of_a_file_is_printed(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    np.savez(tmp_path / "features.npz", z=rng.random((400, 1)) + 0.5 * y[:, None], y=y)
    said = run("overlap", "--features", str(tmp_path / "features.npz"), "--json")
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert found["low"] < 0.5 < found["high"]
    assert found["pair"] == [0, 1]
    words = run("overlap", "--features", str(tmp_path / "features.npz")).stdout
    assert f"tau = {found['tau']:.4f}" in words
    missing = run("overlap", "--features", str(tmp_path / "nothing.npz"))
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert "nothing.npz" in missing.stderr


def test_looking_into_theory_needs_no_torch():
    code = "import sys, medi.theory.commands; assert not {'torch', 'scipy', 'matplotlib'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_files_that_cannot_be_features_are_named(tmp_path):
    def refused(name: str, *parts: str) -> None:
        with pytest.raises(InputError) as error:
            read_features(tmp_path / name)
        assert "\n" not in str(error.value)
        for part in (name, *parts):
            assert part in str(error.value)

    z, y = np.zeros((4, 2)), np.zeros(4, dtype=np.int64)
    np.savez(tmp_path / "no-y.npz", z=z)
    refused("no-y.npz", "array y", "numpy.savez")
    np.save(tmp_path / "one.npy", z)
    refused("one.npy", "single array")
    np.savez(tmp_path / "words.npz", z=np.array(["a", "b"]), y=y)
    refused("words.npz", "numbers")
    np.savez(tmp_path / "float-y.npz", z=z, y=z[:, 0])
    refused("float-y.npz", "integers")
    np.savez(tmp_path / "objects.npz", z=np.array([{}, {}], dtype=object), y=y)
    refused("objects.npz", "no readable .npz")
    (tmp_path / "text.npz").write_text("not a zip at all")
    refused("text.npz", "no readable .npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "no-y.npz").read_bytes()[:60])
    refused("cut.npz", "no readable .npz")
    (tmp_path / "empty.npz").write_bytes(b"")
    refused("empty.npz", "no readable .npz")
