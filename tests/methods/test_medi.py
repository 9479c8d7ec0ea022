"""The method `medi`: members, seeds, and what is shared."""

from dataclasses import replace

import pytest
import torch
from small_sets import KNOWN, blobs, generator, patterns

from medi.core.errors import InputError
from medi.data.benchmarks import Benchmark
from medi.data.facts import BENCHMARKS
from medi.data.imageset import ImageSet
from medi.methods import Plan
from medi.methods.medi import BETWEEN_MEMBERS, MOST_SPLICED, Medi, Member, with_extra_classes
from medi.methods.pretraining import Pretraining
from medi.nn.context import Context
from medi.nn.schedule import Schedule

SHORT = Schedule(steps=2)
CLASSES = Member((Pretraining(network="mlp", batch=16, schedule=SHORT),), "none")
TASKS = Member((Pretraining("prototypes", "mlp", batch=18, schedule=SHORT),), "none")


def test_later_items_have_the_numbers_of_the_observations_clusters():
    longer = Member((replace(CLASSES.stages[0], schedule=Schedule(steps=40)),), "none")
    novel = blobs(4, seed=7)
    learner = Medi((longer, longer)).fit(KNOWN, Plan(way=4, observations=3))
    encoded = learner.encode(novel.images)
    items = torch.cat([torch.arange(c * 25, c * 25 + 3) for c in range(4)])[None]
    clustering = learner.discover(encoded, items, 4, generator(), equal_sizes=True)
    found = clustering.labels[0].view(4, 3)
    assert (found == found[:, :1]).all()
    assert len(found[:, 0].unique()) == 4
    for later in (clustering.assign(encoded, items + 3), clustering.refine(encoded, items + 3, equal_sizes=True)):
        assert torch.equal(later.labels, clustering.labels)
        assert ((later.confidence >= 0) & (later.confidence <= 1)).all()


def test_a_member_is_trained_once_whatever_ensemble_it_is_in(tmp_path):
    plan = Plan(3, 2, context=Context(seed=4, folder=tmp_path))
    for members in ((CLASSES,), (TASKS,), (CLASSES, TASKS), (CLASSES, CLASSES), (TASKS, CLASSES, CLASSES)):
        learner = Medi(members).fit(KNOWN, plan)
        assert learner.encode(KNOWN.images[:5]).shape == (5, 256 * len(members))
        assert learner.network == "+".join(["mlp"] * len(members))
    assert len(list(tmp_path.glob("*.safetensors"))) == 3


def test_equal_members_have_seeds_of_their_own(monkeypatch):
    seeds = []
    learn = Member.learn
    monkeypatch.setattr(
        Member, "learn", lambda self, known, plan: seeds.append(plan.context.seed) or learn(self, known, plan)
    )
    Medi((CLASSES, TASKS, CLASSES, CLASSES)).fit(KNOWN, Plan(3, 2, context=Context(seed=4)))
    assert seeds == [4, 4, 4 + BETWEEN_MEMBERS, 4 + 2 * BETWEEN_MEMBERS]


def shortened(method: Medi, network: str) -> Medi:
    """A step of each stage of a single member, on a small network."""
    member = method.members[0]
    stages = tuple(replace(stage, network=network, batch=8, way=3, schedule=SHORT) for stage in member.stages)
    return replace(method, members=(replace(member, stages=stages),))


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100", "svhn", "omniglot"])
def test_presets_fit_the_images_of_their_benchmark(dataset):
    facts = BENCHMARKS[dataset]
    known = patterns(classes=3, each=4, channels=facts.channels, side=32)
    plan = Plan.of(Benchmark(facts, known, known), 1)
    learner = shortened(Medi.preset("default", dataset), "conv4").fit(known, plan)
    assert learner.encode(known.images[:2]).isfinite().all()


def test_settings_for_images_teach_vectors_without_what_only_images_have():
    learner = shortened(Medi.preset("cifar10"), "resnet18").fit(KNOWN, Plan(3, 2))
    assert learner.network == "mlp"
    assert learner.encode(KNOWN.images[:5]).shape == (5, 256)


def test_a_member_has_to_learn_something():
    with pytest.raises(InputError, match="learns nothing"):
        Member(())


def some_known(classes: int = 4, each: int = 6) -> ImageSet:
    """Every image has one value all over, so that a half of it tells which image it came from."""
    count = classes * each
    images = torch.arange(count, dtype=torch.uint8)[:, None, None, None].expand(count, 3, 8, 8).clone()
    return ImageSet(images, torch.arange(count) % classes, tuple("abcdefghijklmnopqrstuvwxyz"[:classes]))


def test_turned_classes_are_four_for_each_known_one():
    known = some_known()
    assert with_extra_classes(known, "none") is known
    turned = with_extra_classes(known, "turned")
    assert turned.n_classes == 16
    assert torch.equal(turned.images, known.with_rotations().images)


def test_spliced_classes_show_the_upper_half_of_one_class_on_the_lower_half_of_another():
    known = some_known()
    extra = with_extra_classes(known, "spliced")
    assert extra.n_classes == 4 * 16
    assert len(extra) == 4 * (24 + 12 * 6)
    assert torch.equal(extra.images[:24], known.images)
    assert torch.equal(extra.labels[:24], known.labels)
    pairs = {}
    for image, label in zip(extra.images[24:96], extra.labels[24:96].tolist(), strict=True):
        top, bottom = image[:, :4].unique(), image[:, 4:].unique()
        assert len(top) == len(bottom) == 1
        pair = (int(top) % 4, int(bottom) % 4)  # the class of a value is its remainder
        assert pairs.setdefault(label, pair) == pair
        assert extra.class_names[label] == f"{'abcd'[pair[0]]} on {'abcd'[pair[1]]}"
    assert len(set(pairs.values())) == 12
    assert all(above != below for above, below in pairs.values())
    upper = [int(image[0, 0, 0]) for image in extra.images[24:96]]
    assert sorted(upper) == sorted(3 * list(range(24))), "every image is the upper half of every pair once"


def test_splicing_leaves_out_images_without_a_class_and_classes_without_images():
    known = some_known(3)
    without = replace(known, labels=torch.where(known.labels == 2, -1, known.labels))
    extra = with_extra_classes(without, "spliced")
    assert extra.n_classes == 4 * (3 + 2)
    assert len(extra) == 4 * (18 + 12)


def test_too_many_classes_to_splice_are_refused():
    with pytest.raises(InputError, match="too many to splice"):
        with_extra_classes(some_known(MOST_SPLICED + 1, 1), "spliced")
