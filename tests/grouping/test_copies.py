"""The order of the items changes nothing, to the last item and the last bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import gaussian_classes, split

from medi.core.workplace import Workplace
from medi.data.items import Items
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import Outcome, discover_groups
from medi.grouping.copies import unique_items

pytestmark = pytest.mark.usefixtures("few_bags")
EACH = ("kinds", "labels", "known", "confidence", "doubtful", "nearest_known", "positions")


def discovered(known: Items, pool: np.ndarray, only_novel: bool) -> Outcome:
    return discover_groups(known, pool, DiscoveryConfig(only_novel=only_novel), Workplace())


@pytest.fixture(scope="module")
def toy() -> tuple[Items, np.ndarray]:
    """Five known classes, and a pool with new things, a known one, copies, and items at the same distance."""
    known, novel = split(gaussian_classes(8, 5, width=6, apart=4.0), 5)
    corners = np.array([[x, y, 0, 0, 0, 0] for x in (30, -30) for y in (1, -1)], np.float32)
    return known, np.concatenate([novel.values, known.values[:1] + 0.1, novel.values[[0, 0, 7]], corners])


@pytest.fixture(scope="module", params=[True, False], ids=["only novel", "mixed"])
def found(request, toy) -> tuple[bool, Outcome]:
    return request.param, discovered(*toy, request.param)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_the_order_of_the_items_changes_nothing(toy, found, seed):
    known, pool = toy
    only_novel, before = found
    generator = np.random.default_rng(seed)
    order, others = (generator.permutation(len(items)) for items in (pool, known))
    after = discovered(known.where(others), pool[order], only_novel)
    for name in EACH:
        expected = [getattr(before.discovery, name)[i] for i in order.tolist()]
        assert list(getattr(after.discovery, name)) == expected, name
    for name in ("count", "diagnosis", "representation_scores"):
        assert getattr(after.discovery, name) == getattr(before.discovery, name), name
    for a, b in zip(after.discovery.groups, before.discovery.groups, strict=True):
        assert replace(a, medoid=0) == replace(b, medoid=0)
        assert np.array_equal(pool[order][a.medoid], pool[b.medoid])
    assert after.recogniser.recognise(pool) == before.recogniser.recognise(pool)


def test_copies_of_an_item_get_the_same_answer(toy, found):
    _, pool = toy
    for a, b in [(0, 16), (0, 17), (7, 18)]:
        assert np.array_equal(pool[a], pool[b])
        for name in EACH:
            said = getattr(found[1].discovery, name)
            assert said[a] == said[b], name


def test_further_copies_change_no_other_item_in_a_pool_of_new_things(toy):
    known, pool = toy
    before = discovered(known, pool, True).discovery
    after = discovered(known, np.concatenate([pool, pool[[3, 3]]]), True).discovery
    assert after.confidence[: len(pool)] == before.confidence
    assert len(set(zip(after.labels[: len(pool)], before.labels, strict=True))) == before.count.k
    assert sum(group.items for group in after.groups) == len(pool) + 2


@given(seed=st.integers(0, 10_000), m=st.integers(0, 12))
@settings(max_examples=30, deadline=None)
def test_different_items_are_counted_and_found_again(seed, m):
    generator = np.random.default_rng(seed)
    items = generator.integers(0, 3, (m, 2, 1, 1)).astype(np.uint8)
    unique, copies, place = unique_items(items)
    assert len({row.tobytes() for row in items}) == len(unique) == len(copies)
    assert copies.sum() == m
    assert np.array_equal(unique[place], items)
    assert np.array_equal(np.bincount(place, minlength=len(copies)), copies)
    again, others, _ = unique_items(items[generator.permutation(m)])
    assert np.array_equal(again, unique)
    assert np.array_equal(others, copies)
