"""The posterior over groupings against all groupings, counted one by one."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from groupings import Problem, log_evidence, partition, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from medi.grouping.branches import Branches, Units
from medi.grouping.class_model import ClassModel
from medi.grouping.engine import ALONE, Anchors
from medi.grouping.posterior import Posterior

COPIES = np.array([1, 3, 1, 1, 2, 1])
CASES = [(6, 0, True), (6, 0, False), (6, 1, True), (5, 2, False), (7, 2, True), (7, 2, False), (6, 1, False, COPIES)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]} items, {case[1]} known, {'singles' * case[2]}{case[3:]}")
def case(request):
    n, known, singles, *copies = request.param
    return replace(problem(n, known, singles=singles, seed=n + known), copies=next(iter(copies), None))


def posterior_of(case: Problem, most: int | None = None, **more) -> Posterior:
    branches = case.branches()
    most = len(case.points) if most is None else most
    return Posterior.of(branches, case.model, case.log_rate, singles=case.singles, most=most, **more)


def brute(case: Problem, branches: Branches, number: int | None = None):
    """All groupings, or those into so many groups, and their probabilities."""
    every = [one for one in case.groupings(branches) if number in (None, one.number)]
    weights = np.array([one.log_weight for one in every])
    return every, np.exp(weights - logsumexp(weights))


@given(
    share=st.floats(0.05, 0.95), n=st.integers(1, 6), width=st.integers(1, 4), seed=st.integers(0, 1000)
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_the_evidence_is_the_ratio_of_gaussian_marginal_likelihoods(share, n, width, seed):
    x = np.random.default_rng(seed).normal(0, 1, (n, width)) / np.sqrt(width)
    model = ClassModel(share, float(width))
    found = model.evidence(n, np.square(x.sum(0)).sum())
    assert found == pytest.approx(log_evidence(x, model), rel=1e-6, abs=1e-8)


def test_the_number_of_groups_has_the_probability_of_all_groupings_into_so_many(case):
    posterior = posterior_of(case)
    every, chances = brute(case, posterior.branches)
    found = posterior.numbers()[0]
    expected = np.bincount([one.number for one in every], chances, minlength=len(found))
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_bound_on_the_number_leaves_the_others_in_proportion(case):
    posterior = posterior_of(case, most=2)
    every, _ = brute(case, posterior.branches)
    few = [one for one in every if one.number <= 2]
    weights = np.exp([one.log_weight for one in few])
    found = posterior.numbers()[0]
    expected = np.bincount([one.number for one in few], weights, minlength=len(found)) / weights.sum()
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("number", [None, 2])
def test_a_branch_is_a_group_as_often_as_in_all_groupings_or_in_those_into_so_many(case, number):
    posterior = posterior_of(case)
    every, chances = brute(case, posterior.branches, number)
    expected = np.zeros(len(posterior.ways))
    for one, chance in zip(every, chances, strict=True):
        expected[list(one.branches)] += chance
    numbers = posterior.numbers()[0] if number is None else np.array([0.0, 0.0, 1.0])
    assert posterior.branch_probabilities(numbers) == pytest.approx(expected, abs=1e-9)


def test_pairs_are_as_probable_as_in_all_groupings(case):
    posterior = posterior_of(case)
    every, chances = brute(case, posterior.branches)
    n, numbers = len(case.points), posterior.numbers()[0]
    together = np.zeros((n, n))
    for one, chance in zip(every, chances, strict=True):
        labels = np.array(one.labels)
        together += chance * ((labels[:, None] == labels) & (labels >= 0))
    np.fill_diagonal(together, 1)
    for some in (np.arange(n), np.array([3, 0, 4]), np.array([3])):
        assert posterior.pairs(numbers, some) == pytest.approx(together[np.ix_(some, some)], abs=1e-9)


def test_draws_are_as_frequent_as_groupings_are_probable(case):
    posterior, generator, draws = posterior_of(case), np.random.default_rng(0), 1500
    every, chances = brute(case, posterior.branches)
    expected = Counter()
    for one, chance in zip(every, chances, strict=True):
        expected[one.same()] += chance
    numbers = generator.choice(len(posterior.numbers()[0]), draws, p=posterior.numbers()[0]).tolist()
    found = Counter(partition(labels) for labels in posterior.draws(np.asarray(numbers), generator))
    assert found.keys() <= expected.keys()
    for grouping, chance in expected.items():
        error = np.sqrt(chance * (1 - chance) / draws)
        assert found[grouping] / draws == pytest.approx(chance, abs=5 * error + 2 / draws)


def test_the_best_grouping_into_each_number_is_the_heaviest_of_all(case):
    posterior = posterior_of(case, total=np.maximum)
    every, _ = brute(case, posterior.branches)
    for number in {one.number for one in every}:
        best = max((one for one in every if one.number == number), key=lambda one: one.log_weight)
        assert partition(posterior.best(number)) == best.same()
        assert posterior.ways[-1][0, number] == pytest.approx(best.log_weight)


def test_settings_tried_at_once_are_those_tried_one_by_one():
    case = problem(6, 1, singles=False)
    branches, shares, rates = case.branches(), np.array([0.3, 0.6, 0.9]), np.array([-3.0, -1.0, 0.5])
    at_once = Posterior.of(
        branches, replace(case.model, share=shares[:, None]), rates[:, None], singles=False, most=6
    )  # fmt: skip
    for number, (share, rate) in enumerate(zip(shares.tolist(), rates.tolist(), strict=True)):
        alone = Posterior.of(branches, replace(case.model, share=share), rate, singles=False, most=6)
        assert at_once.numbers()[number] == pytest.approx(alone.numbers()[0])


def test_one_item_is_one_group_or_alone():
    for singles in (True, False):
        case = problem(1, 0, singles=singles)
        posterior = posterior_of(case)
        assert posterior.numbers()[0].tolist() == ([0, 1] if singles else [1])
        assert posterior.best(int(singles)).tolist() == [0 if singles else ALONE]


@given(seed=st.integers(0, 10_000), n=st.integers(2, 12), known=st.integers(0, 3), singles=st.booleans())
@settings(max_examples=40, deadline=None)
def test_probabilities_sum_to_one_and_the_order_of_the_items_does_not_matter(seed, n, known, singles):
    case = problem(n, known, singles=singles, seed=seed)
    order = np.random.default_rng(seed).permutation(n)
    moved = replace(case, points=case.points[order])
    first, second = posterior_of(case), posterior_of(moved)
    assert first.numbers().sum() == pytest.approx(1)
    assert second.numbers() == pytest.approx(first.numbers(), abs=1e-9)
    a, b = (one.pairs(one.numbers()[0], np.arange(n)) for one in (first, second))
    assert b == pytest.approx(a[np.ix_(order, order)], abs=1e-9)
    inside = np.array([one.branch_probabilities(one.numbers()[0])[:n] for one in (first, second)])
    assert inside[1] == pytest.approx(inside[0][order], abs=1e-9)


def test_known_classes_without_items_change_nothing():
    case = problem(5, 0, singles=True)
    far = Anchors(np.full((1, 3), 50.0), np.array([4.0]))
    posterior = Posterior.of(Branches.of(Units.single(case.points), far), case.model, -50.0, singles=True, most=5)
    assert posterior.numbers() == pytest.approx(posterior_of(case).numbers(), abs=1e-9)


def test_the_mean_of_items_that_belong_together_counts_as_all_of_them():
    generator = np.random.default_rng(2)
    points, model = generator.normal(size=(6, 4)) / 2, ClassModel(0.4, 8.0)
    merged = np.concatenate([points[:3].mean(0, keepdims=True), points[3:]])
    whole = Branches.of(Units.single(points), Anchors.none(4))
    sizes = np.array([3, 1, 1, 1])
    joined = Branches.of(Units(merged, np.ones(4, np.int64), sizes), Anchors.none(4))
    of_all = model.evidence(whole.items[-1], whole.squares[-1])
    assert model.evidence(joined.items[-1], joined.squares[-1]) == pytest.approx(of_all)
