"""The contract of the engine (`medi.grouping.engine`), which every way to group keeps: add yours to `GROUPERS`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from groupings import partition, sampled_classes
from sklearn.cluster import KMeans

from medi.core.errors import InputError
from medi.core.tensors import save_arrays
from medi.grouping.constraints import Constraints
from medi.grouping.engine import ALONE, GUESS, Anchors, Ask, Grouper, Grouping, Stage, known_label
from medi.grouping.grouper import PosteriorGrouper
from medi.grouping.partition import Partition

pytestmark = pytest.mark.usefixtures("few_bags")

KNOWN, LEARNT, WIDTH = 12, 12, 10
"""Known classes, the items of each that are learnt from, and dimensions."""
WORLD = sampled_classes(KNOWN + 8, 20, share=0.9, width=WIDTH)
ANCHORS = Anchors(WORLD[:KNOWN, :LEARNT].mean(1), np.full(KNOWN, float(LEARNT)))
NEW = WORLD[KNOWN : KNOWN + 3, :5].reshape(-1, WIDTH)
"""Three new classes of five items."""
MIXED = np.concatenate([NEW, WORLD[:2, LEARNT : LEARNT + 3].reshape(-1, WIDTH), WORLD[-2:, 0]])
"""The same with items of two known classes, and two one-offs."""
ASKS = [Ask(), Ask(3), Ask(only_novel=False), Ask(3, only_novel=False)]


def by_kmeans(points: np.ndarray, k: int, generator: np.random.Generator) -> np.ndarray:
    return KMeans(k, n_init=10, random_state=0).fit_predict(points)


def splits() -> tuple[Stage, ...]:
    """Three splits of the known classes."""
    stages = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(KNOWN)
        held, learnt = WORLD[order[:4], :LEARNT], WORLD[order[4:]]
        means = Anchors(learnt[:, :9].mean(1), np.full(KNOWN - 4, 9.0))
        kept_back = learnt[:, 9:LEARNT].reshape(-1, WIDTH)
        stages.append(
            Stage(held.reshape(-1, WIDTH), np.arange(4).repeat(LEARNT), kept_back, np.arange(8).repeat(3), means)
        )
    return tuple(stages)


def posterior(own: Partition | None = None) -> Grouper:
    return PosteriorGrouper(splits(), np.zeros((0, WIDTH)), np.zeros(0, np.int64), partition=own)


def never_rehearsed() -> Grouper:
    return PosteriorGrouper((), WORLD[:KNOWN, :LEARNT].reshape(-1, WIDTH), np.arange(KNOWN).repeat(LEARNT))


GROUPERS: dict[str, Callable[[], Grouper]] = {
    "posterior": posterior,
    "never rehearsed": never_rehearsed,
    "k-means": lambda: posterior(by_kmeans),
}


@pytest.fixture(scope="module", params=GROUPERS)
def grouper(request, few_bags) -> Grouper:
    return GROUPERS[request.param]()


@dataclass(frozen=True)
class Case:
    ask: Ask
    points: np.ndarray
    grouping: Grouping

    def kinds_are_right(self, labels: np.ndarray) -> None:
        """Groups have labels from 0 on; where all is novel nothing is known, where singles count nothing is alone."""
        assert labels.shape == (len(self.points),)
        assert labels.dtype.kind == "i"
        assert labels.min() >= (0 if self.ask.only_novel else known_label(KNOWN - 1))
        assert not (self.ask.singles and (labels == ALONE).any())
        groups = labels[labels >= 0]
        assert np.array_equal(np.unique(groups), np.arange(groups.max() + 1))


def grouped(grouper: Grouper, ask: Ask, order: np.ndarray | slice = slice(None)) -> Case:
    points = (NEW if ask.only_novel else MIXED)[order]
    return Case(ask, points, grouper.group(points, ANCHORS, ask))


@pytest.fixture(scope="module", params=ASKS, ids=lambda ask: f"{ask.k}, {'only new' if ask.only_novel else 'mixed'}")
def case(request, grouper) -> Case:
    return grouped(grouper, request.param)


def test_labels_are_groups_by_size_as_many_as_asked_known_classes_or_alone(case):
    case.kinds_are_right(case.grouping.labels)
    sizes = np.bincount(case.grouping.labels[case.grouping.labels >= 0])
    assert (np.diff(sizes) <= 0).all()
    assert len(sizes) == case.grouping.k == (case.ask.k or case.grouping.k)
    assert case.grouping.ask == case.ask
    parts = case.grouping.split(np.arange(10), 2)
    assert sorted(np.bincount(parts).tolist()) == [5, 5], "two of the three new classes"


def test_numbers_are_probabilities_and_their_interval_holds_most_of_them(case):
    numbers = case.grouping.numbers
    assert numbers.ndim == 1
    assert (numbers >= 0).all()
    assert numbers.sum() == pytest.approx(1)
    low, high = case.grouping.interval
    assert 0 <= low <= high < len(numbers)
    assert numbers[low : high + 1].sum() >= 0.9 - 1e-9


def test_confidence_is_a_probability_and_a_guess_at_most_where_nothing_was_rehearsed(case):
    sure = case.grouping.confidence
    assert sure.shape == (len(case.points),)
    assert ((sure >= 0) & (sure <= 1)).all()
    assert case.grouping.calibrated or sure.max() <= GUESS
    doubted = case.grouping.doubted()
    assert doubted.confidence.max() <= GUESS
    assert np.array_equal(doubted.labels, case.grouping.labels)


def test_every_place_has_a_probability_and_none_is_likelier_than_that_of_the_line(case):
    chances, sure = case.grouping.chances, case.grouping.confidence
    assert chances.shape == (len(case.points), case.grouping.k + KNOWN + 1)
    assert chances.min() >= 0
    assert chances.sum(1).max() <= 1 + 1e-9
    assert np.array_equal(chances.max(1), sure)
    if case.ask.only_novel:
        assert not chances[:, case.grouping.k : -1].any(), "nothing is known"
    turned = case.grouping.renumbered(np.arange(case.grouping.k)[::-1])
    assert np.array_equal(turned.chances[:, case.grouping.k :], chances[:, case.grouping.k :])
    assert np.array_equal(turned.chances[:, : case.grouping.k], chances[:, : case.grouping.k][:, ::-1])
    assert np.array_equal(turned.confidence, sure)


def test_samples_are_groupings_and_the_same_each_time(case):
    drawn = case.grouping.sample(5)
    assert drawn.shape == (5, len(case.points))
    for labels in drawn:
        case.kinds_are_right(labels)
    assert np.array_equal(drawn, case.grouping.sample(5))


def test_two_groups_are_one_with_a_probability_alike_both_ways(case):
    for found in (case.grouping.between, case.grouping.kin):
        assert found.shape == (case.grouping.k, case.grouping.k)
        assert ((found >= 0) & (found <= 1 + 1e-9)).all()
        assert found == pytest.approx(found.T)
    assert (case.grouping.kin.diagonal() == 1).all()
    turned = case.grouping.renumbered(np.arange(case.grouping.k)[::-1])
    assert turned.kin == pytest.approx(case.grouping.kin[::-1, ::-1])


def test_points_are_assigned_to_where_they_are_each_by_itself(case):
    grouping, labels = case.grouping, case.grouping.labels
    found = grouping.assign(case.points)
    assert found.shape == (len(case.points), grouping.k + KNOWN + 1)
    assert found.sum(1) == pytest.approx(1)
    assert (found[:, :-1].argmax(1) == labels)[labels >= 0].mean() > 0.7
    assert grouping.assign(case.points[4:5]) == pytest.approx(found[4:5])
    assert grouping.likeness(case.points).shape == (len(case.points), KNOWN)


def test_new_numbers_change_nothing_else(case):
    number = np.roll(np.arange(case.grouping.k), 1)
    moved = case.grouping.renumbered(number)
    novel = case.grouping.labels >= 0
    assert np.array_equal(moved.labels[novel], number[case.grouping.labels[novel]])
    assert np.array_equal(moved.labels[~novel], case.grouping.labels[~novel])
    before = case.grouping.assign(case.points)
    assert moved.assign(case.points)[:, number] == pytest.approx(before[:, : case.grouping.k])


@pytest.mark.parametrize("seed", range(3))
def test_what_a_person_says_is_obeyed(case, seed):
    order = np.random.default_rng(seed).permutation(len(case.points)).tolist()
    together, apart = ((order[0], order[1]), (order[1], order[2])), ((order[3], order[4]), (order[0], order[5]))
    said = Constraints(together, apart, {order[6]: seed}, frozenset(order[7:8]))
    again = case.grouping.regroup(said)
    for labels in (again.labels, *again.sample(4)):
        assert len({labels[i] for i in order[:3]}) == 1
        for a, b in apart:
            assert labels[a] != labels[b] or labels[a] == ALONE
        assert labels[order[6]] == known_label(seed)
        assert labels[order[7]] == ALONE
    assert again.ask.constraints == said


def test_what_was_saved_is_the_same_again(case, tmp_path):
    case.grouping.save(tmp_path / "grouping")
    again = type(case.grouping).load(tmp_path / "grouping")
    for name in ("labels", "numbers", "confidence", "copies"):
        assert np.array_equal(getattr(again, name), getattr(case.grouping, name)), name
    assert again.chances == pytest.approx(case.grouping.chances, abs=1e-6)
    assert (again.ask, again.calibrated) == (case.ask, case.grouping.calibrated)
    assert again.assign(case.points) == pytest.approx(case.grouping.assign(case.points), abs=1e-4)
    case.kinds_are_right(again.sample(1)[0])


def test_a_file_that_holds_anything_else_is_refused_in_one_line(case, tmp_path):
    arrays, facts = case.grouping.pack()
    for number, (wrong, about) in enumerate([({}, facts), (arrays, {}), (arrays | {"labels": np.zeros(1)}, facts)]):
        file = tmp_path / f"{number}.safetensors"
        save_arrays(file, wrong, about)
        with pytest.raises(InputError, match=file.name) as error:
            type(case.grouping).load(file)
        assert "\n" not in str(error.value)


def test_the_order_of_the_points_does_not_matter(grouper, case):
    order = np.random.default_rng(1).permutation(len(case.points))
    moved = grouped(grouper, case.ask, order).grouping
    assert partition(moved.labels) == partition(case.grouping.labels[order])


def test_further_points_can_join(case):
    n = len(case.points)
    labels, row = np.append(case.grouping.labels, 0), np.eye(1, case.grouping.chances.shape[1]) / 4
    chances = np.concatenate([case.grouping.chances, row])
    more = case.grouping.extended(np.concatenate([case.points, NEW[:1] + 1]), np.ones(n + 1, np.int64), labels, chances)
    assert np.array_equal(more.labels, labels)
    assert np.array_equal(more.confidence, np.append(case.grouping.confidence, 0.25))
    assert more.assign(case.points).shape == case.grouping.assign(case.points).shape


def test_an_item_with_copies_is_never_alone(grouper):
    far = np.concatenate([MIXED[:-2], 3 * MIXED[-2:]])
    once = grouper.group(far, ANCHORS, Ask(only_novel=False))
    assert (once.labels[-2:] == ALONE).all()
    copies = np.where(once.labels == ALONE, 2, 1)
    twice = grouper.group(far, ANCHORS, Ask(only_novel=False), copies)
    assert not (twice.labels[-2:] == ALONE).any()
    assert np.array_equal(twice.copies, copies)


@pytest.mark.parametrize("ask", ASKS, ids=str)
@pytest.mark.parametrize("items", [0, 1])
def test_an_empty_pool_and_a_single_item_are_pools_too(grouper, ask, items, tmp_path):
    found = grouper.group(NEW[:items], ANCHORS, ask)
    assert len(found.labels) == len(found.confidence) == items
    assert found.k <= items
    assert found.numbers.sum() == pytest.approx(1)
    assert found.sample(2).shape == (2, items)
    assert found.assign(MIXED).shape == (len(MIXED), found.k + KNOWN + 1)
    found.save(tmp_path / "grouping")
    assert np.array_equal(type(found).load(tmp_path / "grouping").labels, found.labels)


def test_points_that_are_no_numbers_are_refused_in_one_line(grouper):
    points = NEW.copy()
    points[3, 2] = np.nan
    with pytest.raises(InputError) as error:
        grouper.group(points, ANCHORS, Ask())
    assert "\n" not in str(error.value)
