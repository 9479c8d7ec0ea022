"""`benchmarks/steps.py` compares two ways to take the same step."""

import pytest
import torch
from steps import STAGES, compare


@pytest.mark.skipif(not torch.cuda.is_available(), reason="on a CPU nothing is recorded")
@pytest.mark.parametrize("stage", STAGES)
def test_both_ways_of_taking_a_step_have_one_gradient(stage):
    images = torch.randint(0, 256, (300, 3, 8, 8), dtype=torch.uint8).to("cuda")
    assert compare(stage, images, steps=1, repeats=1)["apart"] < 1e-4
