"""Every study of the theory runs once at its smallest, and what is proven holds."""

from importlib import import_module

import pytest
import torch
from algorithms import Training
from embeddings import Recipe
from guarantee import fit, ramp_loss
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from stability import Setting

from medi.core.files import read_journal
from medi.core.progress import Silent
from medi.data.benchmarks import Benchmark
from medi.data.facts import facts_of
from medi.data.imageset import ImageSet

QUICK = Training(hidden=(12,), steps=4, batch=2, inner_steps=2)
SIZE = Setting(way=3, observations=2, queries=2, left_out=2, fresh=20)
SMALLEST = {
    "convergence": {"sizes": (40,), "dimensions": (1, 2)},
    "separability": {"datasets": ["rules"], "recipe": Recipe("mlp", steps=3), "items": 14},
    "solvability": {"recipe": Recipe("mlp", steps=3), "images": 20, "episodes": 3},
    "stability": {"counts": {"mp": (2, 4), "mm": (4,)}, "setting": SIZE, "training": QUICK},
    "guarantee": {"counts": (4, 2000), "setting": SIZE},
}


def pictures(seed: int = 0) -> ImageSet:
    """Six classes of 12 pictures of 16 by 16 that are easy to tell apart."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(6).repeat_interleave(12)
    looks = torch.randint(0, 200, (6, 1, 16, 16), generator=generator)
    noise = torch.randint(0, 56, (72, 1, 16, 16), generator=generator)
    return ImageSet((looks[labels] + noise).to(torch.uint8), labels, tuple("abcdef"))


@pytest.mark.parametrize("name", SMALLEST)
def test_a_study_measures_each_case_once_tabulates_and_draws_it(name, tmp_path, monkeypatch):
    module = import_module(name)
    monkeypatch.setattr(module, "load", lambda name: Benchmark(facts_of(name), pictures(0), pictures(1)), raising=False)
    study, table = getattr(module, f"study_{name}"), getattr(module, f"{name}_table")
    options = SMALLEST[name] | {"out": tmp_path, "seeds": 1, "reporter": Silent()}
    rows = study(**options)
    assert study(**options) == rows == read_journal(tmp_path / f"{name}.jsonl")
    heading, *lines = table(rows)
    assert lines
    assert {len(line) for line in lines} == {len(heading)}
    assert name == "separability" or Image.open(tmp_path / f"{name}.png").width > 600


def draw_gaps(tasks: int, seed: int, lean: float = 0.5) -> torch.Tensor:
    """Directions of four views, 3 queries against 2 other classes in every task, mostly on the right side."""
    gaps = torch.randn(tasks, 3, 2, 4, generator=torch.Generator().manual_seed(seed)).double() + lean
    return gaps / gaps.norm(dim=-1, keepdim=True)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.floats(0.05, 50), st.integers(0, 10**6), st.floats(-1, 2))
def test_leaving_out_a_task_never_moves_a_loss_by_more_than_is_proven(tasks, penalty, seed, lean):
    gaps, anything = draw_gaps(tasks, seed, lean), draw_gaps(50, seed + 1, lean=0.0)
    full = fit(gaps, penalty)
    for number in range(tasks):
        other = fit(gaps, penalty, without=number)
        slip = full.distance + other.distance
        assert (full.weights - other.weights).norm() <= 1 / penalty + slip
        change = (ramp_loss(anything, full.weights) - ramp_loss(anything, other.weights)).abs().max()
        assert change <= 1 / penalty + slip
