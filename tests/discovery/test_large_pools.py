"""Of more novel items than are grouped some are drawn and the others join the place that they fit best."""

import pytest
import torch
from worlds import gaussian_classes, split

from medi.discovery import discover as discover_module
from medi.discovery import large_pools
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.discovery.map import Plane
from medi.errors import InputError
from medi.metrics import acc
from medi.runtime.context import Context

pytestmark = pytest.mark.usefixtures("few_bags")


@pytest.fixture
def few(monkeypatch):
    """At most 40 items are grouped."""
    for module in (large_pools, discover_module):
        monkeypatch.setattr(module, "MOST_GROUPED", 40)


def discover(known, novel, **config):
    return discover_groups(known, novel, DiscoveryConfig(**{"method": "kmeans"} | config), Context())


@pytest.mark.usefixtures("few")
def test_items_that_are_not_drawn_join_the_group_they_belong_to():
    known, novel = split(gaussian_classes(12, 10, apart=6.0), 8)
    # Of the drawn items some class has most, of all items another: groups are numbered by all.
    order = torch.cat([torch.arange(40), torch.arange(30, 40).repeat(8), torch.arange(10, 20).repeat(3)])
    items = novel.images[order] + 0.01 * torch.randn(len(order), 16, generator=torch.Generator().manual_seed(0))
    labels = novel.labels[order]
    found, recogniser = discover(known, items, classes=4)
    assert acc(labels, found.labels) == 1.0
    for name in ("kinds", "labels", "known", "confidence", "doubtful", "nearest_known", "positions"):
        assert len(getattr(found, name)) == len(items), name
    sizes = [found.labels.count(group) for group in range(4)]
    assert sizes == sorted(sizes, reverse=True)
    assert set(labels[torch.tensor(found.labels) == 0].tolist()) == {3}, "the largest group is 0"
    assert all(found.labels[group.medoid] == number for number, group in enumerate(found.groups))
    assert [group.items for group in found.groups] == sizes
    assert recogniser.nearest(items).tolist() == list(found.labels)
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in found.positions)
    assert recogniser.places.counts[:4].sum() == 40, "the groups are those of the items drawn"
    assert max(found.confidence) <= 0.99


@pytest.mark.usefixtures("few")
def test_in_a_mixed_pool_items_that_are_not_drawn_may_also_be_known_or_alone():
    world = gaussian_classes(20, 30, apart=6.0)
    known, novel = split(world, 12)
    learnt = type(known)(known.images[known_part(known)], known.labels[known_part(known)], known.class_names)
    back = ~known_part(known) & (known.labels < 4)
    new = novel.labels < 3
    pool = torch.cat([novel.images[new], known.images[back], 30 * torch.eye(16)[:5]])
    truth = [f"group {c}" for c in novel.labels[new].tolist()] + [known.class_names[c] for c in known.labels[back]]
    found, _ = discover(learnt, pool, only_novel=False)
    n, m = int(new.sum()), len(truth)
    assert acc(novel.labels[new], found.labels[:n]) > 0.9
    assert sum(a == b for a, b in zip(truth[n:], found.known[n:m], strict=True)) > 0.8 * (m - n)
    assert found.kinds[m:].count("known") == 0
    for kind, label, name in zip(found.kinds, found.labels, found.known, strict=True):
        assert (kind == "novel", kind == "known") == (label >= 0, name != "")


def known_part(known):
    """Which items are learnt from; the others are in the pool."""
    return torch.arange(len(known)) % 30 < 20


@pytest.mark.usefixtures("few")
def test_no_more_are_drawn_than_are_grouped_and_none_where_all_are():
    assert torch.equal(large_pools.draw(40, seed=0), torch.arange(40))
    drawn = large_pools.draw(1000, seed=3)
    assert len(drawn) == len(set(drawn.tolist())) == 40
    assert torch.equal(drawn, drawn.sort().values)
    assert torch.equal(drawn, large_pools.draw(1000, seed=3))
    assert not torch.equal(drawn, large_pools.draw(1000, seed=4))


@pytest.mark.usefixtures("few")
def test_more_groups_than_items_drawn_are_refused():
    known, novel = split(gaussian_classes(12, 15), 8)
    with pytest.raises(InputError, match=r"41 classes .* 40 novel items"):
        discover(known, novel.images, classes=41)


def test_a_plane_puts_further_points_where_it_would_have_put_them_at_first():
    points = torch.randn(50, 7, generator=torch.Generator().manual_seed(0)).double()
    points[:, 3] *= 5
    plane = Plane.of(points)
    places = plane(points)
    assert torch.allclose(places.amin(0), torch.zeros(2).double())
    assert torch.allclose(places.amax(0), torch.ones(2).double())
    assert torch.equal(plane(points[10:20]), places[10:20])
    spread = (places[:, 0] - places[:, 0].mean()).abs(), (points[:, 3] - points[:, 3].mean()).abs()
    assert torch.corrcoef(torch.stack(spread))[0, 1] > 0.95, "the first direction is that in which points differ most"
    assert plane(100 * points).amax() <= 1
    assert torch.equal(Plane.of(torch.ones(5, 3))(torch.ones(2, 3)), torch.full((2, 2), 0.5).double())
    assert Plane.of(torch.arange(4.0)[:, None])(torch.tensor([[3.0]])).shape == (1, 2)
