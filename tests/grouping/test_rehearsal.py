"""Rehearsals: what bags hold, and what they set."""

from dataclasses import replace

import numpy as np
import pytest
from groupings import stage

from medi.grouping.bags import draw_bag
from medi.grouping.branches import Units
from medi.grouping.engine import Ask, Stage, known_label
from medi.grouping.lines import right_lines
from medi.grouping.numbers import LEVEL, interval
from medi.grouping.rehearsal import SCALES, SHARPNESS, SPREADS, measure, rehearse
from medi.grouping.search import group_units

MIXED, NOVEL = Ask(only_novel=False), Ask()


@pytest.fixture(scope="module")
def stages():
    return [stage(18, 6, seed=seed) for seed in range(4)]


@pytest.fixture(scope="module")
def mixed(stages):
    return rehearse(stages, 30, MIXED, seed=0)


@pytest.fixture(scope="module")
def novel(stages):
    return rehearse(stages, 30, NOVEL, seed=0)


def sources(of: Stage, points: np.ndarray) -> list[tuple[str, int]]:
    """Where each point comes from: kind and class."""
    place = {row.tobytes(): ("held out", int(label)) for row, label in zip(of.held_out, of.labels, strict=True)}
    place |= {row.tobytes(): ("kept back", int(c)) for row, c in zip(of.kept_back, of.kept_labels, strict=True)}
    return [place[row.tobytes()] for row in points]


@pytest.mark.parametrize("ask", [MIXED, NOVEL, Ask(5), Ask(5, only_novel=False)], ids=str)
@pytest.mark.parametrize("items", [4, 30, 500])
def test_bags_hold_what_they_say(stages, ask, items):
    generator, of = np.random.default_rng(0), stages[0]
    for _ in range(25):
        bag = draw_bag(of, items, 0.9, ask, generator)
        everything = np.concatenate([bag.points, bag.further])
        assert len(np.unique(everything, axis=0)) == len(everything), "no item twice"
        inside, further = sources(of, bag.points), sources(of, bag.further)
        remaining = [int(np.flatnonzero((0.9 * of.anchors.means == mean).all(1))[0]) for mean in bag.anchors.means]
        assert bag.anchors.counts.tolist() == of.anchors.counts[remaining].tolist()
        class_of = {}
        for source, truth, fair in zip(inside, bag.truth.tolist(), bag.fair.tolist(), strict=True):
            if truth <= known_label(0):
                assert source == ("kept back", remaining[known_label(0) - truth])
                assert fair
            else:
                assert class_of.setdefault(truth, source) == source
                assert fair == (source[0] == "held out")
                assert source[0] == "held out" or source[1] not in remaining
        assert len(set(class_of.values())) == len(class_of), "no class under two labels"
        for source, truth in zip(further, bag.further_truth.tolist(), strict=True):
            if truth <= known_label(0):
                assert source == ("kept back", remaining[known_label(0) - truth])
            elif truth >= 0:
                assert source == class_of[truth]
            else:
                assert source[0] == "held out"
                alone = [label for label, where in class_of.items() if where == source]
                assert all((bag.truth == label).sum() == 1 for label in alone)
        if ask.only_novel:
            assert not len(bag.anchors)
            assert (bag.truth >= 0).all()


def test_pools_of_all_kinds_are_rehearsed(stages):
    generator = np.random.default_rng(1)
    bags = [draw_bag(stages[0], 40, 1.0, MIXED, generator) for _ in range(60)]
    shares = [(bag.truth <= known_label(0)).mean() for bag in bags]
    assert min(shares) == 0 < max(shares)
    sizes = [np.bincount(bag.truth[bag.truth >= 0]) for bag in bags]
    assert any((one == 1).any() for one in sizes), "some with one-offs"
    assert len({len(one) for one in sizes}) > 3
    assert max(len(bag.points) for bag in bags) <= 4 * 40


def test_likeness_dimensions_and_shrinkage_are_those_of_the_world():
    share, width, behind = 0.7, 24, 6
    stages = [stage(40, 20, behind + 3, share=share, width=width, seed=seed) for seed in range(6)]
    found = measure(stages)
    assert found[0] == pytest.approx(share, rel=0.1)
    assert found[1] == pytest.approx(SHARPNESS * width, rel=0.2)
    assert found[2] == pytest.approx(share / (share + (1 - share) / behind), rel=0.1)


def test_a_class_is_as_alike_as_was_measured_times_one_of_the_scales(stages, novel, mixed):
    share, dimensions, shrink = measure(stages)
    for found in (novel, mixed):
        assert found.model.share / share == pytest.approx(SCALES[np.abs(SCALES - found.model.share / share).argmin()])
        assert found.model.dimensions == dimensions
        assert found.shrink == shrink


@pytest.mark.parametrize("ask", [MIXED, NOVEL], ids=["mixed", "only novel"])
def test_in_pools_that_were_not_rehearsed_the_interval_holds_the_number_and_as_many_are_right(ask, mixed, novel):
    found = novel if ask.only_novel else mixed
    assert found.error.spread >= SPREADS[0]
    generator, inside, right, least = np.random.default_rng(5), [], [], 1 if ask.singles else 2
    others = [stage(18, 6, seed=seed) for seed in range(50, 54)]
    for number in range(40):
        bag = draw_bag(others[number % 4], 30, found.shrink, ask, generator)
        grouped = group_units(Units.single(bag.points), bag.anchors, found.model, ask, found.odds, found.error)
        low, high = interval(found.error.blur(grouped.numbers))
        true = int((np.bincount(bag.truth[bag.truth >= 0]) >= least).sum())
        inside.append(low <= true <= high)
        right.append(right_lines(bag.truth, grouped.labels)[bag.fair].mean())
    assert np.mean(inside) > LEVEL - 0.15
    assert found.right[0] == pytest.approx(np.mean(right), abs=0.12)
    assert found.right[1] > 0


def test_one_split_has_no_spread_and_a_number_that_is_given_is_not_off(stages):
    found = rehearse(stages[:1], 12, Ask(4), seed=0)
    assert np.isnan(found.right[1])
    assert found.error.spread == 0


def test_the_same_seed_rehearses_alike_and_another_does_not(stages):
    first, again, other = (rehearse(stages[:2], 12, NOVEL, seed=seed) for seed in (1, 1, 2))
    assert (first.model, first.error, first.trust, first.right) == (
        *(again.model, again.error, again.trust, again.right),
    )
    assert np.array_equal(first.recognition.leads, again.recognition.leads)
    assert first.trust != other.trust


def test_classes_without_items_kept_back_can_be_rehearsed(stages):
    none = np.zeros(0, np.int64)
    bare = [replace(one, kept_back=one.kept_back[:0], kept_labels=none) for one in stages]
    for ask in (MIXED, NOVEL):
        assert 0 < rehearse(bare, 12, ask, seed=0).right[0] <= 1
