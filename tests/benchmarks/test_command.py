"""What a command took is its own: not what the process has that started it."""

import resource
import sys

import numpy as np
import pytest
from command import run_medi

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_peak_memory_and_time_are_those_of_the_command(tmp_path):
    ballast = np.ones(2**26)  # half a GiB
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    features = tmp_path / "features.npz"
    np.savez(features, z=np.random.default_rng(0).normal(size=(40, 2)), y=np.arange(40) % 2)
    little = run_medi("--help", environment={})
    much = run_medi("theory", "overlap", "--features", features, environment={})
    assert ballast.nbytes / 2**20 < ours
    assert 5 < little["peak MB"] < ours / 2
    assert much["peak MB"] > little["peak MB"] + 50  # it needs torch
    assert much["processor seconds"] > little["processor seconds"] > 0


def test_a_command_that_fails_says_why():
    with pytest.raises(RuntimeError, match=r"medi theory overlap --features none\.npz ended with 2:\n.*none\.npz"):
        run_medi("theory", "overlap", "--features", "none.npz", environment={})
