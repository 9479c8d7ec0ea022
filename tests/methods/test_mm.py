import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from medi.__main__ import main
from medi.data.augment import augment
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods import Plan, mm, mm_clusters
from medi.methods.cata_views import ViewsConfig
from medi.methods.inner_steps import InnerSteps
from medi.methods.mm import MM, MMConfig, hold_out
from medi.methods.pretraining import Start, started
from medi.metrics import score_episodes
from medi.runtime.context import Context
from medi.runtime.files import read_journal
from medi.tasks import UniformSampler
from medi.train.checkpoint import load_checkpoint
from medi.train.schedule import Schedule

QUICK = MMConfig(network="mlp", inner=InnerSteps(steps=3, rate=0.1, top=3), tasks=4, schedule=Schedule(steps=3))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(classes: int = 6, each: int = 25, seed: int = 0) -> ImageSet:
    means = 3 * torch.randn(classes, 8, generator=generator(seed))
    items = means.repeat_interleave(each, 0) + torch.randn(classes * each, 8, generator=generator(seed + 1))
    return ImageSet(items, torch.arange(classes).repeat_interleave(each), tuple(map(str, range(classes))))


def hidden_in_noise(plain: ImageSet) -> ImageSet:
    """The same classes with 24 dimensions of strong noise beside theirs, which a network can learn to ignore."""
    noise = 3 * torch.randn(len(plain), 24, generator=generator(9))
    return replace(plain, images=torch.cat([plain.images, noise], 1))


def test_queries_are_answered_on_their_own():
    known = blobs()
    learner = MM(QUICK).fit(known, Plan(3, 3, queries=5))
    bag = torch.tensor([[0, 1, 2, 25, 26, 27, 50, 51, 52]])
    clustering = learner.discover(known.images, bag, 3, generator())
    queries = torch.tensor([[5, 30, 60, 6, 31]])
    together = clustering.assign(known.images, queries)
    for i in range(5):
        alone = clustering.assign(known.images, queries[:, i : i + 1])
        assert torch.allclose(alone.confidence, together.confidence[:, i : i + 1], atol=1e-5)
    assert clustering.refine(known.images, queries).labels.shape == (1, 5)


def test_training_makes_the_steps_end_in_better_clusters_than_they_did_before():
    known, novel = (hidden_in_noise(blobs(40, seed=seed)) for seed in (0, 50))
    task = UniformSampler(novel.labels, 3, 5, 10).sample(40, generator())
    bag, query = task.support.flatten(1), task.query.flatten(1)

    def found(steps: int) -> float:
        schedule = Schedule(steps=steps, rate=3e-3, shape="constant")
        learner = MM(replace(QUICK, inner=InnerSteps(steps=5, rate=0.1, top=3), tasks=8, schedule=schedule)).fit(
            known, Plan(3, 5, queries=10)
        )
        clustering = learner.discover(novel.images, bag, 3, generator())
        return float(score_episodes(task.query_labels, clustering.assign(novel.images, query).labels).acc.mean())

    assert found(60) > found(1) + 0.05


def test_training_begins_where_the_start_ended_and_every_setting_shares_that_start(tmp_path):
    known, plan = blobs(), Plan(3, 3, queries=5, context=Context(folder=tmp_path))
    start = Start("prototypes", "mlp", batch=60, schedule=Schedule(steps=5))
    network, _ = started(known, start, plan)
    still = replace(QUICK, start=start, schedule=Schedule(steps=1, rate=1e-12))
    for prototypes in (0.0, 1.0):
        learner = MM(replace(still, prototypes=prototypes)).fit(known, plan)
        for name, value in network.named_parameters():
            assert torch.allclose(dict(learner.model.body.named_parameters())[name], value, atol=1e-6)
    assert len(list(tmp_path.glob("prototypes-*.safetensors"))) == 1


