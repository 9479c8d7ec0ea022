"""UNO: Sinkhorn-Knopp against its plain form, the loss against loops, its gradients against finite differences."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_sets import KNOWN, NOVEL, bags, cosines, generator
from torch.nn.functional import one_hot

from medi.core.errors import InputError
from medi.methods import Plan
from medi.methods.bag_training import BagStage
from medi.methods.pretraining import Pretraining
from medi.methods.simgcd import SimGCD
from medi.methods.uno import UNO, pseudo_labels
from medi.nn.schedule import Schedule

QUICK = UNO(
    Pretraining("classes", "mlp", batch=64, schedule=Schedule(steps=60, rate=1e-2)),
    BagStage(1, 100, least_steps=25, schedule=Schedule(steps=1, rate=1e-2)),
    known=32,
    hidden=64,
)


def loss_of(
    view: torch.Tensor, other: torch.Tensor, labels: torch.Tensor, classes: int, told: torch.Tensor | None = None
) -> torch.Tensor:
    model = SimpleNamespace(outputs=lambda views: (None, views), known_classes=classes)
    return UNO().loss(model, torch.cat([view, other]), labels, 0.0, told)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 1000), st.integers(1, 4), st.sampled_from([0.05, 0.5, 3.0]))
def test_pseudo_labels_are_those_of_the_plain_iteration(n, k, seed, rounds, epsilon):
    scores = cosines(n, k, seed)
    plain = np.exp(scores.numpy() / epsilon)
    for _ in range(rounds):
        plain /= plain.sum(0, keepdims=True) * k
        plain /= plain.sum(1, keepdims=True) * n
    np.testing.assert_allclose(pseudo_labels(scores, epsilon, rounds), n * plain, rtol=1e-6, atol=1e-12)


def test_a_small_epsilon_overflows_nothing():
    shares = pseudo_labels(cosines(6, 3).float(), 1e-4, 3)
    assert shares.isfinite().all()
    torch.testing.assert_close(shares.sum(1), torch.ones(6))


def test_groups_of_unequal_size_are_not_what_the_pseudo_labels_say():
    # What `assumes_equal_sizes` stands for: even where the network is sure, a large group is torn apart.
    groups = torch.tensor([0] * 8 + [1])
    shares = pseudo_labels(one_hot(groups, 2).double(), 0.5, 50)
    assert float(shares[:8, 1].sum()) > 3
    assert UNO.assumes_equal_sizes


def test_the_loss_is_its_formula_written_with_loops():
    view, other, labels = cosines(7, 5), cosines(7, 5, seed=1), torch.tensor([2, 0, 1])
    total = 0.0
    for outputs, source in ((view, other), (other, view)):
        pseudo = pseudo_labels(source[3:, 3:], 0.05, 3)
        for i in range(7):
            target = [0.0] * 5
            if i < 3:
                target[int(labels[i])] = 1.0
            else:
                target[3:] = pseudo[i - 3].tolist()
            weights = [math.exp(float(value) / 0.1) for value in outputs[i]]
            total -= sum(t * math.log(w / sum(weights)) for t, w in zip(target, weights, strict=True)) / 14
    assert float(loss_of(view, other, labels, 3)) == pytest.approx(total)


def test_gradients_are_those_of_finite_differences_with_pseudo_labels_held_fixed():
    labels, at = torch.tensor([0, 1]), [cosines(5, 4), cosines(5, 4, seed=1)]
    views = [view.clone().requires_grad_() for view in at]
    loss_of(*views, labels, 2).backward()
    for mine, view, source in zip(views, at, at[::-1], strict=True):
        fixed = pseudo_labels(source[2:, 2:], 0.05, 3)
        for place in ((0, 0), (1, 3), (3, 1), (4, 3)):
            step = torch.zeros_like(view)
            step[place] = 1e-6
            above, below = (loss_of(moved, moved, labels, 2, fixed) / 2 for moved in (view + step, view - step))
            assert float(mine.grad[place]) == pytest.approx(float(above - below) / 2e-6, rel=1e-4, abs=1e-7)


def test_the_oracle_has_its_groups_for_targets():
    view, labels, told = cosines(4, 4), torch.tensor([0, 1]), torch.eye(2, dtype=torch.float64)
    all_labels = torch.tensor([0, 1, 2, 3])
    expected = torch.nn.functional.cross_entropy(view / 0.1, all_labels)
    assert float(loss_of(view, view, labels, 2, told)) == pytest.approx(float(expected))


def test_known_classes_begin_at_their_means_and_are_learnt_on():
    learner = QUICK.fit(KNOWN, Plan(way=3, observations=5))
    points = torch.nn.functional.normalize(learner.embedding(KNOWN.images), dim=1)
    for number, mean in enumerate(learner.learnt.means):
        torch.testing.assert_close(mean, points[KNOWN.labels == number].mean(0), rtol=1e-4, atol=1e-5)
    (model,) = learner.discover(NOVEL.images, bags(1)[0], 3, generator()).models
    assert not torch.equal(model.known.directions, learner.learnt.means)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, "epsilon=0: give a number above 0"),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"temperature": -0.1}, "temperature=-0.1: give a number above 0"),
        ({"rounds": 0}, "rounds=0"),
        ({"known": 0}, "known=0"),
        ({"hidden": 0}, "hidden=0"),
        ({"teacher": 0.0}, "teacher=0: give a number above 0"),
        ({"class_contrast": 0.0}, "class_contrast=0"),
        ({"labelled": 1.5}, "labelled=1.5 is no share"),
        ({"entropy": -1.0}, "neither may be negative"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings, message):
    kind = UNO if hasattr(UNO, next(iter(settings))) else SimGCD
    with pytest.raises(InputError, match=message):
        kind(**settings)
