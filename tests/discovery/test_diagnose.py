import numpy as np
import pytest
import torch
from medi.discovery.count import Pool
from worlds import gaussian_classes, split

from medi.discovery.diagnose import distance_from_known, judge, largest_overlap, stability_of
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.discovery.grouping import compact, group, thin
from medi.discovery.held_out import choose, make_splits
from medi.runtime.context import Context

GOOD = {"grouped": 0.95, "gain": 0.1, "spread": 0.02, "distance": 1.0, "stability": 0.95, "certain": True}


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "trustworthy"),
        ({"gain": -0.2}, "trustworthy"),  # good features need not be bettered
        ({"stability": 0.3}, "doubtful"),
        ({"certain": False}, "doubtful"),
        ({"stability": None}, "doubtful"),
        ({"grouped": 0.4}, "doubtful"),
        ({"grouped": 0.4, "gain": 0.01}, "no help"),
        ({"distance": 9.0}, "no help"),
        ({"grouped": None, "gain": None, "spread": None, "distance": None}, "doubtful"),
    ],
)
def test_the_verdict_follows_from_the_figures(change, verdict):
    assert judge(**(GOOD | change)) == verdict


def groups_of(points):
    return lambda items: group(points[items], 3, "ward", torch.Generator().manual_seed(0))


def test_a_grouping_that_is_plainly_there_is_stable_and_one_of_noise_is_not():
    clear, noise = gaussian_classes(3, 10, apart=8.0).images.double(), gaussian_classes(1, 30).images.double()
    stable, unstable = (
        stability_of(
            groups_of(x)(torch.arange(30)), groups_of(x), [], resamples=10, generator=torch.Generator().manual_seed(0)
        )
        for x in (clear, noise)
    )
    assert stable == 1
    assert unstable < 0.7


def test_augmented_groupings_count_towards_stability():
    labels = np.repeat([0, 1, 2], 10)
    points = gaussian_classes(3, 10, apart=8.0).images.double()
    other = np.tile([0, 1, 2], 10)
    score = stability_of(labels, groups_of(points), [other, other], resamples=2, generator=torch.Generator())
    assert score < 0.7


def test_a_handful_of_items_or_one_group_has_no_stability():
    generator = torch.Generator()
    assert stability_of(np.array([0, 1, 1]), groups_of(None), [], resamples=3, generator=generator) is None
    assert stability_of(np.zeros(9, np.int64), groups_of(None), [], resamples=3, generator=generator) is None


def test_held_out_known_classes_lie_at_distance_one_and_others_farther():
    world = gaussian_classes(30, 10)
    known, novel = split(world, 20)
    splits = make_splits(known, DiscoveryConfig(method="kmeans"), Context())
    alike = distance_from_known(splits, novel.images)
    assert alike == pytest.approx(1, abs=0.25)
    assert distance_from_known(splits, novel.images + 100) > 3


def test_overlap_is_larger_where_classes_touch():
    apart, touching = gaussian_classes(4, 20, apart=6.0), gaussian_classes(4, 20, apart=0.2)
    low, high = (largest_overlap([Pool(w.images.double(), w.labels)]) for w in (apart, touching))
    assert low < 0.1 < high
    assert largest_overlap([]) is None
    assert largest_overlap([Pool(apart.images[:3].double(), torch.tensor([0, 1, 2]))]) is None


def test_reasons_carry_their_figures_and_what_speaks_against_trust_comes_first():
    known, novel = split(gaussian_classes(14, 8, apart=0.1), 10)
    found, _ = discover_groups(known, novel.images, DiscoveryConfig(method="kmeans", resamples=3), Context())
    assert found.diagnosis.verdict == "no help"
    share = 100 * found.representation_scores[found.representation]
    assert f"{share:.0f} %" in found.diagnosis.reasons[0]
    assert all(reason.endswith(".") for reason in found.diagnosis.reasons)


def test_a_later_candidate_is_kept_only_where_it_is_better_beyond_chance():
    known, _ = split(gaussian_classes(20, 10, apart=8.0), 20)
    choice = choose(make_splits(known, DiscoveryConfig(method="kmeans"), Context()), Context())
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


def test_what_could_not_be_checked_is_said():
    known, novel = split(gaussian_classes(14, 8, apart=8.0), 10)
    config = DiscoveryConfig(method="kmeans", classes=1, resamples=3)
    found, _ = discover_groups(known, novel.images, config, Context())
    assert found.diagnosis.stability is None
    assert found.diagnosis.verdict == "doubtful"
    assert found.diagnosis.reasons[0].startswith("With a single group or so few items")


def test_too_few_items_are_not_blamed_on_the_known_classes():
    known, novel = split(gaussian_classes(14, 8, apart=8.0), 10)
    found, _ = discover_groups(known, novel.images[:3], DiscoveryConfig(method="kmeans", resamples=3), Context())
    assert "too few items to calibrate" in found.count.how
