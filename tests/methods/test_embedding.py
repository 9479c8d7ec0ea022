"""Clustering in an embedding: confidence, balance, and the transductive forms. K-means on vectors embeds nothing."""

import pytest
import torch
from small_sets import KNOWN, generator
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from medi.core.errors import InputError
from medi.data.imageset import ImageSet
from medi.methods import Plan
from medi.methods.embedding import GroupingConfig, best_temperature
from medi.methods.kmeans import KMeans
from medi.metrics import score_episodes

WAY, OBSERVED, ASKED, EPISODES = 3, 1, 10, 20


def groups(each: int) -> Tensor:
    return torch.arange(WAY).repeat_interleave(each).repeat(EPISODES, 1)


def a_pool(distance: float = 3.0) -> tuple[Tensor, Tensor, Tensor]:
    """Items around class means, and episodes of observed and of asked items."""
    labels = torch.cat([groups(OBSERVED), groups(ASKED)], 1)
    means = distance * normalize(torch.randn(EPISODES, WAY, 8, generator=generator()), dim=2)
    noise = torch.randn(*labels.shape, 8, generator=generator(1))
    items = means.gather(1, labels[:, :, None].expand(-1, -1, 8)) + noise
    places = torch.arange(labels.numel()).view(labels.shape)
    return items.flatten(0, 1), places[:, : WAY * OBSERVED], places[:, WAY * OBSERVED :]


def clustering_of(grouping: GroupingConfig, pool: Tensor, bag: Tensor):
    known = ImageSet(pool, torch.arange(len(pool)) % 4, tuple("abcd"))
    learner = KMeans(grouping=grouping).fit(known, Plan(WAY, OBSERVED))
    return learner.discover(learner.encode(pool), bag, WAY, generator(), equal_sizes=grouping.balanced)


def accuracy(labels: Tensor) -> float:
    return float(score_episodes(groups(ASKED).numpy(), labels.numpy()).acc.mean())


@pytest.mark.parametrize("neighbours", [0, 4])
def test_clustering_everything_anew_gives_equal_sizes_and_beats_assigning_one_by_one(neighbours):
    pool, bag, items = a_pool()
    clustering = clustering_of(GroupingConfig(balanced=True, recluster=True, neighbours=neighbours), pool, bag)
    found = clustering.refine(pool, items, equal_sizes=True)
    assert accuracy(found.labels) > accuracy(clustering.assign(pool, items).labels) + 0.02
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()
    # Together with the observations, which may all be in one cluster, clusters are equally large.
    assert (one_hot(found.labels, WAY).sum(1) >= ASKED + OBSERVED - WAY * OBSERVED).all()


def test_numbers_are_those_of_the_clusters_that_share_most_observations():
    pool, bag, items = a_pool(distance=30.0)
    clustering = clustering_of(GroupingConfig(balanced=True, recluster=True), pool, bag)
    assert torch.equal(clustering.refine(pool, items, equal_sizes=True).labels, clustering.assign(pool, items).labels)


def test_sizes_that_are_not_known_to_be_equal_are_not_made_so():
    pool, bag, items = a_pool()
    found, plain = (
        clustering_of(GroupingConfig(True, recluster=recluster), pool, bag).refine(pool, items, equal_sizes=False)
        for recluster in (True, False)
    )
    assert torch.equal(found.labels, plain.labels)
    assert torch.equal(found.confidence, plain.confidence)


def test_points_of_unit_length_are_compared_by_direction_alone():
    pool, bag, items = a_pool()
    longer = pool * torch.rand(len(pool), 1, generator=generator()) + pool
    one, other = (clustering_of(GroupingConfig(unit=True), some, bag).assign(some, items) for some in (pool, longer))
    assert torch.equal(one.labels, other.labels)
    assert torch.allclose(one.confidence, other.confidence, atol=1e-4)


def test_confidence_is_a_probability_and_falls_between_two_groups():
    learner = KMeans().fit(KNOWN, Plan(2, 3))
    bag = [0, 1, 2, 30, 31, 32]
    encoded = torch.cat([KNOWN.images, KNOWN.images[bag].mean(0, keepdim=True)])
    clustering = learner.discover(encoded, torch.tensor([bag]), 2, generator())
    near, between = clustering.assign(encoded, torch.tensor([[3, len(KNOWN)]])).confidence[0]
    assert float(between) == pytest.approx(0.5, abs=1e-3)
    assert 0.9 < float(near) <= 1
    assert ((clustering.confidence >= 0) & (clustering.confidence <= 1)).all()


def test_the_best_temperature_is_the_likeliest_on_a_grid_and_never_colder_than_round_classes():
    labels = torch.arange(200) % 3
    distances = 9 * torch.rand(200, 3, generator=generator()) + 3 - 3 * one_hot(labels, 3)

    def loss(temperature: float) -> float:
        return float(torch.nn.functional.cross_entropy(-distances / temperature, labels))

    found = best_temperature(distances, labels, width=1000)
    assert all(loss(found) <= loss(found * factor) for factor in (0.7, 1.4))
    apart = 100 - 99 * one_hot(labels, 3).float()
    assert best_temperature(apart, labels, width=4) == pytest.approx(2 / 4)


def test_a_known_class_with_one_image_or_none_labelled_does_no_harm():
    single = ImageSet(
        torch.cat([KNOWN.images, torch.zeros(3, 8)]),
        torch.cat([KNOWN.labels, torch.tensor([8, -1, -1])]),
        (*KNOWN.class_names, "rare"),
    )
    clustering = (
        KMeans().fit(single, Plan(3, 5)).discover(single.images, torch.tensor([[0, 1, 30, 31]]), 2, generator())
    )
    assert clustering.confidence.isfinite().all()
    with pytest.raises(InputError, match="two images"):
        KMeans().fit(ImageSet(torch.randn(2, 4), torch.tensor([0, 1]), ("a", "b")), Plan(2, 1))


def test_the_oracle_uses_the_groups_it_is_given():
    learner = KMeans().fit(KNOWN, Plan(2, 3))
    bag, groups = torch.tensor([[0, 30, 1, 31]]), torch.tensor([[0, 1, 1, 0]])
    clustering = learner.oracle(KNOWN.images, bag, groups, 2)
    expected = torch.stack([KNOWN.images[[0, 31]].mean(0), KNOWN.images[[30, 1]].mean(0)])
    nearest = torch.cdist(KNOWN.images, expected).argmin(1)
    assert torch.equal(clustering.assign(KNOWN.images, torch.arange(len(KNOWN))[None]).labels[0], nearest)