def test_classes_that_are_held_out_for_the_log_are_no_part_of_the_start(monkeypatch):
    seen = []
    monkeypatch.setattr(mm, "started", lambda known, config, plan: seen.append(known) or started(known, config, plan))
    start = Start("prototypes", "mlp", batch=60, schedule=Schedule(steps=1))
    MM(replace(QUICK, start=start, held_out=0.5)).fit(blobs(16), Plan(2, 3, queries=5))
    assert seen[0].n_classes == 8  # half of sixteen


def test_turned_copies_of_known_classes_are_classes_of_their_own(tmp_path):
    drawings = torch.randint(0, 256, (40, 1, 8, 8), generator=generator(), dtype=torch.uint8)
    known = ImageSet(drawings, torch.arange(2).repeat_interleave(20), ("a", "b"))
    for rotations, way in ((False, 2), (True, 4)):
        folder = tmp_path / str(rotations)
        MM(replace(QUICK, rotations=rotations)).fit(known, Plan(4, 3, queries=5, context=Context(folder=folder)))
        [checkpoint] = folder.glob("mm-*.safetensors")
        assert load_checkpoint(checkpoint)[1]["settings"]["task"]["way"] == way


def test_the_oracle_goes_by_the_groups_it_is_given():
    known = blobs()
    learner = MM(QUICK).fit(known, Plan(2, 3, queries=5))
    bag, groups = torch.tensor([[0, 1, 25, 26]]), torch.tensor([[0, 0, 1, 1]])
    right, wrong = (learner.oracle(known.images, bag, g, 2) for g in (groups, groups[:, [0, 2, 1, 3]]))
    assert not torch.allclose(right.confidence, wrong.confidence)


def test_an_interrupted_training_continues_bit_for_bit(tmp_path, monkeypatch):
    known, plan = blobs(), Plan(3, 3, queries=5)
    long = replace(QUICK, schedule=Schedule(steps=30))
    whole = MM(long).fit(known, plan)
    calls = 0
    real = augment

    def interrupted(*arguments):
        nonlocal calls
        calls += 1
        if calls == 28:
            raise KeyboardInterrupt
        return real(*arguments)

    interruptible = replace(plan, context=Context(folder=tmp_path, checkpoint_seconds=0))
    monkeypatch.setattr("medi.methods.mm.augment", interrupted)
    with pytest.raises(KeyboardInterrupt):
        MM(long).fit(known, interruptible)
    monkeypatch.undo()
    continued = MM(long).fit(known, interruptible)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, continued.model.state_dict()[name]), name


def test_a_diverging_training_stops_with_the_step_and_both_rates():
    wild = replace(QUICK, inner=InnerSteps(steps=3, rate=1e30), schedule=Schedule(steps=50, rate=1e3))
    with pytest.raises(
        InputError, match=r"mm diverged before step .* learning rate 1000: .* inner steps had rate 1e\+30"
    ):
        MM(wild).fit(blobs(), Plan(3, 3, queries=5))


def test_the_last_good_checkpoint_outlives_a_divergence(tmp_path, monkeypatch):
    calls = 0

    def poisoned(*arguments):
        nonlocal calls
        calls += 1
        return augment(*arguments) * (float("nan") if calls == 40 else 1.0)

    monkeypatch.setattr("medi.methods.mm.augment", poisoned)
    plan = Plan(3, 3, queries=5, context=Context(folder=tmp_path, checkpoint_seconds=0))
    with pytest.raises(InputError, match=r"mm diverged before step 50 at learning rate 0\.001"):
        MM(replace(QUICK, schedule=Schedule(steps=100))).fit(blobs(), plan)
    (path,) = tmp_path.glob("mm-*.safetensors")
    tensors, facts = load_checkpoint(path)
    assert facts["step"] == 25
    assert all(tensor.isfinite().all() for name, tensor in tensors.items() if name.startswith("model/"))


