from dataclasses import replace

import pytest
import torch

from medi.data.augment import augment
from medi.data.images import ImageSet
from medi.errors import InputError
from medi.methods import Plan
from medi.methods.inner import InnerSteps
from medi.methods.mm import MM, MMConfig
from medi.metrics import score_episodes
from medi.tasks import UniformSampler
from medi.train.loop import Desk
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

    interruptible = replace(plan, desk=Desk(folder=tmp_path, checkpoint_seconds=0))
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


def test_another_number_of_classes_than_it_was_trained_for_is_refused():
    learner = MM(QUICK).fit(blobs(), Plan(3, 3, queries=5))
    with pytest.raises(InputError, match="trained to tell 3 classes apart, not 4"):
        learner.discover(blobs().images, torch.arange(12)[None], 4, generator())
