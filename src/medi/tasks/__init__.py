"""Tasks: which items make up a problem of discovery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.errors import unknown_name
from medi.methods.cata_views import ViewsConfig, find_views
from medi.runtime.context import Context
from medi.tasks.cata import CataSampler
from medi.tasks.episodes import Sampler, Task, UniformSampler

__all__ = ["SAMPLERS", "CataSampler", "Sampler", "Task", "UniformSampler", "make_sampler"]

VIEWS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "cata": {},  # as in the paper
        "specialised": {"specialise": 0.5},  # heads divide the classes among them (ours)
        "broad": {"broad": True},  # every class as often, however many of its items the view has
        "soft": {"soft": True},  # a view's items drawn by its head's probability, not by dominance
        "two-views": {"heads": 2},
        "five-views": {"heads": 5},
    }
)
"""Samplers that draw tasks from views: CATA and what was tried to mend it, as changes of `ViewsConfig`."""

SAMPLERS = ("uniform", *VIEWS)


def make_sampler(
    name: str,
    known: ImageSet,
    *,
    way: int,
    observations: int,
    queries: int,
    views: ViewsConfig,
    augmentation: Augmentation,
    context: Context,
) -> Sampler:
    """The task sampler of a name over the known classes; CATA's network is trained (or found trained) first."""
    if name not in SAMPLERS:
        raise unknown_name("sampler", name, SAMPLERS)
    size = (way, observations, queries, known.class_names)
    uniform = UniformSampler(known.labels, *size)  # says at once if a task asks for too much
    if name == "uniform":
        return uniform
    views = replace(views, **VIEWS[name])
    sampler = CataSampler(
        known.labels, find_views(known, views, context, augmentation), *size, soft=views.soft, broad=views.broad
    )
    context.reporter.say(sampler.describe())
    return sampler
