from dataclasses import replace
from itertools import combinations

import pytest
import torch
from torch.nn import functional

from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.cata_views import (
    MultiView,
    Views,
    ViewsConfig,
    find_views,
    mean_cosine,
    overlap,
    train_views,
    view_loss,
)
from medi.nets import build
from medi.runtime.context import Context
from medi.tasks import CataSampler, make_sampler
from medi.train.schedule import Schedule

QUICK = ViewsConfig(network="mlp", hidden=16, batch=64, looks=4, schedule=Schedule(steps=60, rate=0.01))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_views(n: int, heads: int = 3, seed: int = 0) -> Views:
    return Views(torch.rand(n, heads, generator=generator(seed)).log())


def blobs(classes: int = 4, each: int = 30) -> ImageSet:
    means = 4 * torch.randn(classes, 8, generator=generator(1))
    items = means.repeat_interleave(each, 0) + torch.randn(classes * each, 8, generator=generator(2))
    return ImageSet(items, torch.arange(classes).repeat_interleave(each), tuple(map(str, range(classes))))


def test_the_overlap_is_the_mean_absolute_dot_product_over_pairs_of_heads():
    weights = [torch.randn(3, 5, generator=generator(i), dtype=torch.float64) for i in range(4)]
    products = [abs(float(row @ other)) for a, b in combinations(weights, 2) for row in a for other in b]
    assert float(overlap(weights)) == pytest.approx(sum(products) / len(products))


def test_orthogonal_heads_do_not_overlap_and_equal_ones_do():
    basis = torch.eye(6)
    assert mean_cosine([basis[:2], basis[2:4], basis[4:]]) == 0
    assert mean_cosine([basis[:1], 5 * basis[:1]]) == pytest.approx(1)


def test_the_loss_is_equation_1_written_with_loops():
    logits = torch.randn(5, 3, 4, generator=generator())
    labels = torch.tensor([0, 1, 2, 3, 0])
    weights = [torch.randn(2, 6, generator=generator(i)) for i in range(3)]
    entropy = sum(-logits[i, m].log_softmax(0)[labels[i]] for i in range(5) for m in range(3)) / 15
    # The paper: 2 lambda / (M (M - 1)) times the sum over pairs.
    pairs = sum((a @ b.T).abs().mean() for a, b in combinations(weights, 2))
    expected = entropy + 2 * 0.3 / (3 * 2) * pairs
    assert torch.allclose(view_loss(logits, labels, weights, ViewsConfig(orthogonality=0.3)), expected)


def test_the_view_is_the_head_that_believes_most_in_the_items_own_label():
    probabilities = torch.tensor([[0.2, 0.7, 0.1], [0.5, 0.1, 0.4], [0.1, 0.2, 0.9]])
    views = Views(probabilities.log())
    assert views.view.tolist() == [1, 0, 2]
    assert views.ranks.tolist() == [[1, 0, 2], [0, 2, 1], [2, 1, 0]]
    assert views.sizes.tolist() == [1, 1, 1]
    assert views.coverage(torch.tensor([0, 0, 1]), 2).tolist() == [0.5, 0.5, 0.5]


def test_views_come_from_the_trained_heads():
    known = blobs()
    context = Context()
    views = find_views(known, QUICK, context, Augmentation())
    model, _ = train_views(known, QUICK, context, Augmentation())
    with torch.no_grad():
        probabilities = model.eval()(known.images).softmax(2)
    own = torch.stack([probabilities[i, :, label] for i, label in enumerate(known.labels)])
    assert torch.allclose(views.log_probabilities.exp(), own, atol=1e-5)


def test_training_learns_the_labels_in_every_head():
    known = blobs()
    model, _ = train_views(known, QUICK, Context(), Augmentation())
    with torch.no_grad():
        right = (model.eval()(known.images).argmax(2) == known.labels[:, None]).float().mean(0)
    assert (right > 0.8).all()


