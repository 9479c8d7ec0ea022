"""The method `medi`: members, seeds, and what is shared."""

from dataclasses import replace

import pytest
import torch
from small_sets import KNOWN, blobs, generator, patterns

from medi.core.errors import InputError
from medi.data.benchmarks import Benchmark
from medi.data.facts import BENCHMARKS
from medi.methods import Plan
from medi.methods.medi import BETWEEN_MEMBERS, Medi, Member
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