def test_a_divergence_ends_the_program_with_code_2_and_one_line(tmp_path, monkeypatch, capsys):
    wild = replace(QUICK, inner=InnerSteps(steps=2, rate=1e30), schedule=Schedule(steps=2))
    monkeypatch.setattr(MM, "configs", {**MM.presets, "wild": wild})
    options = "--dataset glyphs --method mm --config wild --way 2 --observations 1 --seeds 1 --episodes 2 --device cpu"
    monkeypatch.setattr(sys, "argv", ["medi", "bench", "run", *options.split(), "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert "mm diverged before step 2 at learning rate 0.001" in last
    assert "inner steps had rate 1e+30" in last


def test_another_number_of_classes_than_it_was_trained_for_is_refused():
    learner = MM(QUICK).fit(blobs(), Plan(3, 3, queries=5))
    with pytest.raises(InputError, match="head was trained to tell 3 classes apart, not 4"):
        learner.discover(blobs().images, torch.arange(12)[None], 4, generator())


def test_clusters_of_the_embedding_can_be_more_or_fewer_than_the_head_has_outputs():
    known, novel = blobs(20), blobs(6, seed=70)
    learner = MM(replace(QUICK, readout="cluster")).fit(known, Plan(3, 3, queries=5))
    for k in (2, 6):
        task = UniformSampler(novel.labels, k, 4, 5).sample(10, generator())
        found = learner.discover(novel.images, task.support.flatten(1), k, generator())
        answer = found.assign(novel.images, task.query.flatten(1)).labels
        assert float(score_episodes(task.query_labels, answer).acc.mean()) > 0.8


@pytest.mark.parametrize("readout", ["head", "cluster"])
def test_of_a_large_bag_a_part_is_adapted_to_and_the_rest_answered(monkeypatch, readout):
    known = blobs()
    learner = MM(replace(QUICK, readout=readout)).fit(known, Plan(3, 3, queries=5))
    bag = torch.arange(75)[None]  # three classes of 25
    groups = known.labels[:75][None]
    whole = learner.discover(known.images, bag, 3, generator())
    monkeypatch.setattr(mm, "MOST_ADAPTED", 30)
    monkeypatch.setattr(mm_clusters, "HEAP", 10)
    for part in (learner.discover(known.images, bag, 3, generator()), learner.oracle(known.images, bag, groups, 3)):
        assert part.adapted.observations.shape[1] == 30
        assert part.labels.shape == part.confidence.shape == bag.shape
        assert torch.equal(part.labels, part.assign(known.images, bag).labels)
        assert part.refine(known.images, torch.arange(75, 90)[None]).labels.shape == (1, 15)
        if readout == "cluster":
            assert score_episodes(whole.labels, part.labels).acc.item() > 0.9


def test_many_questions_are_answered_as_few_are(monkeypatch):
    known = blobs()
    learner = MM(replace(QUICK, readout="cluster")).fit(known, Plan(3, 3, queries=5))
    clustering = learner.discover(known.images, torch.tensor([[0, 1, 25, 26, 50, 51]]), 3, generator())
    questions = torch.arange(100)[None]
    at_once = clustering.assign(known.images, questions)
    monkeypatch.setattr(mm_clusters, "HEAP", 7)
    in_heaps = clustering.assign(known.images, questions)
    assert torch.equal(at_once.labels, in_heaps.labels)
    assert torch.allclose(at_once.confidence, in_heaps.confidence, atol=1e-5)


CLOSE = Plan(3, 4, queries=5, equal_sizes=True)


def rows_of(folder: Path, key: str) -> list[dict]:
    (log,) = folder.glob("mm-*.jsonl")
    return [row for row in read_journal(log) if key in row]


def test_both_readouts_share_one_training_and_find_groups_that_are_plainly_there(tmp_path):
    known, novel = blobs(20), blobs(6, seed=70)
    plan = replace(CLOSE, context=Context(folder=tmp_path))
    trained = replace(QUICK, tasks=8, schedule=Schedule(steps=40, rate=3e-3))
    task = UniformSampler(novel.labels, 3, 4, 10).sample(30, generator())
    bag, query = task.support.flatten(1), task.query.flatten(1)
    for readout, enough in (("head", 0.55), ("cluster", 0.85)):  # chance is 0.44; the head is hardly trained
        learner = MM(replace(trained, readout=readout)).fit(known, plan)
        assert learner.balanced == (readout == "cluster")
        clustering = learner.discover(novel.images, bag, 3, generator())
        answer = clustering.assign(novel.images, query)
        assert float(score_episodes(task.query_labels, answer.labels).acc.mean()) > enough
        assert (answer.confidence > 0).all()
        assert (answer.confidence <= 1).all()
        assert clustering.refine(novel.images, query, equal_sizes=True).labels.shape == query.shape
        best = learner.oracle(novel.images, bag, task.support_labels, 3).assign(novel.images, query)
        assert float(score_episodes(task.query_labels, best.labels).acc.mean()) > enough
    assert len(list(tmp_path.glob("mm-*.safetensors"))) == 1


def test_clusters_of_the_adapted_embedding_have_equal_sizes_only_where_classes_do():
    known = blobs()
    uneven = torch.tensor([[0, 1, 2, 3, 4, 5, 25, 26, 50]])
    for equal in (True, False):
        learner = MM(replace(QUICK, readout="cluster")).fit(known, replace(CLOSE, equal_sizes=equal))
        sizes = torch.bincount(learner.discover(known.images, uneven, 3, generator()).labels[0], minlength=3)
        assert sizes.tolist() == [3, 3, 3] or not equal
        assert learner.balanced == equal


def test_queries_are_assigned_to_adapted_centres_one_by_one():
    known = blobs()
    learner = MM(replace(QUICK, readout="cluster")).fit(known, CLOSE)
    clustering = learner.discover(known.images, torch.arange(0, 75, 6)[None, :12], 3, generator())
    queries = torch.tensor([[5, 31, 61, 7]])
    together = clustering.assign(known.images, queries)
    for i in range(4):
        alone = clustering.assign(known.images, queries[:, i : i + 1])
        assert torch.allclose(alone.confidence, together.confidence[:, i : i + 1], atol=1e-5)


def test_discovery_on_held_out_known_classes_is_logged_every_200_tasks_and_chooses_nothing(tmp_path):
    known, plan = blobs(20), replace(CLOSE, context=Context(folder=tmp_path))
    held = replace(QUICK, tasks=40, held_out=0.2, schedule=Schedule(steps=12))
    MM(held).fit(known, plan)
    rows = rows_of(tmp_path, "held_out_acc")
    assert [row["step"] for row in rows] == [5, 10, 12]
    assert all(0 <= row["held_out_acc"] <= 1 for row in rows)
    learnt, watched = hold_out(known, 0.2, 3, plan.context.seed)
    assert not set(learnt.class_names) & set(watched.class_names)
    assert (learnt.n_classes, watched.n_classes) == (16, 4)


def test_a_log_does_not_change_what_is_learnt(monkeypatch):
    config = replace(QUICK, tasks=40, schedule=Schedule(steps=6))
    watched = MM(config).fit(blobs(), CLOSE)
    monkeypatch.setattr("medi.methods.mm.LOOK_EVERY", 10**9)
    unwatched = MM(config).fit(blobs(), CLOSE)
    for name, value in watched.model.state_dict().items():
        assert torch.equal(value, unwatched.model.state_dict()[name])


@pytest.mark.parametrize(
    ("classes", "way", "share", "count"), [(5, 5, 0.2, 0), (80, 20, 0.05, 0), (964, 20, 0.05, 48), (964, 20, 0.0, 0)]
)
def test_classes_are_held_out_only_where_enough_are_left(classes, way, share, count):
    learnt, watched = hold_out(blobs(classes, each=1), share, way, seed=0)
    assert (watched.n_classes if watched else 0) == count
    assert learnt.n_classes == classes - count


def test_known_classes_are_watched_where_none_is_held_out(tmp_path):
    MM(replace(QUICK, held_out=0.5)).fit(blobs(4), replace(CLOSE, context=Context(folder=tmp_path)))
    assert [row["step"] for row in rows_of(tmp_path, "known_acc")] == [3]


@pytest.mark.parametrize(
    "changed",
    [
        {"inner": InnerSteps(steps=1, rate=0.05, first_order=True)},
        {"inner": InnerSteps(steps=4, rate=0.02, top=5)},
        {"inner": InnerSteps(steps=2, recompute=True)},
        {"inner": InnerSteps(steps=2, precision="bfloat16")},
        {"inner_pairs": "label"},
        {"outer_pairs": "rank"},
        {"tasks": None},
        {"embedding": 6},
        {"schedule": Schedule(steps=2, optimiser="sgd", rate=0.4, clip=1.0)},
    ],
    ids=str,
)
def test_every_setting_gives_another_training(changed):
    known = blobs()
    weights = [MM(config).fit(known, CLOSE).model.head.weight for config in (QUICK, replace(QUICK, **changed))]
    assert all(w.isfinite().all() for w in weights)
    assert weights[0].shape != weights[1].shape or not torch.equal(*weights)


def small_images(classes: int = 4, each: int = 10, side: int = 16) -> ImageSet:
    g = generator(3)
    means = torch.randint(0, 200, (classes, 1, 1, side, side), generator=g)
    images = means + torch.randint(0, 55, (classes, each, 1, side, side), generator=g)
    return ImageSet(
        images.flatten(0, 1).to(torch.uint8),
        torch.arange(classes).repeat_interleave(each),
        tuple(map(str, range(classes))),
    )


@pytest.mark.parametrize("sampler", ["uniform", "cata"])
def test_tasks_of_images_are_drawn_by_either_sampler(sampler):
    known = small_images()
    views = ViewsConfig(network="mlp", schedule=Schedule(steps=2), batch=16)
    plan = Plan(2, 2, queries=3, sampler=sampler, views=views, augmentation=Augmentation(crop=1))
    config = MMConfig(inner=InnerSteps(steps=1), tasks=2, schedule=Schedule(steps=1))
    learner = MM(config).fit(known, plan)
    assert learner.discover(known.images, torch.tensor([[0, 1, 10, 11]]), 2, generator()).labels.shape == (1, 4)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["conv4", "vgg16", "resnet18"])
def test_every_network_of_images_can_be_trained(network):
    known = small_images(side=32)
    config = MMConfig(network=network, inner=InnerSteps(steps=1), tasks=1, schedule=Schedule(steps=1))
    learner = MM(config).fit(known, Plan(2, 2, queries=2))
    assert learner.discover(known.images, torch.tensor([[0, 1, 10, 11]]), 2, generator()).labels.shape == (1, 4)


def test_steps_that_diverge_at_discovery_are_refused_with_their_rate():
    known = blobs()
    learner = MM(QUICK).fit(known, CLOSE)
    learner.config = replace(QUICK, inner=InnerSteps(steps=5, rate=1e30))
    with pytest.raises(InputError, match=r"5 inner steps of rate 1e\+30 diverged on the observations"):
        learner.discover(known.images, torch.arange(0, 75, 6)[None, :12], 3, generator())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"readout": "heads"}, "unknown readout 'heads'"),
        ({"outer_pairs": "labels"}, "unknown kind of pairs 'labels'"),
        ({"held_out": 1.0}, "no share of the known classes"),
        ({"start": Start(network="resnet18")}, "a resnet18 cannot be the start of a conv4: give both"),
        ({"start": Start(network="conv4"), "embedding": 9}, "a conv4 with an embedding of 9"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        MMConfig(**settings)
