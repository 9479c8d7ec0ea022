"""How `medi` teaches a network: its losses against loops and the literature's formulas, and its stages."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from medi.data.augment import StrongAugmentation
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods import Plan
from medi.methods.recipe import (
    Contrast,
    Recipe,
    Supervised,
    Tasks,
    contrastive_loss,
    task_size,
    teach,
)
from medi.runtime import ranks
from medi.runtime.context import Context
from medi.train.schedule import Schedule
from processes import end, start_ranks

SGD = Schedule(steps=3, rate=0.01, optimiser="sgd", shape="constant", precision="float32")
EVERYTHING = Recipe(
    "conv4",
    copies="spliced",
    augmentation=StrongAugmentation(crop=2, shuffle=0.5, cutout=4, colour=0.2),
    supervised=Supervised(batch=30, contrast=Contrast(width=8), mix=0.5, schedule=SGD),
    tasks=Tasks(way=4, observations=2, queries=3, images=40, schedule=SGD),
)


def some_known(channels: int = 3, each: int = 8) -> ImageSet:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(4).repeat(each)
    classes = torch.randint(0, 256, (4, channels, 16, 16), generator=generator)
    noise = torch.randint(-60, 60, (4 * each, channels, 16, 16), generator=generator)
    return ImageSet((classes[labels] + noise).clamp(0, 255).to(torch.uint8), labels, tuple("abcd"))


def on_sphere(n: int, d: int = 5) -> torch.Tensor:
    points = torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.nn.functional.normalize(points, dim=1)


def test_contrast_equals_its_formula_written_with_loops():
    points, same, temperature = on_sphere(7), torch.tensor([0, 1, 0, 2, 1, 0, 3]), 0.3
    terms = []
    for i in range(7):
        others = [k for k in range(7) if k != i]
        denominator = sum(np.exp(float(points[i] @ points[k]) / temperature) for k in others)
        logs = [float(points[i] @ points[j]) / temperature - np.log(denominator) for j in others if same[j] == same[i]]
        if logs:
            terms.append(-np.mean(logs))
    assert len(terms) == 5  # two items have no partner
    assert float(contrastive_loss(points, same, temperature)) == pytest.approx(np.mean(terms))


def test_contrast_of_two_views_is_cross_entropy_against_the_other_view():
    points = on_sphere(8)
    scores = (points @ points.T / 0.2).fill_diagonal_(-torch.inf)
    expected = torch.nn.functional.cross_entropy(scores, torch.arange(8).roll(4))
    assert torch.allclose(contrastive_loss(points, torch.arange(4).repeat(2), 0.2), expected)


def test_contrast_without_partners_is_zero_and_has_a_gradient_without_nan():
    points = on_sphere(3).requires_grad_()
    loss = contrastive_loss(points, torch.arange(3), 0.1)
    (gradient,) = torch.autograd.grad(loss, points)
    assert float(loss.detach()) == 0
    assert gradient.isfinite().all()


def test_stages_are_kept_apart_so_that_recipes_share_the_first(tmp_path):
    known, context = some_known(), Context(folder=tmp_path)
    teach(replace(EVERYTHING, tasks=None), known, Plan(3, 2, context=context))
    teach(EVERYTHING, known, Plan(3, 5, context=context))
    assert len(list(tmp_path.glob("medi-supervised-*.safetensors"))) == 1
    assert len(list(tmp_path.glob("medi-tasks-*.safetensors"))) == 1
    teach(replace(EVERYTHING, copies="turned", supervised=None), known, Plan(3, 2, context=context))
    assert len(list(tmp_path.glob("medi-supervised-*.safetensors"))) == 1
    assert len(list(tmp_path.glob("medi-tasks-*.safetensors"))) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"contrast": None},
        {"contrast": Contrast(width=8, weight=1.0)},
        {"contrast": Contrast(width=8, temperature=0.5)},
        {"mix": 0.0},
    ],
    ids=str,
)
def test_every_setting_of_the_supervised_stage_changes_what_is_learnt(change):
    known = some_known()
    assert EVERYTHING.supervised
    first = replace(EVERYTHING, tasks=None)
    other = replace(first, supervised=replace(EVERYTHING.supervised, **change))
    weights = [next(iter(teach(recipe, known, Plan(3, 2))[0].parameters())) for recipe in (first, first, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize("channels", [1, 3])
def test_the_supervised_stage_learns_to_tell_classes_apart(channels):
    known = some_known(channels, each=16)
    schedule = Schedule(steps=40, rate=3e-3, shape="onecycle")
    recipe = Recipe("conv4", "none", supervised=Supervised(batch=32, mix=0.3, schedule=schedule))
    network, _ = teach(recipe, known, Plan(3, 2))
    with torch.inference_mode():
        embedded = network(known.images / 255 * 4 - 2)
    means = torch.stack([embedded[known.labels == c].mean(0) for c in range(4)])
    inside = (embedded - means[known.labels]).square().sum()
    assert float(inside / (embedded - embedded.mean(0)).square().sum()) < 0.5


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
def test_two_processes_learn_what_one_does(tmp_path):
    torch.set_default_dtype(torch.float64)  # in 32 bits a rounding that flips one ReLU would look like a mistake
    try:

        def learn(out: Path) -> None:
            network, _ = teach(EVERYTHING, some_known(), Plan(3, 2))
            weights = {name: value.contiguous() for name, value in network.state_dict().items()}
            save_file(weights, out.with_name(f"{out.name}{ranks.rank()}"))

        def one() -> None:
            with ranks.joined(torch.device("cpu")):
                learn(tmp_path / "two")

        learn(tmp_path / "one")
        assert [end(process) for process in start_ranks(2, one)] == [0, 0]
        alone, together = load_file(tmp_path / "one0"), load_file(tmp_path / "two0")
        for name, value in alone.items():
            assert torch.allclose(value.double(), together[name].double(), atol=1e-9), name
    finally:
        torch.set_default_dtype(torch.float32)


def test_recipes_that_make_no_sense_say_what_to_change():
    with pytest.raises(InputError, match="teaches nothing"):
        Recipe(supervised=None)


@pytest.mark.parametrize(
    ("sizes", "expected"), [((30, 20, 25), (3, 5, 15)), ((30, 7), (2, 3, 4)), ((2, 9), (2, 1, 1)), ((1, 3), (2, 1, 1))]
)
def test_tasks_are_as_large_as_the_smallest_class_allows(sizes, expected):
    labels = torch.cat([torch.tensor([-1]), torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))])
    assert task_size(labels, Tasks()) == expected


def test_a_class_of_one_image_is_no_task_and_is_named():
    known = ImageSet(some_known().images[:9], torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 3]), tuple("abcd"))
    with pytest.raises(InputError, match="class d has 1 images"):
        teach(replace(EVERYTHING, copies="none", supervised=None), known, Plan(2, 1))
