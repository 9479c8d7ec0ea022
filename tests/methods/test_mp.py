"""MP: what training on tasks teaches, what is shared, and what is the same for the same seed."""

from dataclasses import replace

import pytest
import torch
from small_sets import KNOWN, generator, patterns

from medi.core.errors import InputError
from medi.data.imageset import ImageSet
from medi.methods import Plan
from medi.methods.cata_views import ViewsConfig
from medi.methods.embedding import as_embedding
from medi.methods.mp import MP
from medi.methods.pretraining import Pretraining, pretrain
from medi.metrics import score_episodes
from medi.nn.context import Context
from medi.nn.schedule import Schedule
from medi.tasks.episodes import UniformSampler

SMALL = MP(network="mlp", queries=4, schedule=Schedule(steps=3))
VIEWS = ViewsConfig(network="mlp", hidden=16, batch=32, schedule=Schedule(steps=5, rate=0.01))


def hidden_classes(seed: int) -> ImageSet:
    """Ten classes that differ in four dimensions, among twelve of strong noise."""
    means = torch.zeros(10, 16)
    means[:, :4] = 6 * torch.randn(10, 4, generator=generator(seed))
    labels = torch.arange(10).repeat_interleave(25)
    noise = torch.randn(250, 16, generator=generator(seed + 1)) * torch.tensor([1.0] * 4 + [6.0] * 12)
    return ImageSet(means[labels] + noise, labels, tuple("abcdefghij"))


def test_training_on_known_classes_helps_to_group_unseen_ones():
    known, novel = hidden_classes(0), hidden_classes(10)
    task = UniformSampler(novel.labels, 4, 3, 5).sample(20, generator())

    def found(steps: int) -> float:
        learner = replace(SMALL, schedule=Schedule(steps)).fit(known, Plan(way=4, observations=3))
        encoded = learner.encode(novel.images)
        clustering = learner.discover(encoded, task.support.flatten(1), 4, generator())
        answers = clustering.assign(encoded, task.query.flatten(1))
        return float(score_episodes(task.query_labels, answers.labels).acc.mean())

    assert found(100) > found(1) + 0.1


def test_tasks_of_one_view_train_it_too_and_the_views_are_found_once(tmp_path):
    plan = Plan(3, 2, sampler="cata", views=VIEWS, context=Context(folder=tmp_path))
    by_view = SMALL.fit(KNOWN, plan).encode(KNOWN.images[:5])
    uniform = SMALL.fit(KNOWN, replace(plan, sampler="uniform")).encode(KNOWN.images[:5])
    assert not torch.equal(by_view, uniform)
    replace(SMALL, schedule=Schedule(steps=4)).fit(KNOWN, plan)
    assert len(list(tmp_path.glob("cata-*.safetensors"))) == 1
    assert len(list(tmp_path.glob("mp-*.safetensors"))) == 3


def test_without_steps_pretraining_is_all_that_is_learnt():
    before, plan = Pretraining(network="mlp", batch=16, schedule=Schedule(steps=5, rate=0.01)), Plan(3, 2)
    learner = replace(SMALL, pretraining=before, schedule=Schedule(steps=0)).fit(KNOWN, plan)
    network = pretrain(KNOWN, plan, before)
    assert torch.equal(learner.encode(KNOWN.images[:10]), as_embedding(network, torch.device("cpu"))(KNOWN.images[:10]))
    with pytest.raises(InputError, match="without steps and without pretraining nothing is learnt"):
        replace(SMALL, schedule=Schedule(steps=0))


def test_turned_classes_are_trained_on_but_not_counted_at_discovery():
    method = MP(rotations=True, way=14, queries=2, schedule=Schedule(steps=1))
    learner = method.fit(patterns(), Plan(4, 2))  # 14-way tasks need the 16 turned classes
    assert learner.encode(patterns().images[:3]).shape == (3, 64)


@pytest.mark.parametrize("network", [{"network": "conv4"}, {"network": "mlp", "embedding": 9}])
def test_what_was_pretrained_has_to_be_the_same_network(network):
    with pytest.raises(InputError, match=r"a mlp cannot become a .* give both the same network"):
        MP(**network, pretraining=Pretraining(network="mlp"))
