"""The transductive forms of clustering in an embedding."""

import pytest
import torch
from torch import Tensor

from medi.data.imageset import ImageSet
from medi.methods import Plan
from medi.methods.embedding import EmbeddingLearner, Grouping, JointGrouping, group_means
from medi.metrics import score_episodes

WAY, OBSERVED, ASKED, EPISODES = 3, 1, 10, 20


def groups(each: int) -> Tensor:
    return torch.arange(WAY).repeat_interleave(each).repeat(EPISODES, 1)


def a_pool(distance: float = 3.0) -> tuple[Tensor, Tensor, Tensor]:
    """Features of items around class means, and episodes of observed and of asked items."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.cat([groups(OBSERVED), groups(ASKED)], 1)
    means = distance * torch.nn.functional.normalize(torch.randn(EPISODES, WAY, 8, generator=generator), dim=2)
    noise = torch.randn(*labels.shape, 8, generator=generator)
    features = means.gather(1, labels[:, :, None].expand(-1, -1, 8)) + noise
    places = torch.arange(labels.numel()).view(labels.shape)
    return features.flatten(0, 1), places[:, : WAY * OBSERVED], places[:, WAY * OBSERVED :]


def clustering_of(grouping: Grouping, pool: Tensor, bag: Tensor):
    known = ImageSet(pool, torch.arange(len(pool)) % 4, tuple("abcd"))
    learner = EmbeddingLearner(lambda items: items, known, Plan(WAY, OBSERVED, equal_sizes=True), grouping)
    return learner.discover(pool, bag, WAY, torch.Generator().manual_seed(0))


def accuracy(labels: Tensor) -> float:
    return float(score_episodes(groups(ASKED).numpy(), labels.numpy()).acc.mean())


@pytest.mark.parametrize("neighbours", [0, 4])
def test_clustering_everything_anew_gives_equal_sizes_and_beats_assigning_one_by_one(neighbours):
    pool, bag, items = a_pool()
    clustering = clustering_of(JointGrouping(balanced=True, neighbours=neighbours), pool, bag)
    found = clustering.refine(pool, items, equal_sizes=True)
    alone = clustering.assign(pool, items)
    assert accuracy(found.labels) > accuracy(alone.labels) + 0.02
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()
    sizes = torch.nn.functional.one_hot(found.labels, WAY).sum(1)
    # Together with the observations, which may all be in one cluster, they are equal.
    assert (sizes >= ASKED + OBSERVED - WAY * OBSERVED).all()


def test_numbers_are_those_of_the_clusters_that_share_most_observations():
    pool, bag, items = a_pool(distance=30.0)
    clustering = clustering_of(JointGrouping(balanced=True), pool, bag)
    found = clustering.refine(pool, items, equal_sizes=True)
    assert torch.equal(found.labels, clustering.assign(pool, items).labels)


@pytest.mark.parametrize(("balanced", "equal_sizes"), [(False, True), (True, False)])
def test_sizes_that_are_not_known_to_be_equal_are_not_made_so(balanced, equal_sizes):
    pool, bag, items = a_pool()
    found, plain = (
        clustering_of(grouping, pool, bag).refine(pool, items, equal_sizes=equal_sizes)
        for grouping in (JointGrouping(balanced=balanced), Grouping(balanced=balanced))
    )
    assert torch.equal(found.labels, plain.labels)
    assert torch.equal(found.confidence, plain.confidence)


def test_group_means_are_those_of_loops_and_zero_for_an_empty_group():
    points = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[0, 2, 0, 2, 2], [1, 1, 0, 0, 2]])
    means = group_means(points, labels, 3)
    for episode in range(2):
        for group in range(3):
            members = points[episode, labels[episode] == group]
            expected = members.mean(0) if len(members) else torch.zeros(3)
            assert torch.allclose(means[episode, group], expected)
