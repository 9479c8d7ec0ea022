"""What a method learns from known classes: a projector of features, or a network on images."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

import torch

from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.discovery.representations import Representation, as_they_are, chunks, principal
from medi.errors import InputError
from medi.methods import Learner, Method, Plan, method_of
from medi.methods.cata_views import VIEWS_PRESETS, ViewsConfig
from medi.methods.mp import MP
from medi.runtime.context import Context
from medi.train.schedule import Schedule

TASK_CLASSES, TASK_ITEMS = 20, 10
"""Most classes, and most items of each, in a training task."""

VECTOR_STEPS = 100
"""Most gradient steps on features. Schedules are made for images; networks on features learn much earlier."""

PROJECTOR_INPUTS = 128
"""Directions of the features that a projector is given; with more it takes longer and groups no better."""

PROJECTOR = MP(network="mlp", images=200, augmented=False, temperature=8.0, schedule=Schedule(steps=60, rate=1e-3))
"""MP on features: small enough to be trained anew for every split of the known classes."""

VECTOR_VIEWS = ViewsConfig(
    network="mlp",
    hidden=64,
    batch=128,
    looks=2,
    schedule=Schedule(steps=30, rate=3e-3, shape="onecycle", factors={"heads": 0.3}),
)
"""CATA's network on features."""


@dataclass(frozen=True)
class DiscoveryConfig:
    """How to discover.

    Attributes:
        classes: Number of novel classes, or "auto" to estimate it.
        method: A name in `medi.methods.METHODS`.
        network: What a method trains on images; vectors always take `mlp`.
        preset: The method's named settings; None for "cpu" on a CPU where it has them, and `default` otherwise.
        sampler: How training tasks are drawn, for methods that train on tasks.
        augmentation: Changes of an image that leave its class alone; vectors are not changed.
        features: What the vectors are called in reports.
        only_novel: Whether the pool holds nothing of known classes and no one-offs.
        noun: What an item is called in reports.
        already_known: Items that were left out of the pool because they are known ones; the verdict counts them.
    """

    classes: int | Literal["auto"] = "auto"
    method: str = "mp"
    network: str = "conv4"
    preset: str | None = None
    sampler: str = "cata"
    augmentation: Augmentation = field(default_factory=Augmentation)
    features: str = "encoder"
    only_novel: bool = True
    noun: str = "item"
    already_known: int = 0

    def __post_init__(self) -> None:
        if self.classes != "auto" and (not isinstance(self.classes, int) or self.classes < 1):
            raise InputError(f"classes={self.classes!r}: give a whole number from 1 on, or 'auto'.")
        method_of(self.method)


def teach(known: ImageSet, way: int, config: DiscoveryConfig, context: Context) -> Learner:
    """What the method learns from known classes, vectors or images; classes too small for a task are left out."""
    vectors = known.images.ndim == 2
    method = configured_method(config, context.device, vectors=vectors)
    fitting, observations, queries = task_size(known)
    plan = Plan(
        way=way,
        observations=observations,
        queries=queries,
        augmentation=Augmentation() if vectors else config.augmentation,
        sampler=config.sampler if method.takes_sampler else "uniform",
        views=VECTOR_VIEWS if vectors else replace(VIEWS_PRESETS["cpu"], network=config.network),
        context=context,
    )
    learner = method.fit(fitting.to(context.device), plan)
    if context.folder is not None:
        learner.embedding.pack()  # results are to be saved: what cannot be says so now, not after everything else
    return learner


def projector(known: ImageSet, config: DiscoveryConfig, context: Context, name: str) -> Representation:
    """Features, put through what the method learns from known ones."""
    base = principal(known, PROJECTOR_INPUTS, context.seed)
    learner = teach(prepared(base, known), min(TASK_CLASSES, known.n_classes), config, context)
    return base.followed_by(learner.embedding, name, unit=True)


def trained(known: ImageSet, config: DiscoveryConfig, context: Context, name: str) -> Representation:
    """Images, put through what the method learns from known ones."""
    learner = teach(known, min(TASK_CLASSES, known.n_classes), config, context)
    return as_they_are(known.images, name).followed_by(learner.embedding, name, unit=False)


def prepared(representation: Representation, known: ImageSet) -> ImageSet:
    """The known items after the steps before an embedding, float32."""
    parts = [representation.prepare(part).float() for part in chunks(known.images)]
    return replace(known, images=torch.cat(parts))


def task_size(known: ImageSet) -> tuple[ImageSet, int, int]:
    """The classes that are large enough for a training task, and its observations and queries per class.

    A task takes as many items as three quarters of the classes have, `TASK_ITEMS` at most; half are observations.
    """
    counts = torch.bincount(known.labels[known.labels >= 0], minlength=known.n_classes)
    if int((counts >= 2).sum()) < 2:
        raise InputError("fewer than two known classes have two images: add images of known classes.")
    size = int(counts[counts >= 2].double().quantile(0.25, interpolation="lower").clamp(max=TASK_ITEMS))
    fitting = (counts >= size).nonzero().squeeze(1).tolist()
    if len(fitting) < 2:
        size, fitting = 2, (counts >= 2).nonzero().squeeze(1).tolist()
    return known.of_classes(fitting), size - size // 2, size // 2


def configured_method(config: DiscoveryConfig, device: torch.device, *, vectors: bool) -> Method:
    """The method with the right network and length."""
    if vectors and config.method == "mp" and config.preset is None:
        return PROJECTOR
    small = vectors or device.type == "cpu"
    chosen = method_of(config.method).preset(config.preset or ("cpu" if small else "default"))
    adjusted = _adjusted(chosen, "mlp" if vectors else config.network, VECTOR_STEPS if vectors else None)
    # Some presets say how many images of a class a training task takes: here that is what the known classes have.
    sized = [one.name for one in fields(adjusted) if one.name in ("observations", "queries") and one.default is None]
    method: Method = replace(adjusted, **dict.fromkeys(sized))
    return method


def _adjusted(value: Any, network: str, most_steps: int | None) -> Any:
    """Settings with another network and shorter schedules, at any depth."""
    if isinstance(value, tuple):
        return tuple(_adjusted(part, network, most_steps) for part in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed = {part.name: _adjusted(getattr(value, part.name), network, most_steps) for part in fields(value)}
    if isinstance(changed.get("network"), str):
        changed["network"] = network
    if isinstance(value, Schedule):
        changed["steps"] = min(value.steps, most_steps or value.steps)
    return replace(value, **changed)
