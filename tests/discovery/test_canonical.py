"""The order of the items changes nothing, to the last item and the last bit."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import gaussian_classes, split

from medi.data.imageset import ImageSet
from medi.discovery.canonical import in_order, unique_items
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.runtime.context import Context

pytestmark = pytest.mark.usefixtures("few_bags")
EACH = ("kinds", "labels", "known", "confidence", "doubtful", "nearest_known", "positions")


def discovered(known: ImageSet, pool: torch.Tensor, only_novel: bool):
    return discover_groups(known, pool, DiscoveryConfig(method="kmeans", only_novel=only_novel), Context())


@pytest.fixture(scope="module")
def toy() -> tuple[ImageSet, torch.Tensor]:
    """Five known classes, and a pool with new things, a known one, copies, and items at the same distance."""
    known, novel = split(gaussian_classes(8, 5, width=6, apart=4.0), 5)
    corners = torch.tensor([[30.0, 0, 0, 0, 0, 0], [-30.0, 0, 0, 0, 0, 0]]).repeat_interleave(2, 0)
    corners[::2, 1], corners[1::2, 1] = 1.0, -1.0
    return known, torch.cat([novel.images, known.images[:1] + 0.1, novel.images[[0, 0, 7]], corners])


@pytest.fixture(scope="module", params=[True, False], ids=["only novel", "mixed"])
def found(request, toy):
    return request.param, *discovered(*toy, request.param)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_the_order_of_the_items_changes_nothing(toy, found, seed):
    known, pool = toy
    only_novel, before, recogniser = found
    generator = torch.Generator().manual_seed(seed)
    order, others = (torch.randperm(len(items), generator=generator) for items in (pool, known))
    shuffled = ImageSet(known.images[others], known.labels[others], known.class_names)
    after, again = discovered(shuffled, pool[order], only_novel)
    for name in EACH:
        expected = [getattr(before, name)[i] for i in order.tolist()]
        assert list(getattr(after, name)) == expected, name
    assert (after.count, after.diagnosis) == (before.count, before.diagnosis)
    for a, b in zip(after.groups, before.groups, strict=True):
        assert (a.items, a.confidence, a.together, a.verdict, a.sibling, a.neighbours) == (
            *(b.items, b.confidence, b.together, b.verdict, b.sibling, b.neighbours),
        )
        assert torch.equal(pool[order][a.medoid], pool[b.medoid])
    assert again.recognise(pool) == recogniser.recognise(pool)


def test_copies_of_an_item_get_the_same_answer(toy, found):
    _, pool = toy
    _, before, _ = found
    same = [(0, 16), (0, 17), (7, 18)]
    for a, b in same:
        assert torch.equal(pool[a], pool[b])
        for name in EACH:
            assert getattr(before, name)[a] == getattr(before, name)[b], name


def test_further_copies_change_no_other_item_in_a_pool_of_new_things(toy):
    known, pool = toy
    before, _ = discovered(known, pool, True)
    after, _ = discovered(known, torch.cat([pool, pool[3:4], pool[3:4]]), True)
    assert after.confidence[: len(pool)] == before.confidence
    assert len(set(zip(after.labels[: len(pool)], before.labels, strict=True))) == before.count.k
    assert sum(group.items for group in after.groups) == len(pool) + 2


@given(seed=st.integers(0, 10_000), m=st.integers(0, 12))
@settings(max_examples=30, deadline=None)
def test_different_items_are_counted_and_found_again(seed, m):
    generator = np.random.default_rng(seed)
    items = torch.from_numpy(generator.integers(0, 3, (m, 2, 1, 1)).astype(np.uint8))
    unique, copies, place = unique_items(items)
    assert len({tuple(row.flatten().tolist()) for row in items}) == len(unique) == len(copies)
    assert copies.sum() == m
    assert torch.equal(unique[torch.from_numpy(place)], items)
    assert np.array_equal(np.bincount(place, minlength=len(copies)), copies)
    order = torch.from_numpy(generator.permutation(m))
    again, others, _ = unique_items(items[order])
    assert torch.equal(again, unique)
    assert np.array_equal(others, copies)


def test_known_items_come_class_by_class_whatever_their_order():
    world = gaussian_classes(3, 4)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    first, second = in_order(world), in_order(ImageSet(world.images[order], world.labels[order], world.class_names))
    assert first.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert torch.equal(first.images, second.images)
    assert torch.equal(first.labels, second.labels)
