from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_sets import generator

from medi.core.errors import InputError
from medi.tasks.cata import CataSampler, Views
from medi.tasks.episodes import UniformSampler


@given(
    sizes=st.lists(st.integers(min_value=5, max_value=12), min_size=3, max_size=8),
    way=st.integers(1, 3),
    observations=st.integers(1, 3),
    queries=st.integers(0, 2),
    seed=st.integers(0, 1000),
)
@pytest.mark.parametrize("by_view", [False, True])
def test_tasks_hold_distinct_classes_and_distinct_items_of_those_classes(
    by_view, sizes, way, observations, queries, seed
):
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    labels = labels[torch.randperm(len(labels), generator=generator(seed))]
    labels = torch.cat([labels, torch.tensor([-1, -1])])
    views = Views(torch.rand(len(labels), 3, generator=generator(seed)).log())  # some have few items of a class
    sampler = (partial(CataSampler, labels, views) if by_view else partial(UniformSampler, labels))(
        way, observations, queries
    )
    task = sampler.sample(7, generator(seed))
    assert task.support.shape == (7, way, observations)
    assert task.query.shape == (7, way, queries)
    items = torch.cat([task.support, task.query], 2)
    assert (labels[items] == task.classes[:, :, None]).all()
    for row, classes in zip(items.flatten(1), task.classes, strict=True):
        assert len(row.unique()) == len(row)
        assert len(classes.unique()) == way


def test_every_item_and_every_class_is_drawn_equally_often():
    labels = torch.tensor([0] * 4 + [1] * 8 + [2] * 4)
    task = UniformSampler(labels, 2, 1, 1).sample(20_000, generator(0))
    classes = torch.bincount(task.classes.flatten()) / 20_000
    assert torch.allclose(classes, torch.full((3,), 2 / 3), atol=0.02)
    items = torch.bincount(task.support.flatten(), minlength=16) / 20_000
    expected = torch.tensor([2 / 3 / 4] * 4 + [2 / 3 / 8] * 8 + [2 / 3 / 4] * 4)
    assert torch.allclose(items, expected, atol=0.02)


def test_items_of_no_known_class_are_never_drawn():
    labels = torch.tensor([0, -1, 0, 1, -1, 1])
    task = UniformSampler(labels, 2, 1, 1).sample(50, generator(0))
    assert (labels[torch.cat([task.support, task.query], 2)] >= 0).all()


def test_too_few_classes_or_images_are_errors_with_the_numbers_and_the_cure():
    labels = torch.arange(20) // 10
    with pytest.raises(InputError, match=r"5-way task needs 5 classes but there are 2: lower the way"):
        UniformSampler(labels, 5, 1, 1)
    with pytest.raises(InputError, match=r"class cat has 10 images but a task needs 5 observations \+ 15 queries = 20"):
        UniformSampler(labels, 2, 5, 15, ("cat", "dog"))
    with pytest.raises(InputError, match="start at 1"):
        UniformSampler(labels, 2, 0, 1)
