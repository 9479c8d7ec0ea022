"""MM's discovery: both readouts, each item on its own, the oracle, large bags, and what is refused."""

from dataclasses import replace

import pytest
import torch
from small_sets import blobs, generator

from medi.core.errors import InputError
from medi.methods import Plan, mm_learner
from medi.methods.inner_steps import InnerSteps
from medi.methods.mm import MM
from medi.methods.mm_learner import MMLearner
from medi.metrics import score_episodes
from medi.nn.context import Context
from medi.nn.norm import statistics_from
from medi.nn.schedule import Schedule
from medi.tasks.episodes import UniformSampler

HEAD = MM(network="mlp", inner=InnerSteps(steps=3, rate=0.1, top=3), tasks=4, schedule=Schedule(steps=3))
CLUSTER = replace(HEAD, readout="cluster")
KNOWN, PLAN = blobs(6), Plan(3, 3, queries=5)


@pytest.fixture(scope="module", params=[HEAD, CLUSTER], ids=["head", "cluster"])
def learner(request) -> MMLearner:
    return request.param.fit(KNOWN, PLAN)


def test_queries_are_answered_on_their_own(learner):
    bag = torch.tensor([[0, 1, 2, 25, 26, 27, 50, 51, 52]])
    clustering = learner.discover(KNOWN.images, bag, 3, generator())
    queries = torch.tensor([[5, 30, 60, 6, 31]])
    together = clustering.assign(KNOWN.images, queries)
    for i in range(5):
        alone = clustering.assign(KNOWN.images, queries[:, i : i + 1])
        assert torch.equal(alone.labels, together.labels[:, i : i + 1])
        assert torch.allclose(alone.confidence, together.confidence[:, i : i + 1], atol=1e-5)
    assert clustering.refine(KNOWN.images, queries).labels.shape == (1, 5)


@pytest.mark.parametrize("method", [HEAD, CLUSTER], ids=["head", "cluster"])
def test_without_inner_steps_the_embedding_is_that_of_the_network_as_it_was_trained(method):
    learner = replace(method, inner=InnerSteps(steps=0)).fit(KNOWN, PLAN)
    bag, queries = torch.tensor([[0, 1, 25, 26, 50, 51]]), torch.tensor([[5, 30, 60]])
    adapted = learner.discover(KNOWN.images, bag, 3, generator()).adapted
    with statistics_from(learner.model, bag.shape[1]), torch.no_grad():
        plain = learner.model.body(KNOWN.images[torch.cat([bag, queries], 1)[0]])
    assert torch.allclose(adapted.embed(KNOWN.images, queries)[0], plain[bag.shape[1] :], atol=1e-5)


def test_bags_are_adapted_to_on_their_own(learner):
    bags = torch.tensor([[0, 1, 25, 26, 50, 51], [75, 76, 100, 101, 125, 126]])
    both = learner.adapt(KNOWN.images, bags).parameters
    for i in range(2):
        alone = learner.adapt(KNOWN.images, bags[i : i + 1]).parameters
        assert all(torch.allclose(alone[name][0], both[name][i], atol=1e-5) for name in both)


def test_the_oracle_goes_by_the_groups_it_is_given(learner):
    bag, groups = torch.tensor([[0, 1, 25, 26, 50, 51]]), torch.tensor([[0, 0, 1, 1, 2, 2]])
    right, wrong = (learner.oracle(KNOWN.images, bag, g, 3) for g in (groups, groups[:, [0, 2, 1, 3, 4, 5]]))
    right_head, wrong_head = (one.adapted.parameters["head.weight"] for one in (right, wrong))
    assert not torch.allclose(right_head, wrong_head, rtol=1e-3)
    if learner.readout == "cluster":
        assert torch.equal(right.labels, groups)
        assert not torch.allclose(right.centres[:, :2], wrong.centres[:, :2], rtol=1e-3)
    else:
        assert not torch.allclose(right.confidence, wrong.confidence)


