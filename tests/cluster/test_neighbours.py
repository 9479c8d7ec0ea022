"""Moves towards neighbours, and agreement with them: against scikit-learn and loops, and by their promises."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from medi.cluster.neighbours import agreement, nearest, towards_neighbours
from medi.errors import InputError


def some_points(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_move_equals_its_formula_written_with_loops():
    points = some_points(2, 7, 3)
    moved = towards_neighbours(points, neighbours=2, pull=0.3, moves=1).numpy()
    for episode, found in zip(points.numpy(), moved, strict=True):
        distances = ((episode[:, None] - episode[None]) ** 2).sum(2)
        nearest = [sorted((j for j in range(7) if j != i), key=lambda j: distances[i, j])[:2] for i in range(7)]
        scale = np.mean([distances[i, j] for i in range(7) for j in nearest[i]])
        for i in range(7):
            weights = np.exp([-distances[i, j] / scale for j in nearest[i]])
            mean = (weights[:, None] * episode[nearest[i]]).sum(0) / weights.sum()
            assert np.allclose(found[i], 0.7 * episode[i] + 0.3 * mean)


def test_groups_contract_and_stay_apart():
    groups = torch.arange(3).repeat(10)
    points = 10 * some_points(1, 3, 4, seed=1)[:, groups] + some_points(1, 30, 4)
    moved = towards_neighbours(points, neighbours=4, pull=0.5, moves=5)

    def spread(items: torch.Tensor) -> float:
        return float(torch.stack([items[0, groups == c].var(0).sum() for c in range(3)]).mean())

    assert spread(moved) < 0.5 * spread(points)
    before, after = (torch.stack([x[0, groups == c].mean(0) for c in range(3)]) for x in (points, moved))
    assert (before - after).norm(dim=1).max() < 1


@pytest.mark.parametrize("change", [{"pull": 0.0}, {"moves": 0}])
def test_no_pull_and_no_move_change_nothing(change):
    points = some_points(2, 6, 3)
    assert torch.allclose(towards_neighbours(points, **{"neighbours": 3, "pull": 0.5, "moves": 2} | change), points)


def test_too_few_points_and_equal_points_are_no_trouble():
    single = some_points(3, 1, 4)
    assert torch.equal(towards_neighbours(single, neighbours=5, pull=0.5, moves=3), single)
    equal = torch.ones(1, 4, 2)
    assert torch.equal(towards_neighbours(equal, neighbours=9, pull=0.5, moves=3), equal)


@pytest.mark.parametrize("bad", [{"neighbours": 0}, {"pull": 1.5}, {"points": torch.zeros(3, 2)}])
def test_what_cannot_be_moved_says_why(bad):
    good = {"points": some_points(1, 4, 2), "neighbours": 2, "pull": 0.5, "moves": 1} | bad
    with pytest.raises(InputError, match="at least 1 neighbour"):
        towards_neighbours(good.pop("points"), **good)


def test_the_nearest_points_are_those_of_scikit_learn_however_many_rows_at_a_time(monkeypatch):
    points = some_points(50, 3)
    expected = NearestNeighbors(n_neighbors=4).fit(points.numpy()).kneighbors(return_distance=False)
    assert np.array_equal(nearest(points, 4), expected)
    monkeypatch.setattr("medi.cluster.neighbours.episodes_at_once", lambda *_: 7)
    assert np.array_equal(nearest(points, 4), expected)


def test_a_point_is_not_its_own_neighbour_even_beside_a_copy_of_itself():
    points = torch.zeros(5, 2, dtype=torch.float64)
    assert (nearest(points, 4).sort().values == torch.tensor([[j for j in range(5) if j != i] for i in range(5)])).all()


@pytest.mark.parametrize("count", [0, 5])
def test_more_neighbours_than_there_are_or_none_are_refused(count):
    with pytest.raises(InputError, match=f"{count} neighbours of 5 points"):
        nearest(some_points(5, 2), count)


def test_agreement_is_its_formula_written_with_loops():
    points, labels = some_points(12, 2), torch.tensor([0, 1, 2, 0, 1, 2, 0, 0, 0, 1, 1, 2])
    near = nearest(points, 3)
    shared = np.mean([float(labels[i] == labels[j]) for i in range(12) for j in near[i]])
    chance = np.mean([float(a == b) for a in labels for b in labels])
    assert agreement(labels, near) == pytest.approx((shared - chance) / (1 - chance))


def in_groups() -> tuple[torch.Tensor, torch.Tensor]:
    """Four groups of 25 far apart, and the neighbours of their points."""
    groups = torch.arange(4).repeat(25)
    return groups, nearest(20 * some_points(4, 3, seed=1)[groups] + some_points(100, 3), 5)


def test_right_groups_agree_with_neighbours_and_cut_or_random_ones_or_a_single_one_do_not():
    groups, near = in_groups()
    random = torch.randint(4, (100,), generator=torch.Generator().manual_seed(0))
    assert agreement(groups, near) == 1
    assert agreement(groups * 2 + torch.arange(100) // 50, near) < 0.7  # every group cut at random
    assert abs(agreement(random, near)) < 0.15
    assert agreement(torch.zeros(100, dtype=torch.int64), near) == 0


def test_agreement_does_not_see_that_groups_have_merged():
    groups, near = in_groups()
    assert agreement(groups // 2, near) == 1


@given(st.permutations(range(5)))
def test_agreement_does_not_depend_on_the_names_of_clusters(names):
    points, labels = some_points(30, 2), torch.arange(30) % 5
    near = nearest(points, 3)
    assert agreement(torch.tensor(names)[labels], near) == pytest.approx(agreement(labels, near))
