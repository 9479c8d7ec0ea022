import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from worlds import gaussian_classes, split

from medi.cluster.groups import group_means
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.discovery.rejection import (
    MISSED,
    corrected_distances,
    handful,
    left_out_distances,
    observed_size,
    threshold,
    thresholds_by_items,
)
from medi.runtime.context import Context

WIDTH, KNOWN, NOVEL = 20, 20, 12


def few_shot(observations, seed):
    """A recogniser of round classes of unit spread, and fresh items of known, of novel and of other classes."""
    world = gaussian_classes(KNOWN + NOVEL + 4, 60, width=WIDTH, apart=6.0, seed=seed)
    place = torch.arange(len(world)) % 60
    known, rest = split(type(world)(world.images[place < 15], world.labels[place < 15], world.class_names), KNOWN)
    novel = rest.of_classes(range(NOVEL))
    shown = novel.images[torch.arange(len(novel)) % 15 < observations]
    config = DiscoveryConfig(classes=NOVEL, method="kmeans", resamples=1)
    recogniser = discover_groups(known, shown, config, Context(seed=seed))[1]
    new = type(world)(world.images[place >= 15], world.labels[place >= 15], world.class_names)
    return recogniser, new


def none_among(recogniser, new, classes):
    answers = recogniser.recognise(new.of_classes(classes).images)
    return sum(a.kind == "none" for a in answers) / len(answers)


@pytest.mark.parametrize("observations", [1, 3, 5])
def test_members_are_none_as_often_as_promised_and_outsiders_always(observations):
    missed = []
    for seed in range(3):
        recogniser, new = few_shot(observations, seed)
        assert recogniser.representation.name == "encoder"  # round classes need no preparation
        missed.append(none_among(recogniser, new, range(KNOWN, KNOWN + NOVEL)))
        assert none_among(recogniser, new, range(KNOWN)) == pytest.approx(MISSED, abs=0.05)
        assert none_among(recogniser, new, range(KNOWN + NOVEL, KNOWN + NOVEL + 4)) == 1
        # Squared distances of round unit classes, freed of the mean's error, are chi-squared whatever its size.
        assert recogniser.thresholds.tolist() == pytest.approx(
            [chi2.ppf(1 - MISSED, WIDTH)] * (KNOWN + NOVEL), rel=0.15
        )
    assert sum(missed) / 3 == pytest.approx(MISSED, abs=0.05)


def test_known_classes_of_one_item_do_not_narrow_the_thresholds():
    world = gaussian_classes(410, 10, width=WIDTH, apart=12.0)
    single = (world.labels >= 10) & (torch.arange(len(world)) % 10 > 0)  # of classes 10 to 409 the first item stays
    known = type(world)(world.images[~single], world.labels[~single], world.class_names)
    recogniser = discover_groups(known, world.images[:5], DiscoveryConfig(classes=1, method="kmeans"), Context())[1]
    assert recogniser.calibrated
    assert recogniser.thresholds.tolist() == pytest.approx([chi2.ppf(1 - MISSED, WIDTH)] * 411, rel=0.15)


@given(st.integers(0, 2**31 - 1), st.integers(0, WIDTH - 1))
def test_an_item_far_from_everything_is_none(seed, axis):
    item = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(seed))
    item[0, axis] += 200
    assert far_away.recognise(item)[0].kind == "none"


far_away = few_shot(1, 0)[0]


def test_left_out_distances_are_those_to_means_without_the_item():
    world = gaussian_classes(3, 4)
    x, y = world.images.double(), world.labels
    found = left_out_distances(x, y, group_means(x, y, 3), torch.bincount(y))
    for i in range(len(x)):
        for c in range(3):
            others = x[(y == c) & (torch.arange(len(x)) != i)]
            expected = (x[i] - others.mean(0)).square().sum() * len(others) / (len(others) + 1)
            assert found[i, c].item() == pytest.approx(expected.item())


@pytest.mark.parametrize("size", [1, 2, 7])
def test_corrected_distances_are_as_large_on_average_whatever_the_mean_was_taken_of(size):
    g = torch.Generator().manual_seed(size)
    centres = torch.randn(4000, size, 5, generator=g, dtype=torch.float64).mean(1)
    items = torch.randn(4000, 5, generator=g, dtype=torch.float64)
    apart = corrected_distances(items, centres, torch.full((4000,), size)).mean()
    assert apart.item() == pytest.approx(5, rel=0.05)


@given(st.lists(st.integers(2, 9), min_size=1, max_size=4), st.integers(1, 6), st.integers(0, 99))
def test_a_handful_holds_a_few_items_of_each_class_and_leaves_the_others(counts, size, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))[torch.randperm(sum(counts), generator=g)]
    x = torch.randn(len(y), 3, generator=g, dtype=torch.float64)
    centres, sizes, left = handful(x, y, size, lambda _, labels: labels.numpy(), g)
    assert sizes.tolist() == [min(size, n // 2) for n in counts]
    seen = torch.ones(len(y), dtype=torch.bool)
    seen[left] = False
    for c in range(len(counts)):
        assert centres[c].tolist() == pytest.approx(x[seen & (y == c)].mean(0).tolist())


def test_the_threshold_leaves_out_the_fraction_that_may_be_missed():
    distances = torch.arange(1000.0)
    assert (distances > threshold(distances)).float().mean() == pytest.approx(MISSED)


def test_a_group_takes_the_threshold_of_a_size_not_above_its_own():
    assert [observed_size(n) for n in (1, 2, 3, 4, 5, 9, 10, 4000)] == [1, 2, 3, 3, 5, 5, 10, 10]


def test_without_held_out_classes_thresholds_come_from_items_and_classes_of_one_have_no_say():
    world = gaussian_classes(8, 40, width=WIDTH, apart=8.0)
    x, y = (
        torch.cat([world.images.double(), torch.full((1, WIDTH), 50.0)]),
        torch.cat([world.labels, torch.tensor([8])]),
    )
    found = thresholds_by_items(x, y, torch.tensor([5, 1]), 3)
    assert found.tolist() == pytest.approx([chi2.ppf(1 - MISSED, WIDTH)] * 5, rel=0.15)
    assert thresholds_by_items(x[::40], y[::40], torch.tensor([5, 1]), 3).tolist() == [torch.inf] * 5
