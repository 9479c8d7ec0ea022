"""What a network learns before anything else: what is learnt, kept, shared, and by how many processes."""

from dataclasses import replace

import pytest
import torch
from small_sets import KNOWN, blobs, generator, patterns

from medi.core.errors import InputError
from medi.data.augment import to_float
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods import Plan
from medi.methods.pretraining import Pretraining, pretrain, turned
from medi.nn.context import Context
from medi.nn.schedule import Schedule
from medi.tasks.episodes import UniformSampler

SGD = Schedule(steps=3, rate=0.01, optimiser="sgd", shape="constant", precision="float32")
CLASSES = Pretraining("classes", "conv4", batch=15, mix=0.5, schedule=SGD)
PROTOTYPES = Pretraining("prototypes", "conv4", batch=40, way=4, observations=2, queries=3, schedule=SGD)
ROTATIONS = Pretraining("rotations", "conv4", batch=16, schedule=SGD)
PLAN = Plan(3, 2, augmentation=Augmentation(crop=2, shuffle=0.5, cutout=4, colour=0.2))


def weights(*stages: Pretraining, known: ImageSet | None = None, plan: Plan = PLAN) -> torch.Tensor:
    network = pretrain(known or patterns(), plan, *stages)
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


@pytest.mark.parametrize("stage", [CLASSES, PROTOTYPES, ROTATIONS], ids=lambda stage: stage.kind)
def test_every_setting_and_seed_learns_something_else_and_the_same_ones_the_same(stage):
    one = weights(stage)
    assert torch.equal(one, weights(stage))
    assert not torch.equal(one, weights(stage, plan=replace(PLAN, context=Context(seed=1))))
    changes = {
        "classes": [{"mix": 0.0}, {"batch": 14}],
        "prototypes": [{"temperature": 9.0}, {"way": 3}, {"observations": 1}, {"queries": 2}],
        "rotations": [{"batch": 12}],
    }
    for change in changes[stage.kind]:
        assert not torch.equal(one, weights(replace(stage, **change))), change


def test_stages_are_kept_apart_so_that_others_share_the_first(tmp_path):
    plan = replace(PLAN, context=Context(folder=tmp_path))

    def kept(*stages: Pretraining) -> list[str]:
        weights(*stages, plan=plan)
        return sorted(path.name.split("-")[0] for path in tmp_path.glob("*.safetensors"))

    assert kept(CLASSES) == ["classes"]
    assert kept(CLASSES, PROTOTYPES) == ["classes", "prototypes"]
    assert kept(PROTOTYPES) == ["classes", "prototypes", "prototypes"]
    assert kept(CLASSES, PROTOTYPES) == ["classes", "prototypes", "prototypes"]
    plan = replace(plan, observations=5, way=2)  # what it is for does not matter
    assert kept(CLASSES) == ["classes", "prototypes", "prototypes"]


@pytest.mark.parametrize("channels", [1, 3])
def test_classes_are_learnt_to_be_told_apart(channels):
    known = patterns(channels=channels)
    schedule = Schedule(steps=30, rate=3e-3, shape="onecycle")
    network = pretrain(known, Plan(3, 2), Pretraining(network="conv4", batch=32, mix=0.3, schedule=schedule))
    with torch.inference_mode():
        embedded = network(to_float(known.images))
    means = torch.stack([embedded[known.labels == c].mean(0) for c in range(4)])
    inside = (embedded - means[known.labels]).square().sum()
    assert float(inside / (embedded - embedded.mean(0)).square().sum()) < 0.5


@pytest.mark.parametrize(("sizes", "expected"), [((30, 20, 25), (3, 5, 15)), ((30, 7), (2, 3, 4)), ((2, 9), (2, 1, 1))])
def test_tasks_are_as_large_as_the_smallest_class_allows(sizes, expected, monkeypatch):
    asked = []
    real = UniformSampler

    def noted(labels, *size):
        asked.append(size[:3])
        return real(labels, *size)

    monkeypatch.setattr("medi.methods.pretraining.UniformSampler", noted)
    labels = torch.cat([torch.tensor([-1]), torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))])
    known = ImageSet(torch.randn(len(labels), 5, generator=generator()), labels, tuple("abc"[: len(sizes)]))
    pretrain(known, Plan(2, 1), Pretraining("prototypes", "mlp", queries=15, schedule=Schedule(1)))
    assert asked == [expected]


def test_a_class_of_one_image_is_no_task_and_is_named():
    known = ImageSet(patterns().images[:9], torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 3]), tuple("abcd"))
    with pytest.raises(InputError, match="class d has 1 images"):
        pretrain(known, Plan(2, 1), PROTOTYPES)


def test_items_without_a_class_are_not_learnt_from():
    known = blobs(3)
    noisy = ImageSet(
        torch.cat([known.images, torch.full((9, 8), torch.nan)]),
        torch.cat([known.labels, torch.full((9,), -1)]),
        known.class_names,
    )
    for kind in ("classes", "prototypes"):
        stage = Pretraining(kind, "mlp", batch=30, schedule=SGD)
        assert weights(stage, known=noisy).isfinite().all()


def test_a_quarter_of_the_images_is_turned_by_each_angle():
    images = torch.rand(8, 1, 4, 4, generator=generator())
    for i, image in enumerate(turned(images)):
        assert torch.equal(image, torch.rot90(images[i], i // 2, (1, 2)))


def test_rotations_also_turn_what_is_observed_where_that_is_asked_for(tmp_path):
    both = replace(ROTATIONS, observed=True)
    plan = replace(PLAN, context=Context(folder=tmp_path))
    told = replace(plan, observed=255 - patterns().images)
    assert torch.equal(weights(ROTATIONS, plan=told), weights(ROTATIONS, plan=plan))
    assert torch.equal(weights(both, plan=plan), weights(ROTATIONS, plan=plan))
    learnt = weights(both, plan=told)
    assert not torch.equal(learnt, weights(both, plan=plan))
    assert torch.equal(learnt, weights(both, plan=told))  # kept apart from the others, and found again


def test_what_cannot_be_learnt_is_refused():
    with pytest.raises(InputError, match="needs labels"):
        Pretraining("classes", observed=True)
    with pytest.raises(InputError, match="no labels to share"):
        Pretraining("rotations", mix=0.5)
    with pytest.raises(InputError, match="only images can be turned"):
        pretrain(KNOWN, Plan(3, 1), replace(ROTATIONS, network="mlp"))
