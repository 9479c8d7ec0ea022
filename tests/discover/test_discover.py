"""Discovery in one call, without training: groups, their number, what is known or alone, and what is said of each."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from worlds import gaussian_classes, none_known, split

from medi.core.errors import InputError
from medi.core.workplace import Workplace
from medi.data.items import Items
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import discover_groups
from medi.discover.result import Discovery, is_doubtful
from medi.metrics import acc

pytestmark = pytest.mark.usefixtures("few_bags")


def discover(known: Items, novel: np.ndarray, **config: object) -> Discovery:
    return discover_groups(known, novel, DiscoveryConfig(**config), Workplace()).discovery


@pytest.fixture(scope="module")
def plain() -> tuple[Items, Items, Discovery]:
    """Fourteen known classes and five novel ones that are easy to tell apart, the number not given."""
    known, novel = split(gaussian_classes(19, 12), 14)
    return known, novel, discover(known, novel.values)


def test_groups_that_are_plainly_there_are_found_and_every_field_has_an_entry_for_every_item_or_group(plain):
    known, novel, found = plain
    m, k = len(novel), found.count.k
    assert found.count.low <= k == 5 <= found.count.high
    assert acc(novel.labels, found.labels) > 0.97
    for name in ("kinds", "labels", "known", "confidence", "doubtful", "nearest_known", "positions"):
        assert len(getattr(found, name)) == m, name
    assert len(found.groups) == k
    assert sorted(set(found.labels)) == list(range(k))
    assert (set(found.kinds), set(found.known)) == ({"novel"}, {""})
    assert all(0 <= c <= 1 for c in found.confidence)
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in found.positions)
    assert set(found.nearest_known) <= set(known.class_names)
    assert all(found.labels[group.medoid] == number for number, group in enumerate(found.groups))
    sizes = [found.labels.count(number) for number in range(k)]
    assert sizes == sorted(sizes, reverse=True) == [group.items for group in found.groups]
    for number, group in enumerate(found.groups):
        mine = [c for c, label in zip(found.confidence, found.labels, strict=True) if label == number]
        assert group.confidence == pytest.approx(np.mean(mine))
        assert 0 <= group.together <= 1
        assert group.sibling != number
    json.dumps(asdict(found))


def test_the_nearest_known_class_is_the_one_with_the_nearest_mean():
    known, novel = split(gaussian_classes(6, 8), 3)  # too few known classes to choose: features as they are
    found = discover(known, novel.values, classes=3)
    means = np.stack([known.values[known.labels == c].mean(0) for c in range(3)])
    nearest = [known.class_names[c] for c in cdist(novel.values, means).argmin(1)]
    same = [a == b for a, b in zip(found.nearest_known, nearest, strict=True)]
    assert np.mean(same) > 0.9, "the evidence shrinks means a little"
    for number, group in enumerate(found.groups):
        centre = novel.values[np.array(found.labels) == number].mean(0)
        assert group.neighbours[0] == known.class_names[cdist(centre[None], means).argmin()]
        assert sorted(group.neighbours) == sorted(known.class_names)


def test_what_known_classes_teach_is_kept_where_it_helps():
    # Half of the directions are loud noise in every class: known classes show which.
    known, novel = split(gaussian_classes(30, 12, nuisance=9.0), 25)
    found = discover(known, novel.values, classes=5)
    scores = found.representation_scores
    plain, learnt = ("encoder", "encoder, unit length"), ("encoder, whitened", "encoder, square roots, whitened")
    assert set(scores) == {*plain, *learnt}
    assert found.representation in learnt
    assert scores[found.representation] > scores["encoder"] + 0.1
    assert found.diagnosis.gain > 0.1
    raw = discover(none_known(), novel.values, classes=5)
    assert acc(novel.labels, found.labels) > acc(novel.labels, raw.labels) + 0.1


def test_classes_of_very_different_sizes_are_found():
    known, novel = split(gaussian_classes(16, 30, apart=5.0), 12)
    some = novel.where(np.arange(120) % 30 < np.repeat([30, 3, 10, 2], 30))
    found = discover(known, some.values, classes=4)
    assert acc(some.labels, found.labels) == 1
    assert (found.count.k, found.count.low, found.count.high, found.count.certain) == (4, 4, 4, True)
    assert [found.labels.count(g) for g in range(4)] == [30, 10, 3, 2]


@pytest.mark.parametrize(("different", "classes"), [(1, "auto"), (1, 3), (2, 4)])
def test_copies_make_no_further_group_however_many_are_asked_for(different, classes):
    known = gaussian_classes(8, 8) if classes == "auto" else none_known()
    found = discover(known, np.tile(np.eye(16)[:different], (7, 1)), classes=classes)
    assert found.count.k == len(set(found.labels)) == different
    assert len(set(found.confidence)) == 1


@pytest.mark.parametrize("m", [0, 1, 2, 3])
def test_a_handful_of_items_is_enough(m):
    known, novel = split(gaussian_classes(8, 6), 6)
    found = discover(known, novel.values[:m])
    assert len(found.labels) == m
    assert min(m, 1) <= found.count.k <= m


@pytest.fixture(scope="module")
def mixed() -> tuple[Items, list[str], Discovery]:
    """Four new classes, further items of three known ones, two one-offs; what each item is, and what is found."""
    known, others = split(gaussian_classes(18, 16, apart=5.0), 14)
    learnt = np.arange(len(known)) % 16 < 12
    back, new = np.flatnonzero(~learnt & (known.labels < 3)), np.arange(0, len(others), 2)
    pool = [others.values[new], known.values[back], 30 * np.eye(16)[:2]]
    truth = (
        [f"new {c}" for c in others.labels[new]] + [known.class_names[c] for c in known.labels[back]] + ["alone"] * 2
    )
    return known.where(learnt), truth, discover(known.where(learnt), np.concatenate(pool), only_novel=False)


def test_in_a_mixed_pool_every_item_is_new_known_or_alone(mixed):
    known, truth, found = mixed
    new = [i for i, what in enumerate(truth) if what.startswith("new")]
    assert acc([truth[i] for i in new], [found.labels[i] for i in new]) > 0.9
    named = [found.known[i] == truth[i] for i, what in enumerate(truth) if what in known.class_names]
    assert np.mean(named) > 0.8
    assert found.kinds[-2:] == ("alone", "alone")
    assert found.count.k == 4
    for kind, label, name in zip(found.kinds, found.labels, found.known, strict=True):
        assert (kind == "novel") == (label >= 0)
        assert (kind == "known") == (name != "")
    assert found.diagnosis.known_share == found.kinds.count("known") / len(truth)


def test_an_item_between_two_groups_is_the_least_sure_and_marked_as_doubtful():
    known, novel = split(gaussian_classes(8, 10, apart=4.0), 6)
    middle = (novel.values[novel.labels == 0].mean(0) + novel.values[novel.labels == 1].mean(0)) / 2
    found = discover(known, np.concatenate([novel.values, middle[None]]), classes=2)
    assert found.confidence[-1] == min(found.confidence)
    assert sum(found.doubtful[:-1]) <= 2
    assert found.doubtful == tuple(map(is_doubtful, found.confidence))


def test_images_without_known_classes_are_compared_by_pixels():
    generator = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 10)
    colours = generator.integers(40, 216, (3, 3, 1, 1))[truth]
    images = np.clip(colours + 12 * generator.standard_normal((30, 3, 8, 8)), 0, 255).astype(np.uint8)
    found = discover(Items(images[:0], truth[:0], ()), images, classes=3)
    assert found.representation == "pixels"
    assert acc(truth, found.labels) > 0.9
    assert found.nearest_known == ("",) * 30
    assert [group.neighbours for group in found.groups] == [(), (), ()]
    assert found.diagnosis.gain is None


@pytest.mark.parametrize(
    ("known", "novel", "config", "message"),
    [
        (none_known(), np.zeros((0, 16)), {}, "neither a known nor a novel"),
        (none_known(), np.zeros((3, 16)), {"classes": 4}, "4 classes were asked for but there are 3"),
        (gaussian_classes(2, 3), np.zeros((3, 8)), {}, "prepare both the same way"),
        (none_known(), np.full((3, 16), np.nan), {}, "NaN"),
        (none_known(), np.zeros((3, 16), np.int64), {}, "float vectors"),
    ],
)
def test_bad_input_is_refused_with_a_cure(known, novel, config, message):
    with pytest.raises(InputError, match=message):
        discover(known, novel, **config)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        *(({"classes": k}, "classes=") for k in (0, -1, 1.5, True, "many")),
        ({"method": "kmean"}, "did you mean 'kmeans'"),
    ],
)
def test_a_config_that_cannot_be_is_refused(config, message):
    with pytest.raises(InputError, match=message):
        DiscoveryConfig(**config)