def test_of_a_large_bag_a_part_is_adapted_to_and_the_rest_answered(learner, monkeypatch):
    bag = torch.arange(75)[None]  # three classes of 25
    groups = KNOWN.labels[:75][None]
    whole = learner.discover(KNOWN.images, bag, 3, generator())
    monkeypatch.setattr(mm_learner, "MOST_ADAPTED", 30)
    monkeypatch.setattr(mm_learner, "MOST_AT_ONCE", 10)
    for part in (learner.discover(KNOWN.images, bag, 3, generator()), learner.oracle(KNOWN.images, bag, groups, 3)):
        assert part.adapted.observations.shape[1] == 30
        assert part.labels.shape == part.confidence.shape == bag.shape
        assert torch.equal(part.labels, part.assign(KNOWN.images, bag).labels)
        assert part.refine(KNOWN.images, torch.arange(75, 90)[None]).labels.shape == (1, 15)
        if learner.readout == "cluster":
            assert score_episodes(whole.labels, part.labels).acc.item() > 0.9


def test_a_head_refuses_another_number_of_classes_than_it_was_trained_for():
    with pytest.raises(InputError, match="head was trained to tell 3 classes apart, not 4"):
        HEAD.fit(KNOWN, PLAN).discover(KNOWN.images, torch.arange(12)[None], 4, generator())


def test_clusters_of_the_embedding_can_be_more_or_fewer_than_the_head_has_outputs():
    known, novel = blobs(20), blobs(6, seed=70)
    learner = CLUSTER.fit(known, PLAN)
    for k in (2, 6):
        task = UniformSampler(novel.labels, k, 4, 5).sample(10, generator())
        found = learner.discover(novel.images, task.support.flatten(1), k, generator())
        answer = found.assign(novel.images, task.query.flatten(1)).labels
        assert float(score_episodes(task.query_labels, answer).acc.mean()) > 0.8


def test_both_readouts_share_one_training_and_find_groups_that_are_plainly_there(tmp_path):
    known, novel = blobs(20), blobs(6, seed=70)
    plan = Plan(3, 4, queries=5, context=Context(folder=tmp_path))
    trained = replace(HEAD, tasks=8, schedule=Schedule(steps=40, rate=3e-3))
    task = UniformSampler(novel.labels, 3, 4, 10).sample(30, generator())
    bag, query = task.support.flatten(1), task.query.flatten(1)
    for readout, enough in (("head", 0.55), ("cluster", 0.85)):  # chance is 0.44; the head is hardly trained
        learner = replace(trained, readout=readout).fit(known, plan)
        assert learner.balanced == (readout == "cluster")
        clustering = learner.discover(novel.images, bag, 3, generator(), equal_sizes=learner.balanced)
        answer = clustering.assign(novel.images, query)
        assert float(score_episodes(task.query_labels, answer.labels).acc.mean()) > enough
        assert ((answer.confidence > 0) & (answer.confidence <= 1)).all()
        assert clustering.refine(novel.images, query, equal_sizes=True).labels.shape == query.shape
        best = learner.oracle(novel.images, bag, task.support_labels, 3).assign(novel.images, query)
        assert float(score_episodes(task.query_labels, best.labels).acc.mean()) > enough
    assert len(list(tmp_path.glob("mm-*.safetensors"))) == 1


def test_clusters_of_the_adapted_embedding_have_equal_sizes_only_where_classes_do():
    uneven = torch.tensor([[0, 1, 2, 3, 4, 5, 25, 26, 50]])
    learner = CLUSTER.fit(KNOWN, PLAN)
    for equal in (True, False):
        found = learner.discover(KNOWN.images, uneven, 3, generator(), equal_sizes=equal).labels[0]
        assert sorted(torch.bincount(found, minlength=3).tolist()) == ([3, 3, 3] if equal else [1, 2, 6])


def test_a_head_that_is_told_equal_sizes_fills_every_cluster_equally():
    learner = HEAD.fit(KNOWN, PLAN)
    bag, query = torch.tensor([[0, 1, 2, 25, 26, 27, 50, 51, 52]]), torch.tensor([[3, 28, 53]])
    clustering = learner.discover(KNOWN.images, bag, 3, generator(), equal_sizes=True)
    assert torch.bincount(clustering.labels[0], minlength=3).tolist() == [3, 3, 3]
    assert sorted(clustering.refine(KNOWN.images, query, equal_sizes=True).labels[0].tolist()) == [0, 1, 2]


def test_steps_that_diverge_at_discovery_are_refused_with_their_rate():
    learner = HEAD.fit(KNOWN, PLAN)
    learner.inner = InnerSteps(steps=5, rate=1e30)
    with pytest.raises(InputError, match=r"5 inner steps of rate 1e\+30 diverged on the observations"):
        learner.discover(KNOWN.images, torch.arange(0, 75, 6)[None, :12], 3, generator())
