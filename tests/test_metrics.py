from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from medi.core.errors import InputError
from medi.metrics import acc, ari, calibration_error, chance, nmi, rightly_assigned, score_episodes

partitions = st.integers(1, 30).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(-3, 5), min_size=n, max_size=n) for _ in range(2)))
)


def acc_by_brute_force(labels, clusters):
    """Try every injective map between classes and clusters, from the fewer to the more."""
    few, many = sorted((set(labels), set(clusters)), key=len)
    pairs = list(zip(labels, clusters, strict=True))
    if len(set(labels)) > len(set(clusters)):
        pairs = [(b, a) for a, b in pairs]
    few, many = sorted({a for a, _ in pairs}), sorted({b for _, b in pairs})
    maps = (dict(zip(few, image, strict=True)) for image in permutations(many, len(few)))
    return max(sum(mapping[a] == b for a, b in pairs) for mapping in maps) / len(pairs)


@given(partitions)
@settings(max_examples=200, deadline=None)
def test_nmi_and_ari_equal_scikit_learns(partition):
    assert nmi(*partition) == pytest.approx(normalized_mutual_info_score(*partition), abs=1e-12)
    assert ari(*partition) == pytest.approx(adjusted_rand_score(*partition), abs=1e-12)


@given(
    st.integers(1, 15).flatmap(
        lambda n: st.tuples(*(st.lists(st.integers(0, top), min_size=n, max_size=n) for top in (4, 3)))
    )
)
@settings(max_examples=60, deadline=None)
def test_acc_equals_brute_force_over_all_maps(partition):
    assert acc(*partition) == pytest.approx(acc_by_brute_force(*partition))
    assert acc(*partition[::-1]) == pytest.approx(acc_by_brute_force(*partition))


@given(partitions, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_neither_the_names_of_clusters_nor_the_order_of_items_matter(partition, random):
    labels, clusters = partition
    names = list(range(-3, 6))
    random.shuffle(names)
    renamed = [100 * names[cluster + 3] for cluster in clusters]
    order = random.sample(range(len(labels)), len(labels))
    for score in (acc, nmi, ari):
        shuffled = score([labels[i] for i in order], [renamed[i] for i in order])
        assert shuffled == pytest.approx(score(labels, clusters), abs=1e-12)


def test_many_episodes_score_as_one_after_the_other():
    rng = np.random.default_rng(0)
    labels, clusters = rng.integers(0, 659, (40, 25)), rng.integers(-2, 7, (40, 25))
    scores = score_episodes(labels, clusters)
    for i in range(40):
        expected = acc(labels[i], clusters[i]), nmi(labels[i], clusters[i]), ari(labels[i], clusters[i])
        assert (scores.acc[i], scores.nmi[i], scores.ari[i]) == pytest.approx(expected, abs=1e-12)


def test_tensors_and_lists_are_fine():
    assert acc(torch.tensor([0, 0, 1]), [5, 5, 9]) == 1
    assert score_episodes(torch.tensor([[0, 1]]), torch.tensor([[1, 0]])).acc.tolist() == [1]


@pytest.mark.parametrize(
    ("sizes", "clusters", "percent"),
    [([15] * 5, 5, 31.3), ([15] * 20, 20, 16.6), ([1000] * 5, 5, 21.3), ([100] * 20, 20, 9.1)],
)
def test_chance_is_the_level_the_protocol_states(sizes, clusters, percent):
    assert 100 * chance(sizes, clusters) == pytest.approx(percent, abs=0.15)


def test_chance_agrees_with_scoring_random_clusters():
    labels = np.tile(np.repeat(np.arange(4), [3, 5, 7, 9]), (3000, 1))
    clusters = np.random.default_rng(1).integers(0, 3, labels.shape)
    assert chance([3, 5, 7, 9], 3) == pytest.approx(score_episodes(labels, clusters).acc.mean(), abs=0.01)


@pytest.mark.parametrize("score", [acc, nmi, ari])
def test_bad_input_is_refused_with_the_cure(score):
    with pytest.raises(InputError, match="at least one item"):
        score([], [])
    with pytest.raises(InputError, match="differ in shape"):
        score([0, 1], [0])
    with pytest.raises(InputError, match="score_episodes"):
        score([[0, 1]], [[0, 1]])


def test_episodes_and_chances_that_are_none_are_refused():
    with pytest.raises(InputError, match="use acc"):
        score_episodes([0, 1], [0, 1])
    with pytest.raises(InputError, match="at least one item"):
        score_episodes(np.zeros((0, 5)), np.zeros((0, 5)))
    with pytest.raises(InputError, match="at least 1"):
        chance([], 3)


@given(partitions)
@settings(max_examples=100, deadline=None)
def test_the_share_of_rightly_assigned_items_is_acc_and_each_cluster_has_one_class(partition):
    labels, clusters = (np.array(part) for part in partition)
    right = rightly_assigned(labels[None], clusters[None])[0]
    assert right.mean() == pytest.approx(acc(labels, clusters))
    for groups, others in ((labels, clusters), (clusters, labels)):
        assert all(len(set(others[right & (groups == group)])) <= 1 for group in set(groups))


def test_calibration_error_is_the_mean_gap_of_the_bins():
    confidence = np.array([0.92, 0.96, 0.98, 0.31, 0.39])
    right = np.array([True, True, False, False, True])
    expected = (3 * abs(confidence[:3].mean() - 2 / 3) + 2 * abs(0.35 - 0.5)) / 5
    assert calibration_error(confidence, right) == pytest.approx(expected)
    assert calibration_error([1.0, 0.0], [True, False]) == 0
    assert calibration_error([1.0, 1.0], [False, False]) == 1


def test_answers_that_come_true_as_often_as_stated_are_calibrated():
    draw = np.random.default_rng(0)
    confidence = draw.random(200_000)
    assert calibration_error(confidence, draw.random(200_000) < confidence) < 0.01


@pytest.mark.parametrize(
    ("confidence", "right"), [([], []), ([0.5], [True, False]), ([1.5], [True]), ([np.nan], [True])]
)
def test_confidences_that_are_none_are_refused(confidence, right):
    with pytest.raises(InputError, match="confidence"):
        calibration_error(confidence, right)
