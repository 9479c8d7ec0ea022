"""What `medi discover` is compared with: against scikit-learn, brute force, and classes that are plainly there."""

import numpy as np
import pytest
import torch
from alternatives import (
    ALTERNATIVES,
    BAG_CLASSES,
    BAG_ITEMS,
    NAMING,
    Question,
    apart,
    best_threshold,
    by_silhouette,
    hdbscan,
    in_own_directions,
    known_bags,
    known_distance,
    photo_tool,
    ward_cut,
)
from blobs import blobs, known_blobs
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score, pairwise_distances, silhouette_score

from medi.metrics import acc

KNOWN = 8


def question(points: np.ndarray, number: int) -> Question:
    return Question(known_blobs(KNOWN), torch.from_numpy(points), number, seed=0)


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_classes_that_are_plainly_there_are_found(name):
    points, labels = blobs(range(KNOWN, KNOWN + 4), each=4, seed=1)
    assert acc(labels, apart(ALTERNATIVES[name](question(points, 4)))) == 1


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_a_pool_of_one_photo_is_one_group_or_alone(name):
    points, _ = blobs(range(KNOWN, KNOWN + 1), each=1)
    assert ALTERNATIVES[name](question(points, 1)).tolist() in ([0], [-1])


@pytest.mark.parametrize("name", ["HDBSCAN", "photo tool", "photo tool, tuned"])
def test_a_one_off_is_left_alone(name):
    points, _ = blobs(range(KNOWN, KNOWN + 3), each=4, seed=1)
    single, _ = blobs(range(KNOWN + 5, KNOWN + 6), each=1)
    labels = ALTERNATIVES[name](question(np.concatenate([points, single]), 4))
    assert labels[-1] == -1
    assert (labels[:-1] >= 0).all()


@pytest.mark.parametrize("name", sorted(NAMING))
def test_photos_of_known_classes_are_named_and_new_ones_are_not(name):
    new, classes = blobs(range(KNOWN, KNOWN + 4), each=4, seed=1)
    old, names = blobs(range(3), each=2, seed=2)
    labels = ALTERNATIVES[name](question(np.concatenate([new, old]), 7))
    assert labels[len(new) :].tolist() == (-2 - names).tolist()
    assert acc(classes, labels[: len(new)]) == 1


@pytest.mark.parametrize("seed", range(3))
def test_ward_and_its_number_are_those_of_scikit_learn(seed):
    points = np.random.default_rng(seed).standard_normal((12, 3))
    cuts = {k: AgglomerativeClustering(k).fit_predict(points) for k in range(2, 12)}
    assert all(adjusted_rand_score(cuts[k], ward_cut(points)(k)) == 1 for k in cuts)
    best = max(cuts, key=lambda k: silhouette_score(points, cuts[k]))
    assert adjusted_rand_score(cuts[best], by_silhouette(points, ward_cut(points))) == 1


@pytest.mark.parametrize("seed", range(3))
def test_the_photo_tools_rule_is_what_its_manual_says(seed):
    points = np.random.default_rng(seed).standard_normal((30, 4))
    labels, near = photo_tool(points), pairwise_distances(points, metric="cosine") <= 0.5
    core = near.sum(1) >= 3  # the photo itself counts
    linked = np.linalg.matrix_power((near & core & core[:, None]).astype(float), 30) > 0
    assert ((labels[core][:, None] == labels[core]) == linked[np.ix_(core, core)]).all()
    assert ((labels == -1) == ~(near & core).any(1)).all()


def test_too_few_photos_for_a_density_are_alone():
    assert hdbscan(np.eye(2)).tolist() == [-1, -1]


def test_fewer_dimensions_leave_distances_as_they_are():
    points = np.random.default_rng(0).standard_normal((6, 40))
    assert in_own_directions(points).shape == (6, 6)
    assert np.allclose(pairwise_distances(in_own_directions(points)), pairwise_distances(points))


def test_the_threshold_is_the_best_of_all():
    generator = np.random.default_rng(0)
    distance, belongs = generator.random(40), generator.random(40) < 0.4

    def balanced(threshold: float) -> float:
        return (distance[belongs] <= threshold).mean() + (distance[~belongs] > threshold).mean()

    assert balanced(best_threshold(distance, belongs)) == pytest.approx(max(map(balanced, distance)))


def test_the_distance_of_known_photos_lies_between_classes_and_strangers():
    assert 0 < known_distance(known_blobs(KNOWN), seed=0) < 2**0.5


def test_a_distance_is_chosen_on_small_classes_of_known_photos():
    known = known_blobs(BAG_CLASSES + 2)
    for points, labels in known_bags(known, np.random.default_rng(0)):
        sizes = np.bincount(labels)
        assert (sizes > 0).sum() == BAG_CLASSES
        assert sizes.max() <= BAG_ITEMS
        assert {row.tobytes() for row in points.astype(np.float32)} <= {row.tobytes() for row in known.images.numpy()}


def test_what_is_alone_becomes_a_group_of_its_own():
    assert apart(np.array([0, -1, 0, -1, 1])).tolist() == [0, 2, 0, 3, 1]
    assert apart(np.array([-1, -1])).tolist() == [0, 1]
