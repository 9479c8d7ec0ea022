import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from medi.cluster.ward import by_size, ward
from medi.errors import InputError


def points(n: int, d: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def sum_of_squares(x: np.ndarray, labels: np.ndarray) -> float:
    return sum(((x[labels == c] - x[labels == c].mean(0)) ** 2).sum() for c in np.unique(labels))


@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_cuts_are_those_of_scipy(k):
    x = points(12)
    theirs = fcluster(linkage(x.numpy(), "ward"), k, "maxclust")
    assert adjusted_rand_score(theirs, ward(x).cut(k)) == 1


def test_the_cost_of_a_merge_is_what_the_sum_of_squares_grows_by():
    x, tree = points(15), ward(points(15))
    for k in range(1, 15):
        grown = sum_of_squares(x.numpy(), tree.cut(k)) - sum_of_squares(x.numpy(), tree.cut(k + 1))
        assert tree.costs[15 - k - 1] == pytest.approx(grown)


def test_the_sizes_of_a_merge_are_those_of_its_clusters():
    tree = ward(points(9))
    assert tree.sizes[-1].sum() == 9
    assert tree.sizes[0].tolist() == [1, 1]
    assert sorted(tree.sizes[-1].tolist()) == sorted(np.bincount(tree.cut(2)).tolist())


@given(n=st.integers(1, 20), k=st.integers(1, 20), copies=st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_cut_has_exactly_as_many_clusters_as_asked_and_the_largest_first(n, k, copies):
    x = torch.ones(n, 2) if copies else points(n, 2)
    if k > n:
        with pytest.raises(InputError, match="cannot be cut"):
            ward(x).cut(k)
        return
    sizes = np.bincount(ward(x).cut(k), minlength=k)
    assert len(sizes) == k
    assert (sizes > 0).all()
    assert (np.diff(sizes) <= 0).all()


def test_groups_of_equal_size_are_numbered_by_their_first_item():
    assert by_size(np.array([7, 3, 3, 7, 9, 9, 9])).tolist() == [1, 2, 2, 1, 0, 0, 0]
