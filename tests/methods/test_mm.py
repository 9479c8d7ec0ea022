"""MM's training: what it teaches, what it begins with and goes on from, and what it says where it fails."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_sets import blobs, generator, patterns

from medi.core.errors import InputError
from medi.core.files import read_journal
from medi.core.tensors import load_arrays
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods import Plan, mm
from medi.methods.cata_views import ViewsConfig
from medi.methods.inner_steps import InnerSteps
from medi.methods.mm import MM, hold_out
from medi.methods.pretraining import Pretraining, pretrain
from medi.metrics import score_episodes
from medi.nn.context import Context
from medi.nn.schedule import Schedule
from medi.tasks.episodes import UniformSampler

QUICK = MM(network="mlp", inner=InnerSteps(steps=3, rate=0.1, top=3), tasks=4, schedule=Schedule(steps=3))
KNOWN, PLAN = blobs(6), Plan(3, 3, queries=5)


def hidden_in_noise(plain: ImageSet) -> ImageSet:
    """The same classes with 24 dimensions of strong noise beside theirs, which a network can learn to ignore."""
    noise = 3 * torch.randn(len(plain), 24, generator=generator(9))
    return replace(plain, images=torch.cat([plain.images, noise], 1))


def test_training_makes_the_steps_end_in_better_clusters_than_they_did_before():
    known, novel = (hidden_in_noise(blobs(40, seed=seed)) for seed in (0, 50))
    task = UniformSampler(novel.labels, 3, 5, 10).sample(40, generator())
    bag, query = task.support.flatten(1), task.query.flatten(1)

    def found(steps: int) -> float:
        method = replace(QUICK, tasks=8, schedule=Schedule(steps=steps, rate=5e-3, shape="constant"))
        clustering = method.fit(known, Plan(3, 5, queries=10)).discover(novel.images, bag, 3, generator())
        return float(score_episodes(task.query_labels, clustering.assign(novel.images, query).labels).acc.mean())

    assert found(30) > found(1) + 0.05


def test_without_steps_the_learner_is_where_pretraining_ended_now_and_when_asked_again(tmp_path):
    plan = replace(PLAN, context=Context(folder=tmp_path))
    before = Pretraining("prototypes", "mlp", batch=60, schedule=Schedule(steps=5))
    still = replace(QUICK, pretraining=before, schedule=Schedule(steps=0), readout="cluster")
    first, again = still.fit(KNOWN, plan), still.fit(KNOWN, plan)
    started = dict(pretrain(KNOWN, plan, before).named_parameters())
    for name, value in first.model.body.named_parameters():
        assert torch.equal(value, started[name]), name
    for name, value in first.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name
    assert not list(tmp_path.glob("mm-*.safetensors"))
    bag = torch.tensor([[0, 1, 2, 25, 26, 27, 50, 51, 52]])
    adapted = first.discover(KNOWN.images, bag, 3, generator()).adapted
    assert not torch.allclose(adapted.parameters["head.weight"][0], first.model.head.weight)  # the steps are taken


def test_turned_copies_of_known_classes_are_classes_of_their_own(tmp_path):
    known = patterns(classes=2, each=8)
    for rotations, way in ((False, 2), (True, 4)):
        folder = tmp_path / str(rotations)
        replace(QUICK, rotations=rotations).fit(known, Plan(4, 3, queries=5, context=Context(folder=folder)))
        [checkpoint] = folder.glob("mm-*.safetensors")
        assert load_arrays(checkpoint)[1]["identity"]["task"]["way"] == way


def logged(folder: Path, key: str) -> list[tuple[int, float]]:
    (log,) = folder.glob("mm-*.jsonl")
    return [(row["step"], row[key]) for row in read_journal(log) if key in row]


def test_discovery_on_held_out_known_classes_is_logged_every_200_tasks_and_chooses_nothing(tmp_path, monkeypatch):
    known, plan = blobs(20), replace(PLAN, context=Context(folder=tmp_path))
    monkeypatch.setattr(mm, "WATCHED_CLASSES", 0.2)
    method = replace(QUICK, inner=InnerSteps(steps=1), tasks=40, schedule=Schedule(steps=12))
    learner = method.fit(known, plan)
    rows = logged(tmp_path, "held_out_acc")
    assert [step for step, _ in rows] == [5, 10, 12]
    assert all(0 <= score <= 1 for _, score in rows)
    monkeypatch.setattr("medi.methods.mm.WATCH_EVERY_TASKS", 10**9)
    unwatched = method.fit(known, PLAN)
    for name, value in learner.model.state_dict().items():
        assert torch.equal(value, unwatched.model.state_dict()[name])


@pytest.mark.parametrize(
    ("classes", "way", "share", "count"), [(5, 5, 0.2, 0), (80, 20, 0.05, 0), (100, 20, 0.05, 20), (964, 20, 0.05, 48)]
)
def test_classes_are_held_out_only_where_enough_are_left(classes, way, share, count):
    learnt, watched = hold_out(blobs(classes, each=1), share, way, seed=0)
    assert (watched.n_classes if watched else 0) == count
    assert learnt.n_classes == classes - count
    assert not (watched and set(learnt.class_names) & set(watched.class_names))


@pytest.mark.parametrize(
    "changed",
    [
        {"inner": InnerSteps(steps=4, rate=0.1, top=3)},
        {"inner": InnerSteps(steps=3, rate=0.05, top=3)},
        {"inner": InnerSteps(steps=3, rate=0.1, top=256)},
        {"inner": InnerSteps(steps=3, rate=0.1, top=3, precision="bfloat16")},
        {"outer_pairs": "rank"},
        {"prototypes": 1.0},
        {"tasks": None},
        {"over_tasks": "sum", "schedule": Schedule(steps=3, optimiser="plain-sgd")},
        {"pretraining": Pretraining(network="mlp", batch=16, schedule=Schedule(steps=1))},
        {"schedule": Schedule(steps=2, optimiser="sgd", rate=0.4, clip=1.0)},
    ],
    ids=str,
)
def test_every_setting_gives_another_training(changed):
    before, after = (
        torch.cat([value.detach().flatten() for value in method.fit(KNOWN, PLAN).model.parameters()])
        for method in (QUICK, replace(QUICK, **changed))
    )
    assert after.isfinite().all()
    assert not torch.equal(before, after)


def test_a_step_on_the_sum_over_tasks_goes_as_many_times_as_far_as_on_their_mean():
    def moved(over_tasks: str, rate: float) -> torch.Tensor:
        schedule = Schedule(steps=1, rate=rate, optimiser="plain-sgd", shape="constant", precision="float32")
        method = replace(QUICK, tasks=5, over_tasks=over_tasks, schedule=schedule)
        learner = method.fit(KNOWN, PLAN)
        return torch.cat([value.detach().flatten() for value in learner.model.parameters()])

    start = moved("mean", 0.0)
    of_mean, of_sum = moved("mean", 0.1) - start, moved("sum", 0.1) - start
    assert of_mean.norm() > 1e-3
    assert torch.allclose(of_sum, 5 * of_mean, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("sampler", ["uniform", "cata"])
def test_tasks_of_images_are_drawn_by_either_sampler(sampler):
    known = patterns(channels=1)
    views = ViewsConfig(network="mlp", schedule=Schedule(steps=2), batch=16)
    plan = Plan(2, 2, queries=3, sampler=sampler, views=views, augmentation=Augmentation(crop=1))
    learner = MM(inner=InnerSteps(steps=1), tasks=2, schedule=Schedule(steps=1)).fit(known, plan)
    assert learner.discover(known.images, torch.tensor([[0, 1, 4, 5]]), 2, generator()).labels.shape == (1, 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pretraining": Pretraining(network="resnet18")}, "a resnet18 cannot become a conv4: give both"),
        ({"prototypes": -1.0}, "prototypes=-1: give the weight"),
        ({"prototypes": float("nan")}, "prototypes=nan: give the weight"),
        ({"schedule": Schedule(steps=0)}, "without steps and without pretraining nothing is learnt"),
        (
            {
                "pretraining": Pretraining(network="conv4"),
                "schedule": Schedule(steps=0),
                "inner": InnerSteps(steps=0),
                "readout": "head",
            },
            "reads off a random head",
        ),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        MM(**settings)
