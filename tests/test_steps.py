"""`benchmarks/steps.py`: both ways of taking a step agree, and the page's table."""

import json
from pathlib import Path

import pytest
import torch
from studies import benchmark

ROOT = Path(__file__).resolve().parent.parent


def test_the_table_on_the_page_is_that_of_the_committed_run():
    report = json.loads((ROOT / "results" / "speed" / "steps-h200.json").read_text())
    assert benchmark("steps").table(report) in (ROOT / "docs" / "speed.md").read_text()


@pytest.mark.parametrize("stage", ["rotations", "joint"])
def test_a_stage_of_the_benchmark_can_be_stepped(stage, monkeypatch):
    study = benchmark("steps")
    images = torch.randint(0, 256, (300, 3, 8, 8), dtype=torch.uint8)
    monkeypatch.setattr(study, "CHANGES", study.BENCHMARKS["rules"].augmentation)
    way = study.Timed(stage, images, record=True)
    before = [p.detach().clone() for p in way.step.model.parameters() if p.requires_grad]
    way.time(1)
    assert way.gradient().isfinite().all()
    after = [p for p in way.step.model.parameters() if p.requires_grad]
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