def test_the_orthogonality_term_makes_heads_more_orthogonal():
    known = blobs()
    cosines = [
        mean_cosine(
            train_views(known, replace(QUICK, orthogonality=weight), Context(), Augmentation())[0].first_layers()
        )
        for weight in (0.0, 10.0)
    ]
    assert cosines[1] < 0.7 * cosines[0]


def test_heads_start_different_and_the_same_for_a_seed():
    def start(seed: int) -> MultiView:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return MultiView(build("mlp", (8,), seed=seed), 4, QUICK)

    one, two = start(0), start(0)
    assert torch.equal(one.first_layers()[0], two.first_layers()[0])
    assert not torch.equal(one.first_layers()[0], one.first_layers()[1])


def test_a_task_takes_items_of_its_view_as_far_as_they_reach():
    labels = torch.arange(240) % 4
    views = random_views(240)
    sampler = CataSampler(labels, views, 3, 2, 3)
    task, view = sampler.sample_with_views(50, generator())
    items = torch.cat([task.support, task.query], 2)
    assert (labels[items] == task.classes[:, :, None]).all()
    assert (views.view[items] == view[:, None, None]).all()  # 20 of each class and view are plenty
    assert sampler.topped_up() == 0
    for row in items.flatten(1):
        assert len(row.unique()) == row.numel()


def test_a_short_view_is_topped_up_by_the_next_best_first():
    # Class 0 has two items in view 0; two more have view 0 second, the rest have it last.
    probabilities = torch.full((8, 3), 0.1)
    order = [(0, 1, 2), (0, 1, 2), (1, 0, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0), (1, 2, 0), (2, 1, 0)]
    for item, ranking in enumerate(order):
        for place, view in enumerate(ranking):
            probabilities[item, view] = 0.9 - 0.3 * place
    views = Views(probabilities.repeat(2, 1).log())
    sampler = CataSampler(torch.tensor([0] * 8 + [1] * 8), views, 2, 2, 2)
    task, view = sampler.sample_with_views(200, generator())
    first = torch.cat([task.support, task.query], 2)[(view == 0)].flatten(2).sort(2).values
    assert (first[:, 0] % 8 == torch.tensor([0, 1, 2, 3])).all()
    assert sampler.topped_up() > 0
    assert "% of a task's items" in sampler.describe()


def test_topped_up_items_are_observed_as_often_as_asked_about():
    views = Views(torch.tensor([[0.9, 0.1]] * 2 + [[0.1, 0.9]] * 6).repeat(2, 1).log())
    sampler = CataSampler(torch.tensor([0] * 8 + [1] * 8), views, 2, 4, 4)
    task, _ = sampler.sample_with_views(2000, generator())
    own = (task.support % 8 < 2).float().mean(), (task.query % 8 < 2).float().mean()
    assert own[0] == pytest.approx(float(own[1]), abs=0.02)


def test_specialising_trains_the_best_head_of_each_item_alone():
    logits = torch.randn(4, 2, 3, generator=generator())
    labels = torch.tensor([0, 1, 2, 0])
    entropies = torch.stack([functional.cross_entropy(logits[:, m], labels, reduction="none") for m in range(2)])
    orthogonal = [torch.eye(4)[:1], torch.eye(4)[1:2]]
    assert torch.allclose(
        view_loss(logits, labels, orthogonal, ViewsConfig(specialise=1.0)), entropies.min(0).values.mean()
    )


def test_heads_that_specialise_divide_the_classes_among_them():
    known = blobs(classes=6)
    shares = []
    for specialise in (0.0, 1.0):
        views = find_views(known, replace(QUICK, specialise=specialise), Context(), Augmentation())
        table = torch.zeros(3, 6)
        table.index_put_((views.view, known.labels), torch.ones(len(known)), accumulate=True)
        shares.append(float((table.amax(0) / table.sum(0)).mean()))  # how much of a class lies in one view
    assert shares[1] > 0.95
    assert shares[1] > shares[0]


