"""`benchmarks/steps.py`: both ways of taking a step have one gradient, and the page's table."""

import json
from pathlib import Path

import pytest
import torch
from studies import benchmark

ROOT = Path(__file__).resolve().parent.parent
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


def test_the_table_on_the_page_is_that_of_the_committed_run():
    report = json.loads((ROOT / "results" / "speed" / "steps-h200.json").read_text())
    assert benchmark("steps").table(report) in (ROOT / "docs" / "speed.md").read_text()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("stage", ["rotations", "joint"])
def test_both_ways_of_taking_a_step_have_one_gradient(stage, device):
    images = torch.randint(0, 256, (300, 3, 8, 8), dtype=torch.uint8).to(device)
    found = benchmark("steps").compare(stage, images, steps=1, repeats=1)
    assert found["apart"] < 1e-4
    assert found["launched"]["ms"] > 0
