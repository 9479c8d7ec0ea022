"""CATA's sampler: items of one view first, none twice, and what is topped up is spread evenly."""

import pytest
import torch
from small_sets import generator
from views import drawn, topped_up

from medi.tasks.cata import CataSampler, Views


def random_views(n: int, heads: int = 3, seed: int = 0) -> Views:
    return Views(torch.rand(n, heads, generator=generator(seed)).log())


def test_the_view_is_the_head_that_believes_most_in_the_items_own_label():
    probabilities = torch.tensor([[0.2, 0.7, 0.1], [0.5, 0.1, 0.4], [0.1, 0.2, 0.9]])
    views = Views(probabilities.log())
    assert views.view.tolist() == [1, 0, 2]
    assert views.ranks.tolist() == [[1, 0, 2], [0, 2, 1], [2, 1, 0]]
    assert views.sizes.tolist() == [1, 1, 1]


def test_a_task_takes_items_of_its_view_as_far_as_they_reach():
    labels = torch.arange(240) % 4
    views = random_views(240)
    sampler = CataSampler(labels, views, 3, 2, 3)
    task, view = sampler.sample_with_views(50, generator())
    items = torch.cat([task.support, task.query], 2)
    assert (labels[items] == task.classes[:, :, None]).all()
    assert (views.view[items] == view[:, None, None]).all()  # 20 of each class and view are plenty
    assert topped_up(sampler) == 0
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
    assert topped_up(sampler) > 0


def test_topped_up_items_are_observed_as_often_as_asked_about():
    views = Views(torch.tensor([[0.9, 0.1]] * 2 + [[0.1, 0.9]] * 6).repeat(2, 1).log())
    sampler = CataSampler(torch.tensor([0] * 8 + [1] * 8), views, 2, 4, 4)
    task, _ = sampler.sample_with_views(2000, generator())
    own = (task.support % 8 < 2).float().mean(), (task.query % 8 < 2).float().mean()
    assert own[0] == pytest.approx(float(own[1]), abs=0.02)


def test_classes_that_a_view_has_enough_of_are_drawn_first():
    labels = torch.arange(40) % 4
    own = torch.tensor([0.9, 0.1]), torch.tensor([0.1, 0.9])
    views = Views(torch.stack([own[int(label >= 2)] for label in labels]).log())
    task, view = CataSampler(labels, views, 2, 2, 2).sample_with_views(100, generator())
    assert ((task.classes >= 2) == (view[:, None] == 1)).all()


def test_a_class_that_no_view_has_enough_of_is_not_drawn_where_others_are():
    labels = torch.arange(5).repeat_interleave(10)
    second = torch.tensor([0.0, 0.0, 1.0, 1.0, 0.5]).repeat_interleave(10) * 10 > torch.arange(50) % 10
    views = Views(torch.where(second[:, None], torch.tensor([0.1, 0.9]), torch.tensor([0.9, 0.1])).log())
    sampler = CataSampler(labels, views, 2, 3, 3)
    assert drawn(sampler) == 4
    assert topped_up(sampler) == 0
    assert drawn(CataSampler(labels, views, 2, 2, 3)) == 5


def test_views_are_drawn_in_proportion_to_their_size():
    views = Views(torch.tensor([[0.9, 0.1]] * 90 + [[0.1, 0.9]] * 30).log())
    _, view = CataSampler(torch.arange(120) % 3, views, 2, 1, 1).sample_with_views(8000, generator())
    assert float((view == 0).float().mean()) == pytest.approx(0.75, abs=0.02)
