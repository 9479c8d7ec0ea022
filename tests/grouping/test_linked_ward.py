import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.grouping.branches import Branches, Units
from medi.grouping.class_model import ClassModel
from medi.grouping.engine import Anchors
from medi.grouping.linked_ward import linked_ward
from medi.grouping.ward import ward


@pytest.mark.parametrize("n", [2, 3, 12, 40])
def test_without_links_it_is_wards_tree(n):
    generator = np.random.default_rng(n)
    points, weights = generator.normal(size=(n, 4)), generator.integers(1, 5, n).astype(float)
    plain, linked = ward(points, weights), linked_ward(points, weights, [])
    assert np.array_equal(plain.pairs, linked.pairs)
    assert np.allclose(plain.costs, linked.costs)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_what_belongs_apart_meets_only_when_nothing_else_is_left(seed):
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(9, 3))
    apart = [(0, 1), (2, 3), (1, 4)]
    labels = linked_ward(points, np.ones(9), apart).cut(3)
    assert all(labels[a] != labels[b] for a, b in apart)


def test_the_mean_of_items_that_belong_together_counts_as_all_of_them():
    generator = np.random.default_rng(2)
    points, model = generator.normal(size=(6, 4)) / 2, ClassModel(0.4, 8.0)
    merged = np.concatenate([points[:3].mean(0, keepdims=True), points[3:]])
    whole = Branches.of(Units.single(points), Anchors.none(4))
    sizes = np.array([3, 1, 1, 1])
    joined = Branches.of(Units(merged, np.ones(4, np.int64), sizes), Anchors.none(4))
    of_all = model.evidence(whole.items[-1], whole.squares[-1])
    assert model.evidence(joined.items[-1], joined.squares[-1]) == pytest.approx(of_all)
