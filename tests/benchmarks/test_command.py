"""What a command took is its own: not what the process has that started it."""

import resource
import sys

import numpy as np
import pytest
from studies import benchmark

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
command = benchmark("command")


def test_peak_memory_is_that_of_the_command_and_not_of_who_started_it():
    ballast = np.ones(2**26)  # half a GiB
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = command.run_medi("--help", environment={})
    assert ballast.nbytes / 2**20 < ours
    assert 5 < figures["peak MB"] < ours / 2


def test_peak_memory_and_time_are_those_of_the_work(tmp_path):
    features = tmp_path / "features.npz"
    np.savez(features, z=np.random.default_rng(0).normal(size=(40, 2)), y=np.arange(40) % 2)
    little = command.run_medi("--help", environment={})
    much = command.run_medi("theory", "overlap", "--features", features, environment={})
    assert much["peak MB"] > little["peak MB"] + 50  # it needs torch
    for figures in (little, much):
        assert list(figures) == ["seconds", "processor seconds", "peak MB", "load before"]
        assert figures["seconds"] > 0
    assert much["processor seconds"] > little["processor seconds"]


def test_a_command_has_the_variables_it_is_given_before_ours(monkeypatch):
    words = ("bench", "run", "--dataset", "cifar10", "--method", "mp", "--out", "/nowhere/out")
    monkeypatch.setenv("MEDI_DATA", "/nowhere/ours")
    with pytest.raises(RuntimeError, match="/nowhere/given"):
        command.run_medi(*words, environment={"MEDI_DATA": "/nowhere/given"})


def test_a_command_that_fails_says_why():
    with pytest.raises(RuntimeError, match=r"medi theory overlap --features none\.npz ended with 2:\n.*none\.npz"):
        command.run_medi("theory", "overlap", "--features", "none.npz", environment={})
