"""Of more novel items than are grouped some are drawn and the others join the place that they fit best."""

import numpy as np
import pytest
from worlds import gaussian_classes, split

from medi.core.workplace import Workplace
from medi.discover import large_pools
from medi.discover import pipeline as discover_module
from medi.discover.config import DiscoveryConfig
from medi.discover.map import map_positions
from medi.discover.pipeline import discover_groups
from medi.metrics import acc

pytestmark = pytest.mark.usefixtures("few_bags")


@pytest.fixture
def few(monkeypatch):
    """At most 40 items are grouped."""
    for module in (large_pools, discover_module):
        monkeypatch.setattr(module, "MOST_GROUPED", 40)


def discover(known, novel, **config):
    return discover_groups(known, novel, DiscoveryConfig(**config), Workplace())


@pytest.mark.usefixtures("few")
def test_items_that_are_not_drawn_join_the_group_they_belong_to():
    known, novel = split(gaussian_classes(12, 10, apart=6.0), 8)
    # Of the drawn items some class has most, of all items another: groups are numbered by all.
    order = np.concatenate([np.arange(40), np.tile(np.arange(30, 40), 8), np.tile(np.arange(10, 20), 3)])
    items = novel.values[order] + 0.01 * np.random.default_rng(0).standard_normal((len(order), 16))
    labels = novel.labels[order]
    outcome = discover(known, items, classes=4)
    found, recogniser = outcome.discovery, outcome.recogniser
    assert acc(labels, found.labels) == 1.0
    for name in ("kinds", "labels", "known", "confidence", "doubtful", "nearest_known", "positions"):
        assert len(getattr(found, name)) == len(items), name
    sizes = [found.labels.count(group) for group in range(4)]
    assert sizes == sorted(sizes, reverse=True)
    assert set(labels[np.array(found.labels) == 0].tolist()) == {3}, "the largest group is 0"
    assert all(found.labels[group.medoid] == number for number, group in enumerate(found.groups))
    assert [group.items for group in found.groups] == sizes
    assert recogniser.probabilities(items).argmax(1).tolist() == list(found.labels)
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in found.positions)
    assert recogniser.places.counts[:4].sum() == 40, "the groups are those of the items drawn"
    assert max(found.confidence) <= 0.99


@pytest.mark.usefixtures("few")
def test_in_a_mixed_pool_items_that_are_not_drawn_may_also_be_known_or_alone():
    world = gaussian_classes(20, 30, apart=6.0)
    known, novel = split(world, 12)
    learnt = np.arange(len(known)) % 30 < 20
    back, new = ~learnt & (known.labels < 4), novel.labels < 3
    pool = np.concatenate([novel.values[new], known.values[back], 30 * np.eye(16)[:5]])
    truth = [f"group {c}" for c in novel.labels[new].tolist()] + [known.class_names[c] for c in known.labels[back]]
    found = discover(known.where(learnt), pool, only_novel=False).discovery
    n, m = int(new.sum()), len(truth)
    assert acc(novel.labels[new], found.labels[:n]) > 0.9
    assert sum(a == b for a, b in zip(truth[n:], found.known[n:m], strict=True)) > 0.8 * (m - n)
    assert found.kinds[m:].count("known") == 0
    for kind, label, name in zip(found.kinds, found.labels, found.known, strict=True):
        assert (kind == "novel", kind == "known") == (label >= 0, name != "")


@pytest.mark.usefixtures("few")
def test_no_more_are_drawn_than_are_grouped_and_none_where_all_are():
    assert large_pools.draw(40, seed=0).tolist() == list(range(40))
    drawn, again, other = (large_pools.draw(1000, seed=seed).tolist() for seed in (3, 3, 4))
    assert len(drawn) == 40
    assert drawn == sorted(set(drawn)) == again != other


def test_of_very_many_points_those_drawn_span_the_map_and_the_others_are_put_on_its_edge():
    points = np.random.default_rng(0).standard_normal((2100, 7))
    points[:, 3] *= 5
    points[-1] *= 100
    places = map_positions(points, np.arange(50), seed=0)
    assert np.allclose([places[:50].min(0), places[:50].max(0)], [[0, 0], [1, 1]])
    assert [places.min(), places.max()] == [0, 1]
    along = np.corrcoef(places[:50, 0], points[:50, 3])[0, 1]
    assert abs(along) > 0.95, "the first direction is that in which points differ most"
    assert (map_positions(np.ones((2100, 3)), np.arange(50), seed=0) == 0.5).all()
    assert map_positions(np.arange(2100.0)[:, None], np.arange(50), seed=0).shape == (2100, 2)
