import numpy as np
import pytest
import torch
from worlds import gaussian_classes, none_known, split

from medi.cluster.class_model import Anchors
from medi.data.imageset import ImageSet
from medi.discovery.diagnose import distance_from_known, largest_overlap
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.discovery.held_out import choose, make_splits
from medi.discovery.points import compact, thin
from medi.discovery.rehearsal import Stage
from medi.runtime.context import Context

KMEANS = DiscoveryConfig(method="kmeans")


def diagnosed(known: ImageSet, pool: torch.Tensor, **config: object):
    return discover_groups(known, pool, DiscoveryConfig(**{"method": "kmeans"} | config), Context())[0]


def held_out(items: torch.Tensor, labels: torch.Tensor) -> Stage:
    points = items.double().numpy()
    return Stage(points, labels.numpy(), points[:0], np.zeros(0, np.int64), Anchors.none(points.shape[1]))


def test_held_out_known_classes_lie_at_distance_one_and_others_farther():
    world = gaussian_classes(30, 10)
    known, novel = split(world, 20)
    splits = make_splits(known, KMEANS, Context())
    alike = distance_from_known(splits, novel.images)
    assert alike == pytest.approx(1, abs=0.25)
    assert distance_from_known(splits, novel.images + 100) > 3


def test_overlap_is_larger_where_classes_touch():
    apart, touching = gaussian_classes(4, 20, apart=6.0), gaussian_classes(4, 20, apart=0.2)
    low, high = (largest_overlap([held_out(w.images, w.labels)]) for w in (apart, touching))
    assert low < 0.1 < high
    assert largest_overlap([]) is None
    assert largest_overlap([held_out(apart.images[:3], torch.tensor([0, 1, 2]))]) is None


def test_known_classes_that_teach_nothing_are_no_help_and_that_comes_first():
    known, novel = split(gaussian_classes(14, 8, apart=0.1), 10)
    found = diagnosed(known, novel.images)
    assert found.diagnosis.verdict == "no help"
    assert "too many of those known items came out wrong" in found.diagnosis.reasons[0]
    assert all(reason.endswith(".") for reason in found.diagnosis.reasons)


def test_the_figures_are_those_of_the_discovery():
    known, novel = split(gaussian_classes(20, 10, apart=6.0), 15)
    pool = torch.cat([novel.images, known.images[:60] + 0.01])
    found = diagnosed(known, pool, only_novel=False)
    figures = found.diagnosis
    assert figures.expected == pytest.approx(np.mean(found.confidence))
    assert figures.known_share == found.kinds.count("known") / len(pool) > 1 / 3
    assert figures.calibrated
    assert 0 < figures.rehearsed <= 1
    assert figures.rehearsed_spread >= 0
    assert figures.distance == pytest.approx(1, abs=0.4)
    assert figures.verdict == "doubtful", "much of the pool is known"
    assert any("already know" in reason for reason in figures.reasons)


def test_clear_groups_beside_many_known_classes_are_trustworthy():
    known, novel = split(gaussian_classes(25, 10, apart=6.0), 20)
    found = diagnosed(known, novel.images)
    assert found.diagnosis.verdict == "trustworthy"
    assert {group.verdict for group in found.groups} == {"tight"}


def test_items_unlike_all_known_classes_are_no_help():
    known, novel = split(gaussian_classes(14, 8, apart=6.0), 10)
    found = diagnosed(known, novel.images + 100)
    assert found.diagnosis.verdict == "no help"
    assert "unlike all of your known classes" in found.diagnosis.reasons[0]


def test_a_later_candidate_is_kept_only_where_it_is_better_beyond_chance():
    known, _ = split(gaussian_classes(20, 10, apart=8.0), 20)
    choice = choose(make_splits(known, KMEANS, Context()), Context())
    assert choice.scores["encoder"] == 1
    assert choice.representation == "encoder"
    assert choice.gain <= 2 * choice.spread


def test_compact_points_have_the_same_distances():
    points = torch.randn(6, 50, generator=torch.Generator().manual_seed(0)).double()
    small = compact(points)
    assert small.shape == (6, 6)
    assert torch.allclose(torch.cdist(small, small), torch.cdist(points, points))


def test_thinning_takes_equally_many_of_each_class_and_nothing_where_there_is_room():
    labels = torch.arange(4).repeat(50)
    kept = labels[thin(labels, 60, torch.Generator().manual_seed(0))]
    assert torch.bincount(kept).tolist() == [15, 15, 15, 15]
    assert thin(labels, 200, torch.Generator()).tolist() == list(range(200))


@pytest.mark.parametrize("known_classes", [0, 1, 3])
def test_what_could_not_be_checked_is_said(known_classes):
    world = gaussian_classes(6, 8, apart=6.0)
    known, novel = split(world, known_classes) if known_classes else (none_known(), world)
    found = diagnosed(known, novel.images)
    figures = found.diagnosis
    assert (figures.verdict, figures.calibrated) == ("doubtful", False)
    assert (figures.rehearsed, figures.rehearsed_spread, figures.gain, figures.distance) == (None,) * 4
    assert "nothing could be rehearsed" in figures.reasons[0]
    assert max(found.confidence) <= 0.5
    assert not {group.verdict for group in found.groups} & {"tight"}


def test_a_wide_interval_is_never_trustworthy():
    known, novel = split(gaussian_classes(14, 8, apart=1.0), 10)
    found = diagnosed(known, novel.images)
    assert found.count.high > 1.5 * found.count.low
    assert not found.count.certain
    assert found.diagnosis.verdict != "trustworthy"
    assert any("number of groups is uncertain" in reason for reason in found.diagnosis.reasons)
