"""Of more novel items than are grouped some are drawn and the others join the place that they fit best."""

import numpy as np
import pytest
from worlds import gaussian_classes, split

from medi.core.errors import InputError
from medi.core.workplace import Workplace
from medi.discover import large_pools
from medi.discover import pipeline as discover_module
from medi.discover.config import DiscoveryConfig
from medi.discover.map import Plane
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


@pytest.mark.usefixtures("few")
def test_more_groups_than_items_drawn_are_refused():
    known, novel = split(gaussian_classes(12, 15), 8)
    with pytest.raises(InputError, match=r"41 classes .* 40 novel items"):
        discover(known, novel.values, classes=41)


def test_a_plane_puts_further_points_where_it_would_have_put_them_at_first():
    points = np.random.default_rng(0).standard_normal((50, 7))
    points[:, 3] *= 5
    plane = Plane.of(points)
    places = plane(points)
    assert np.allclose([places.min(0), places.max(0)], [[0, 0], [1, 1]])
    assert np.allclose(plane(points[10:20]), places[10:20], atol=1e-12)
    along = np.corrcoef(places[:, 0], points[:, 3])[0, 1]
    assert abs(along) > 0.95, "the first direction is that in which points differ most"
    assert plane(100 * points).max() <= 1
    assert (Plane.of(np.ones((5, 3)))(np.ones((2, 3))) == 0.5).all()
    assert Plane.of(np.arange(4.0)[:, None])(np.array([[3.0]])).shape == (1, 2)
