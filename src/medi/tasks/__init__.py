"""Tasks: which items make up a problem of discovery."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from medi.data.images import ImageSet
from medi.errors import unknown_name
from medi.tasks.episodes import Sampler, Task, UniformSampler

__all__ = ["SAMPLERS", "Sampler", "Task", "UniformSampler", "make_sampler"]

SAMPLERS: Mapping[str, type[UniformSampler]] = MappingProxyType({"uniform": UniformSampler})


def make_sampler(name: str, known: ImageSet, *, way: int, observations: int, queries: int) -> Sampler:
    """The task sampler of a name over the known classes."""
    if name not in SAMPLERS:
        raise unknown_name("sampler", name, SAMPLERS)
    return SAMPLERS[name](known.labels, way, observations, queries, known.class_names)
