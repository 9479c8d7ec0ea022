"""CATA's views: the loss against Eq. 1 written with loops, what the heads learn, and the sampler made of them."""

from dataclasses import replace
from itertools import combinations

import pytest
import torch
from small_sets import blobs as small_blobs
from small_sets import generator
from torch.nn import functional

from medi.core.errors import InputError
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods import Plan
from medi.methods.cata_views import ViewsConfig, find_views, overlap, train_views, view_loss
from medi.nn.context import Context
from medi.nn.schedule import Schedule
from medi.tasks.episodes import UniformSampler

QUICK = ViewsConfig(network="mlp", hidden=16, batch=64, looks=4, schedule=Schedule(steps=60, rate=0.01))


def blobs(classes: int = 4) -> ImageSet:
    return small_blobs(classes, each=30, seed=1)


def sampler(name: str, context: Context | None = None, observations: int = 2, queries: int = 3) -> UniformSampler:
    plan = Plan(3, observations, sampler=name, views=QUICK, context=context or Context())
    return plan.make_sampler(blobs(), 3, observations, queries)


def test_the_overlap_is_the_mean_absolute_dot_product_over_pairs_of_heads():
    weights = [torch.randn(3, 5, generator=generator(i), dtype=torch.float64) for i in range(4)]
    products = [abs(float(row @ other)) for a, b in combinations(weights, 2) for row in a for other in b]
    assert float(overlap(weights)) == pytest.approx(sum(products) / len(products))


def test_the_loss_is_equation_1_written_with_loops():
    logits = torch.randn(5, 3, 4, generator=generator())
    labels = torch.tensor([0, 1, 2, 3, 0])
    weights = [torch.randn(2, 6, generator=generator(i)) for i in range(3)]
    entropy = sum(-logits[i, m].log_softmax(0)[labels[i]] for i in range(5) for m in range(3)) / 15
    # The paper: 2 lambda / (M (M - 1)) times the sum over pairs.
    pairs = sum((a @ b.T).abs().mean() for a, b in combinations(weights, 2))
    expected = entropy + 2 * 0.3 / (3 * 2) * pairs
    assert torch.allclose(view_loss(logits, labels, weights, ViewsConfig(orthogonality=0.3)), expected)


def test_views_come_from_the_trained_heads():
    known = blobs()
    context = Context()
    views = find_views(known, QUICK, context, Augmentation())
    model, _ = train_views(known, QUICK, context, Augmentation())
    with torch.no_grad():
        probabilities = model.eval()(known.images).softmax(2)
    own = torch.stack([probabilities[i, :, label] for i, label in enumerate(known.labels)])
    assert torch.allclose(views.log_probabilities.exp(), own, atol=1e-5)


def test_specialising_trains_the_best_head_of_each_item_alone():
    logits = torch.randn(4, 2, 3, generator=generator())
    labels = torch.tensor([0, 1, 2, 0])
    entropies = torch.stack([functional.cross_entropy(logits[:, m], labels, reduction="none") for m in range(2)])
    orthogonal = [torch.eye(4)[:1], torch.eye(4)[1:2]]
    assert torch.allclose(
        view_loss(logits, labels, orthogonal, ViewsConfig(specialise=1.0)), entropies.min(0).values.mean()
    )


@pytest.mark.parametrize(
    ("classes", "config", "message"),
    [(4, replace(QUICK, heads=1), "CATA with 1 view"), (1, QUICK, "2 known classes or more")],
)
def test_what_cannot_have_views_is_refused_with_the_cure(classes, config, message):
    with pytest.raises(InputError, match=message) as error:
        find_views(blobs(classes), config, Context(), Augmentation())
    assert "--sampler uniform" in str(error.value)


def test_too_few_images_for_a_task_are_refused_before_training(tmp_path):
    with pytest.raises(InputError, match="20 observations"):
        sampler("cata", Context(folder=tmp_path), observations=20, queries=15)
    assert not list(tmp_path.iterdir())


def test_the_uniform_sampler_is_made_by_name_and_an_unknown_one_suggests_the_nearest():
    assert type(sampler("uniform")) is UniformSampler
    with pytest.raises(InputError, match="did you mean 'uniform'"):
        sampler("unifrom")
