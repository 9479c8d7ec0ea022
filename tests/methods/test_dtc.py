"""DTC: where it begins against scikit-learn, its target and loss against their formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from small_sets import generator

from medi.data.imageset import ImageSet
from medi.methods import Plan
from medi.methods.bag_training import BagLearner, BagStage, ObservedBag
from medi.methods.dtc import DTC, SoftClusters, divergence, principal_components, sharpened
from medi.nn import build
from medi.nn.context import Context
from medi.nn.schedule import Schedule


def points(n: int = 30, d: int = 12, k: int = 4) -> torch.Tensor:
    means = 5 * torch.randn(k, d, generator=generator())
    return means.repeat(-(-n // k), 1)[:n] + torch.randn(n, d, generator=generator(1))


def learner(method: DTC | None = None) -> BagLearner:
    known = ImageSet(points(), torch.arange(30) % 4, tuple("abcd"))
    return BagLearner(method or DTC(), build("mlp", (12,), hidden=(16,)).eval(), known, Plan(4, 5))


def begun(machine: BagLearner, images: torch.Tensor) -> SoftClusters:
    return machine.method.begin(machine.learnt, ObservedBag(images, 4, None, Context(), machine))


def test_components_are_those_of_scikit_learn():
    x = points()
    mean, components = principal_components(x, 4)
    theirs = PCA(4, svd_solver="full").fit(x.numpy())
    np.testing.assert_allclose(mean, theirs.mean_, atol=1e-5)
    signs = np.sign((components.numpy() * theirs.components_).sum(1, keepdims=True))
    np.testing.assert_allclose(components.numpy() * signs, theirs.components_, atol=1e-4)


def test_training_begins_at_k_means_in_the_space_of_the_components_as_in_scikit_learn():
    bag = points()
    machine = learner()
    model = begun(machine, bag)
    features = machine.learnt(bag).detach().numpy()
    projected = PCA(4, svd_solver="full").fit_transform(features)
    theirs = KMeans(4, n_init=10, random_state=0).fit(projected)
    ours = model.project(torch.from_numpy(features)).detach()
    cost = (ours[:, None] - model.centres.detach()).square().sum(2).min(1).values.sum()
    assert float(cost) == pytest.approx(theirs.inertia_, rel=1e-4)
    labels = model(bag).argmax(1).tolist()
    assert len(set(zip(labels, theirs.labels_.tolist(), strict=True))) == 4  # the same clusters under other names


def test_soft_assignments_fall_with_the_distance_to_a_centre_as_the_formula_says():
    torch.manual_seed(0)
    model = SoftClusters(build("mlp", (5,)).eval(), torch.randn(256), torch.randn(3, 256) / 16, torch.randn(3, 3))
    x = torch.randn(6, 5)
    z = model.project(model.network(x))
    q = 1 / (1 + torch.cdist(z, model.centres).square())
    torch.testing.assert_close(model(x).softmax(1), q / q.sum(1, keepdim=True), rtol=1e-4, atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 1000))
def test_the_target_is_its_formula_and_its_rows_are_distributions(n, k, seed):
    q = torch.randn(n, k, generator=generator(seed), dtype=torch.float64).softmax(1)
    target = sharpened(q)
    for i in range(n):
        weights = [float(q[i, c] ** 2 / sum(q[j, c] for j in range(n))) for c in range(k)]
        for c in range(k):
            assert float(target[i, c]) == pytest.approx(weights[c] / sum(weights))


def test_the_divergence_is_the_mean_over_items_or_over_items_and_clusters():
    t, q = (torch.randn(5, 3, generator=generator(i), dtype=torch.float64).softmax(1) for i in range(2))
    total = sum(float(a * (a / b).log()) for a, b in zip(t.flatten(), q.flatten(), strict=True))
    assert float(divergence(t, q.log())) == pytest.approx(total / 5)
    assert float(divergence(t, q.log(), by_cluster=True)) == pytest.approx(total / 15)


def test_a_first_stage_draws_assignments_towards_the_targets_of_the_beginning():
    bag = points(n=40)
    first = BagStage(epochs=60, batch=40, schedule=Schedule(steps=1, rate=1e-2, shape="constant"))
    idle = BagStage(epochs=1, batch=40, schedule=Schedule(steps=1, rate=0.0))
    start, drawn = (
        learner(DTC(stage=idle, first=stage)).adapt(bag, 4, None, Context()).eval() for stage in (None, first)
    )
    with torch.inference_mode():
        target = sharpened(start(bag).softmax(1))
        before, after = (float(divergence(target, model(bag).log_softmax(1))) for model in (start, drawn))
    assert after < before / 2


def test_fewer_dimensions_than_classes_keep_all_that_there_are():
    mean, components = principal_components(torch.randn(20, 3), 6)
    assert mean.shape == (3,)
    assert components.shape == (3, 3)
    assert principal_components(torch.randn(4, 9), 6)[1].shape == (4, 9)
