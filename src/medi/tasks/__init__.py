"""Tasks: which items make up a problem of discovery."""

from __future__ import annotations

from dataclasses import replace

from medi.data.facts import Augmentation
from medi.data.images import ImageSet
from medi.errors import unknown_name
from medi.tasks.cata import CataSampler
from medi.tasks.episodes import Sampler, Task, UniformSampler
from medi.tasks.views import ViewsConfig, find_views
from medi.train.loop import Desk

__all__ = ["SAMPLERS", "CataSampler", "Sampler", "Task", "UniformSampler", "make_sampler"]

SAMPLERS = ("uniform", "cata", "specialised")
"""uniform; cata, as in the paper; specialised, CATA with heads that divide the classes among them (ours)."""

SPECIALISE = 0.5


def make_sampler(
    name: str,
    known: ImageSet,
    *,
    way: int,
    observations: int,
    queries: int,
    views: ViewsConfig,
    augmentation: Augmentation,
    desk: Desk,
) -> Sampler:
    """The task sampler of a name over the known classes; CATA's network is trained (or found trained) first."""
    if name not in SAMPLERS:
        raise unknown_name("sampler", name, SAMPLERS)
    size = (way, observations, queries, known.class_names)
    uniform = UniformSampler(known.labels, *size)  # says at once if a task asks for too much
    if name == "uniform":
        return uniform
    if name == "specialised":
        views = replace(views, specialise=SPECIALISE)
    sampler = CataSampler(known.labels, find_views(known, views, desk, augmentation), *size, soft=views.soft)
    desk.reporter.say(sampler.describe())
    return sampler
