import math

import counting
import guarantee
import pytest
import torch
from guarantee import (
    error_rate,
    fit,
    gaps_of,
    guarantee_table,
    ramp_loss,
    study_guarantee,
    training_loss,
    views_of,
    weigh,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from stability import DELTA, Setting

from medi.data.benchmarks import Benchmark
from medi.data.facts import facts_of
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.runtime.progress import Silent
from medi.tasks.episodes import UniformSampler
from medi.theory import generalisation_bound


def draw_images(seed: int) -> ImageSet:
    """Six classes of 12 pictures of 16 by 16."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(6).repeat_interleave(12)
    looks = torch.randint(0, 120, (6, 1, 16, 16), generator=generator)
    noise = torch.randint(0, 136, (72, 1, 16, 16), generator=generator)
    return ImageSet((looks[labels] + noise).to(torch.uint8), labels, tuple("abcdef"))


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


def test_what_is_proven_is_nearly_reached():
    gaps = torch.zeros(1, 1, 1, 2).double()
    gaps[..., 0] = 1  # the loss is (1 - w)² / 2, so w = 1 / (1 + penalty)
    assert fit(gaps, 100.0).weights.tolist() == pytest.approx([1 / 101, 0])
    assert fit(gaps, 100.0, without=0).weights.tolist() == [0, 0]


def test_leaving_out_a_task_is_learning_from_the_others():
    gaps = draw_gaps(5, seed=3)
    others = torch.cat([gaps[:2], gaps[3:]])
    assert fit(gaps, 1.5, without=2).weights.tolist() == pytest.approx(fit(others, 1.5).weights.tolist(), abs=1e-7)


@given(st.integers(0, 10**6), st.floats(0.1, 3))
def test_the_gradient_is_that_of_the_loss_and_never_longer_than_one_a_task(seed, size):
    gaps = draw_gaps(4, seed)
    weights = size * torch.rand(4, generator=torch.Generator().manual_seed(seed)).double()
    followed = weights.clone().requires_grad_()
    training_loss(gaps, followed)[0].backward()
    gradient = training_loss(gaps, weights)[1]
    assert torch.allclose(gradient, followed.grad)
    assert gradient.norm() <= 4 + 1e-9


def test_no_weights_near_the_found_ones_are_better_and_none_is_negative():
    gaps, penalty = draw_gaps(6, seed=1, lean=0.2), 0.4
    found = fit(gaps, penalty)
    assert found.distance < 1e-6
    assert found.weights.min() >= 0

    def objective(weights: torch.Tensor) -> float:
        return float(training_loss(gaps, weights)[0] + penalty / 2 * weights.square().sum())

    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        near = (found.weights + 0.01 * torch.randn(4, generator=generator).double()).clamp(min=0)
        assert objective(near) >= objective(found.weights)


@pytest.mark.parametrize("penalty", [0.0, -1.0, math.nan])
def test_without_a_penalty_nothing_is_proven(penalty):
    with pytest.raises(InputError, match="penalty"):
        fit(draw_gaps(2, 0), penalty)


def test_errors_are_those_of_the_nearest_prototype_in_the_transformed_space():
    images = draw_images(0)
    views = views_of(images, images)
    assert [float(view.var(0).sum()) for view in views] == pytest.approx([1.0] * 7, rel=1e-4)
    tasks = UniformSampler(images.labels, 4, 2, 3).sample(40, torch.Generator().manual_seed(0))
    weights = torch.rand(7, generator=torch.Generator().manual_seed(1)).double()
    pi = torch.cat([weight.sqrt() * view for weight, view in zip(weights, views, strict=True)], 1)
    wrong = []
    for support, query in zip(tasks.support, tasks.query, strict=True):
        nearest = torch.cdist(pi[query.flatten()], pi[support].mean(1)).argmin(1)
        wrong.append((nearest != torch.arange(4).repeat_interleave(3)).double().mean())
    gaps = gaps_of(views, tasks)
    assert gaps.norm(dim=-1).allclose(torch.ones(40, 12, 3).double())
    assert 0 < error_rate(gaps, weights) == pytest.approx(float(torch.stack(wrong).mean()))
    for scale in (0.1, 1.0, 10.0):
        losses = ramp_loss(gaps, scale * weights)
        assert losses.max() <= 1
        assert (losses >= torch.stack(wrong)).all()


def test_the_pieces_of_theorem_3_fit_together():
    found = weigh(draw_gaps(400, 0), draw_gaps(300, 1), draw_gaps(300, 2), ridge=0.5, left_out=3)
    assert found["beta"] == pytest.approx(1 / 200)
    assert 0 < found["beta_found"] <= found["beta"]
    assert found["epsilon"] == pytest.approx(generalisation_bound(400, 1 / 200, 1.0, DELTA))
    assert found["fresh"] <= found["total"] == pytest.approx(found["train"] + found["epsilon"])
    assert found["fresh_errors"] <= found["fresh"]


def test_a_study_is_made_once_and_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(guarantee, "load", lambda name: Benchmark(facts_of(name), draw_images(0), draw_images(1)))
    setting = Setting(way=3, observations=2, queries=2, left_out=1, fresh=20)
    options = {"seeds": 1, "reporter": Silent(), "counts": (4, 2000), "setting": setting}
    rows = study_guarantee(tmp_path, **options)
    assert [(row["job"]["n"], row["job"]["ridge"]) for row in rows] == [(4, 0.2), (4, 0.05), (2000, 0.2), (2000, 0.05)]
    assert Image.open(tmp_path / "guarantee.png").width > 600
    assert study_guarantee(tmp_path, **options) == rows
    bounds = {(line[0], line[1]): line[-1] for line in guarantee_table(rows)[1:]}
    assert bounds["0.2", "4"].endswith("> 1")
    assert bounds["0.2", "2000"] == f"{rows[2]['total']:.3f} ± 0.000"


def test_a_power_law_is_found_again_and_counted_on():
    sizes = [8, 32, 128]
    assert counting.power_law(sizes, [3 * n**-0.7 for n in sizes]) == pytest.approx((3, 0.7))
    n = counting.count_tasks(0.5, lambda n: 3 * n**-0.7, 1.0)
    assert generalisation_bound(n, 3 * n**-0.7, 1.0, DELTA) <= 0.5
    assert generalisation_bound(n - 1, 3 * (n - 1) ** -0.7, 1.0, DELTA) > 0.5
    assert counting.count_tasks(0.5, lambda n: n**-0.5, 1.0) is None, "not faster than the root of n"


def test_tasks_are_counted_for_proven_supposed_and_fitted_stability():
    proven = [{"job": {"n": 100, "ridge": 0.5, "way": 5}, "train": 0.3}]
    losses = {"max_loss": 1.0, "train": 0.1}
    measured = [
        {"job": {"method": "mp", "n": n, "way": 5, "queries": 5}, "losses": {"zero-one": {**losses, "beta": 4 / n}}}
        for n in (10, 100)
    ]
    _, stable, supposed, fitted = counting.needed_table(proven, measured)
    assert stable[2] == "2 / n, proven"
    for line, scaled, train in ((stable, 2, 0.3), (supposed, 4, 0.1), (fitted, 4, 0.1)):
        for cell, below in zip(line[3:], (1.0, 0.8), strict=True):
            n = int(cell.replace(",", ""))
            assert train + generalisation_bound(n, scaled / n, 1.0, DELTA) <= below + 1e-9
            assert train + generalisation_bound(n - 1, scaled / (n - 1), 1.0, DELTA) > below - 1e-9
    assert (supposed[2], fitted[2]) == ("4.0 / n, supposed", "4.00 / n^1.00, fitted")
