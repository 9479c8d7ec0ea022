import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage
from sklearn.metrics import adjusted_rand_score

from medi.core.errors import InputError
from medi.grouping.ward import Tree, ward


def points(n: int, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def below(tree: Tree, node: int) -> set[int]:
    if node < tree.points:
        return {node}
    return set().union(*(below(tree, int(child)) for child in tree.pairs[node - tree.points]))


def clusters(tree: Tree) -> set[frozenset[int]]:
    return {frozenset(below(tree, tree.points + number)) for number in range(len(tree.pairs))}


@given(n=st.integers(2, 25), d=st.integers(1, 5), seed=st.integers(0, 10_000), weight=st.sampled_from([1.0, 3.0]))
@settings(max_examples=40, deadline=None)
def test_the_tree_is_that_of_scipy_whatever_all_points_weigh(n, d, seed, weight):
    x = points(n, d, seed)
    tree, theirs = ward(x, np.full(n, weight)), linkage(x, "ward")
    assert tree.costs == pytest.approx(weight * theirs[:, 2] ** 2 / 2, rel=1e-6, abs=1e-9)
    assert clusters(tree) == clusters(Tree(theirs[:, :2].astype(np.int64), theirs[:, 2]))


@given(n=st.integers(2, 10), seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_weight_counts_as_so_many_copies_of_a_point(n, seed):
    x = points(n, 3, seed)
    weights = np.random.default_rng(seed).integers(1, 5, n)
    tree, repeated = ward(x, weights), ward(np.repeat(x, weights, 0), np.ones(weights.sum()))
    assert tree.costs == pytest.approx(repeated.costs[-(n - 1) :])
    for k in range(1, n + 1):
        assert adjusted_rand_score(np.repeat(tree.cut(k), weights), repeated.cut(k)) == 1


@given(n=st.integers(1, 20), seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_every_cluster_is_a_run_of_the_leaf_order(n, seed):
    tree = ward(points(n, 2, seed), np.ones(n))
    order = tree.leaf_order().tolist()
    assert sorted(order) == list(range(n))
    for members in clusters(tree):
        places = sorted(order.index(member) for member in members)
        assert places == list(range(places[0], places[0] + len(members)))


@given(n=st.integers(1, 20), k=st.integers(1, 20), copies=st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_cut_has_exactly_as_many_clusters_as_asked_and_the_largest_first(n, k, copies):
    x = np.ones((n, 2)) if copies else points(n, 2)
    if k > n:
        with pytest.raises(InputError, match="cannot be cut"):
            ward(x).cut(k)
        return
    sizes = np.bincount(ward(x).cut(k), minlength=k)
    assert len(sizes) == k
    assert (sizes > 0).all()
    assert (np.diff(sizes) <= 0).all()


@pytest.mark.parametrize("n", [2, 3, 12, 40])
def test_where_what_belongs_apart_is_merged_last_anyway_the_tree_is_the_same(n):
    generator = np.random.default_rng(n)
    x, weights = generator.normal(size=(n, 4)), generator.integers(1, 5, n).astype(float)
    plain = ward(x, weights)
    a, b = (min(below(plain, int(node))) for node in plain.pairs[-1])
    linked = ward(x, weights, [(a, b)])
    assert np.array_equal(plain.pairs, linked.pairs)
    assert np.allclose(plain.costs, linked.costs)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_what_belongs_apart_meets_only_when_nothing_else_is_left(seed):
    apart = [(0, 1), (2, 3), (1, 4)]
    labels = ward(points(9, seed=seed), apart=apart).cut(3)
    assert all(labels[a] != labels[b] for a, b in apart)