def test_classes_that_a_view_has_enough_of_are_drawn_first():
    labels = torch.arange(40) % 4
    own = torch.tensor([0.9, 0.1]), torch.tensor([0.1, 0.9])
    views = Views(torch.stack([own[int(label >= 2)] for label in labels]).log())
    task, view = CataSampler(labels, views, 2, 2, 2).sample_with_views(100, generator())
    assert ((task.classes >= 2) == (view[:, None] == 1)).all()


def test_broad_views_draw_every_class_as_often():
    labels = torch.arange(40) % 4
    views = Views(torch.where(labels[:, None] == 0, torch.tensor([0.9, 0.1]), torch.tensor([0.1, 0.9])).log())
    narrow, broad = (CataSampler(labels, views, 2, 2, 2, broad=broad) for broad in (False, True))
    task, _ = broad.sample_with_views(4000, generator())
    shares = torch.bincount(task.classes.flatten(), minlength=4) / task.classes.numel()
    assert torch.allclose(shares, torch.full((4,), 0.25), atol=0.02)
    assert narrow.topped_up() < broad.topped_up()
    assert broad.drawn() == 4


def test_views_are_drawn_in_proportion_to_their_size():
    views = Views(torch.tensor([[0.9, 0.1]] * 90 + [[0.1, 0.9]] * 30).log())
    _, view = CataSampler(torch.arange(120) % 3, views, 2, 1, 1).sample_with_views(8000, generator())
    assert float((view == 0).float().mean()) == pytest.approx(0.75, abs=0.02)


def test_soft_views_draw_items_by_their_probability():
    probabilities = torch.tensor([[0.8, 0.2], [0.2, 0.8]]).repeat(50, 1)
    sampler = CataSampler(torch.zeros(100, dtype=torch.int64), Views(probabilities.log()), 1, 1, 0, soft=True)
    task, view = sampler.sample_with_views(8000, generator())
    preferred = (task.support[:, 0, 0] % 2 == view).float().mean()
    assert float(preferred) == pytest.approx(0.8, abs=0.02)


def test_the_sampler_is_made_by_name_and_its_network_is_trained_once(tmp_path):
    known = blobs()
    context = Context(folder=tmp_path)
    size = {
        "way": 3,
        "observations": 2,
        "queries": 3,
        "views": QUICK,
        "augmentation": Augmentation(),
        "context": context,
    }
    first, again = (make_sampler("cata", known, **size) for _ in range(2))
    assert len(list(tmp_path.glob("cata-*.safetensors"))) == 1
    assert torch.equal(first.sample(5, generator()).support, again.sample(5, generator()).support)


@pytest.mark.parametrize(
    ("classes", "config", "message"),
    [(4, replace(QUICK, heads=1), "CATA with 1 view"), (1, QUICK, "2 known classes or more")],
)
def test_what_cannot_have_views_is_refused_with_the_cure(classes, config, message):
    with pytest.raises(InputError, match=message) as error:
        find_views(blobs(classes), config, Context(), Augmentation())
    assert "--sampler uniform" in str(error.value)


def test_too_few_images_for_a_task_are_refused_before_training(tmp_path):
    size = {"way": 3, "observations": 20, "queries": 15, "views": QUICK, "augmentation": Augmentation()}
    with pytest.raises(InputError, match="20 observations"):
        make_sampler("cata", blobs(), **size, context=Context(folder=tmp_path))
    assert not list(tmp_path.iterdir())


def test_cross_entropy_is_averaged_over_heads():
    logits = torch.randn(4, 2, 3, generator=generator())
    labels = torch.tensor([0, 1, 2, 0])
    expected = sum(functional.cross_entropy(logits[:, m], labels) for m in range(2)) / 2
    orthogonal = [torch.eye(4)[:1], torch.eye(4)[1:2]]
    assert torch.allclose(view_loss(logits, labels, orthogonal, ViewsConfig()), expected)
