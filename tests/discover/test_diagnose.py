from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from worlds import gaussian_classes, none_known, split

from medi.core.workplace import Workplace
from medi.data.items import Items
from medi.discover.candidates import Fitter
from medi.discover.choice import Split, choose, make_splits
from medi.discover.config import DiscoveryConfig
from medi.discover.diagnose import distance_from_known, largest_overlap
from medi.discover.pipeline import discover_groups
from medi.discover.result import Discovery
from medi.discover.thinning import compact, thin
from medi.discover.verdict import EXPECTED, FAR, FEW_EACH, GROUPED, Figures, reasons
from medi.grouping.engine import Anchors, Stage


def diagnosed(known: Items, pool: np.ndarray, **config: object) -> Discovery:
    return discover_groups(known, pool, DiscoveryConfig(**config), Workplace()).discovery


def splits_of(known: Items) -> tuple[Split, ...]:
    return make_splits(known, Fitter(DiscoveryConfig(), None, Workplace()))


def held_out(items: Items) -> Stage:
    points = items.values.astype(np.float64)
    return Stage(points, items.labels, points[:0], np.zeros(0, np.int64), Anchors.none(points.shape[1]))


def test_held_out_known_classes_lie_at_distance_one_and_others_farther():
    world = gaussian_classes(30, 10)
    known, novel = split(world, 20)
    splits = splits_of(known)
    alike = distance_from_known(splits, novel.values)
    assert alike == pytest.approx(1, abs=0.25)
    assert distance_from_known(splits, novel.values + 100) > 3


def test_overlap_is_larger_where_classes_touch():
    apart, touching = gaussian_classes(4, 20, apart=6.0), gaussian_classes(4, 20, apart=0.2)
    low, high = (largest_overlap([held_out(world)]) for world in (apart, touching))
    assert low < 0.1 < high
    assert largest_overlap([]) is None
    assert largest_overlap([held_out(apart.where(np.arange(0, 80, 20)))]) is None


def test_the_figures_are_those_of_the_discovery():
    known, novel = split(gaussian_classes(20, 10, apart=6.0), 15)
    pool = np.concatenate([novel.values, known.values[:60] + 0.01, known.values[:9] + 0.01])  # copies are items too
    found = diagnosed(known, pool, only_novel=False)
    figures = found.diagnosis
    assert figures.expected == pytest.approx(np.mean(found.confidence))
    assert figures.known_share == found.kinds.count("known") / len(pool) > 1 / 3
    assert figures.calibrated
    assert 0 < figures.rehearsed <= 1
    assert figures.rehearsed_spread >= 0
    assert figures.distance == pytest.approx(1, abs=0.4)
    assert figures.verdict == ("trustworthy" if figures.expected >= EXPECTED else "doubtful")


@pytest.mark.parametrize(
    ("apart", "shift", "verdict"), [(6.0, 0, "trustworthy"), (0.1, 0, "no help"), (6.0, 100, "no help")]
)
def test_clear_groups_are_trustworthy_and_known_classes_that_teach_nothing_or_lie_far_are_no_help(
    apart, shift, verdict
):
    known, novel = split(gaussian_classes(25, 10, apart=apart), 20)
    found = diagnosed(known, novel.values + shift)
    assert found.diagnosis.verdict == verdict
    assert (found.diagnosis.rehearsed < GROUPED) == (apart < 1)
    assert (found.diagnosis.distance > FAR) == (shift > 0)
    assert any(group.verdict == "tight" for group in found.groups) == (verdict == "trustworthy")


def test_a_later_candidate_is_kept_only_where_it_is_better_beyond_chance():
    known, _ = split(gaussian_classes(20, 10, apart=8.0), 20)
    choice = choose(splits_of(known), seed=0)
    assert choice.scores["encoder"] == 1
    assert choice.representation == "encoder"
    assert choice.gain <= 2 * choice.spread


def test_compact_points_have_the_same_distances():
    points = np.random.default_rng(0).standard_normal((6, 50))
    assert compact(points).shape == (6, 6)
    assert np.allclose(pdist(compact(points)), pdist(points))


def test_thinning_takes_equally_many_of_each_class_and_nothing_where_there_is_room():
    labels = np.tile(np.arange(4), 50)
    assert np.bincount(labels[thin(labels, 60, seed=0)]).tolist() == [15, 15, 15, 15]
    assert thin(labels, 200, seed=0).tolist() == list(range(200))


@pytest.mark.parametrize("known_classes", [0, 1, 3])
def test_what_could_not_be_checked_is_doubtful(known_classes):
    world = gaussian_classes(6, 8, apart=6.0)
    known, novel = split(world, known_classes) if known_classes else (none_known(), world)
    found = diagnosed(known, novel.values)
    figures = found.diagnosis
    assert (figures.verdict, figures.calibrated) == ("doubtful", False)
    assert (figures.rehearsed, figures.rehearsed_spread, figures.gain, figures.distance) == (None,) * 4
    assert max(found.confidence) <= 0.5
    assert not {group.verdict for group in found.groups} & {"tight"}


@pytest.mark.parametrize(("each", "few"), [(3, True), (FEW_EACH, False)])
def test_more_of_each_known_class_are_advised_by_the_number_there_is_of_them(each, few):
    known, novel = split(gaussian_classes(12, FEW_EACH, apart=6.0), 8)
    figures = Figures(low=4, high=4, number_given=False, calibrated=True, known_classes=8, known_each=FEW_EACH)
    (advice,) = set(reasons(replace(figures, known_each=3))) - set(reasons(figures))
    some = known.where(np.arange(len(known)) % FEW_EACH < each)
    assert (advice in diagnosed(some, novel.values, noun="picture").diagnosis.reasons) == few
