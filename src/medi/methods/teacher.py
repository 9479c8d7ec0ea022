"""A method at work for discovery: what it learns from known classes, as steps of a representation, and its own groups.

This is where arrays become tensors: the rest of a discovery knows no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from medi.core.arrays import Floats, Ints
from medi.core.errors import InputError
from medi.core.workplace import Workplace
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.data.items import Items, chunks
from medi.grouping.partition import Partition
from medi.grouping.preparations import as_they_are, principal
from medi.grouping.representation import Representation
from medi.methods import Learner, Method, Plan, method_of
from medi.methods.cata_views import ViewsConfig
from medi.methods.embedding import PixelEmbedding
from medi.methods.mm_learner import ReferenceEmbedding
from medi.methods.readout import ReadoutEmbedding
from medi.nn.context import Context
from medi.nn.devices import choose_device
from medi.nn.embed import Embedding, NetworkEmbedding
from medi.nn.schedule import Schedule
from medi.presets import VECTORS, resolve

TASK_CLASSES, TASK_ITEMS = 20, 10
"""Most classes, and most items of each, in a training task."""

VECTOR_STEPS = 100
"""Most gradient steps on features. Schedules are made for images; networks on features learn much earlier."""

PROJECTOR_INPUTS = 128
"""Directions of the features that a projector is given; with more it takes longer and groups no better."""


class MethodTeacher:
    """A method with the settings of one discovery; `medi.discover.config.Teacher` says what its functions do.

    Vectors are always taught to an `mlp`; without a preset it is "cpu" on a CPU, and `default` otherwise.
    """

    def __init__(self, method: str, network: str, preset: str | None, sampler: str, augmentation: Augmentation) -> None:
        self.method, self.network_name, self.preset = method, network, preset
        self.sampler, self.augmentation = sampler, augmentation
        self.trains_on_observations = method_of(method).trains_on_observations

    def learns(self, *, vectors: bool) -> bool:
        """Whether known classes teach the method anything."""
        return self.configured(torch.device("cpu"), vectors=vectors).learns

    def projector(self, known: Items, work: Workplace, name: str) -> Representation:
        """Features, put through what the method learns from known ones."""
        base = principal(known.values, PROJECTOR_INPUTS, work.seed)
        learner = self._teach(_prepared(base, known), min(TASK_CLASSES, known.n_classes), work)
        return self._followed(base, learner, name, work, unit=True)

    def network(self, known: Items, work: Workplace, name: str) -> Representation:
        """Images, put through what the method learns from known ones."""
        learner = self._teach(known, min(TASK_CLASSES, known.n_classes), work)
        return self._followed(as_they_are(known.values, name), learner, name, work, unit=False)

    def partition(self, work: Workplace, *, vectors: bool) -> Partition | None:
        """The method's own way to share points out; None where it has none."""
        context = _context(work)
        own = None if self.trains_on_observations else self.configured(context.device, vectors=vectors).own_grouping()
        if own is None:
            return None

        def shared(points: Floats, k: int, generator: np.random.Generator) -> Ints:
            torch_generator = context.generator(stream=4)
            on_device = torch.from_numpy(points).to(torch_generator.device)
            return np.asarray(own(on_device[None], k, torch_generator, False)[0].cpu().numpy(), np.int64)

        return shared

    def trained_groups(
        self, known: Items, represent: Representation, novel: NDArray[Any], k: int, work: Workplace
    ) -> Ints:
        """The groups (n,) of novel items (n, …) that the method makes by training on them."""
        context = _context(work)
        if known.n_classes < 2:
            raise InputError(f"method {self.method} learns from known classes: give two or more, or use plain.")
        if novel.ndim == 2:
            known, novel = _prepared(represent, known), represent.prepare(novel).astype(np.float32)
        learner = self._teach(known, k, work)
        encoded = learner.encode(torch.from_numpy(novel).to(context.device))
        bag = torch.arange(len(novel), device=context.device)[None]
        labels = learner.discover(encoded, bag, k, context.generator(stream=4)).labels[0]
        return np.asarray(labels.cpu().numpy(), np.int64)

    def configured(self, device: torch.device, *, vectors: bool) -> Method:
        """The method with the right network and length."""
        kind = method_of(self.method)
        if self.preset is None:
            chosen = kind.preset(dataset=VECTORS if vectors else None, on_cpu=vectors or device.type == "cpu")
        else:
            chosen = kind.preset(self.preset)
        return sized_by_plan(
            _adjusted(chosen, "mlp" if vectors else self.network_name, VECTOR_STEPS if vectors else None)
        )

    def _teach(self, known: Items, way: int, work: Workplace) -> Learner:
        """What the method learns from known classes; classes too small for a task are left out."""
        context, vectors = _context(work), known.values.ndim == 2
        method = self.configured(context.device, vectors=vectors)
        fitting, observations, queries = task_size(known)
        views = resolve(ViewsConfig, dataset=VECTORS if vectors else None, on_cpu=True)
        if not vectors:
            views = replace(views, network=self.network_name)
        plan = Plan(
            way=way,
            observations=observations,
            queries=queries,
            augmentation=Augmentation() if vectors else self.augmentation,
            sampler=self.sampler if method.takes_sampler else "uniform",
            views=views,
            context=context,
        )
        return method.fit(as_image_set(fitting).to(context.device), plan)

    @staticmethod
    def _followed(base: Representation, learner: Learner, name: str, work: Workplace, *, unit: bool) -> Representation:
        found = base.followed_by(TorchStep(learner.embedding), name, unit=unit)
        if work.folder is not None:
            found.pack()  # results are to be saved: what cannot be says so now, not after everything else
        return found


def as_image_set(items: Items) -> ImageSet:
    """The same items for methods."""
    values = torch.from_numpy(np.ascontiguousarray(items.values))
    return ImageSet(values, torch.from_numpy(items.labels), items.class_names)


def as_items(images: ImageSet) -> Items:
    """The same items for discovery, on the CPU."""
    return Items(images.images.cpu().numpy(), images.labels.cpu().numpy(), images.class_names)


def task_size(known: Items) -> tuple[Items, int, int]:
    """The classes that are large enough for a training task, and its observations and queries per class.

    A task takes as many items as three quarters of the classes have, `TASK_ITEMS` at most; half are observations.
    """
    counts = known.counts()
    if int((counts >= 2).sum()) < 2:
        raise InputError("fewer than two known classes have two images: add images of known classes.")
    size = int(np.quantile(np.minimum(counts[counts >= 2], TASK_ITEMS), 0.25, method="lower"))
    fitting = np.flatnonzero(counts >= size).tolist()
    if len(fitting) < 2:
        size, fitting = 2, np.flatnonzero(counts >= 2).tolist()
    return known.of_classes(fitting), size - size // 2, size // 2


def sized_by_plan(method: Method) -> Method:
    """The method without what a preset says of the images of a class in a training task: its plan knows how many."""
    names = [one.name for one in fields(method) if one.name in ("observations", "queries") and one.default is None]  # type: ignore[arg-type]
    return replace(method, **dict.fromkeys(names))  # type: ignore[type-var]


def _context(work: Workplace) -> Context:
    return Context(choose_device(work.device), work.seed, work.folder, work.reporter)


def _prepared(representation: Representation, known: Items) -> Items:
    """The known items after the steps before a learnt one, float32."""
    parts = [representation.prepare(part).astype(np.float32) for part in chunks(known.values)]
    return Items(np.concatenate(parts), known.labels, known.class_names)


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


_EMBEDDINGS: Mapping[str, type[Embedding]] = {
    kind.kind: kind for kind in (NetworkEmbedding, PixelEmbedding, ReadoutEmbedding, ReferenceEmbedding)
}


class TorchStep:
    """An embedding that takes and gives arrays; see `medi.grouping.representation.LearntStep`."""

    def __init__(self, embedding: Embedding) -> None:
        self.embedding, self.kind = embedding.exact(), embedding.kind

    def __call__(self, items: NDArray[Any]) -> Floats:
        """Points (n, e) float64 of items (n, …)."""
        points: Floats = self.embedding(torch.from_numpy(np.ascontiguousarray(items))).cpu().double().numpy()
        return points

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and facts of the embedding."""
        tensors, facts = self.embedding.pack()
        return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}, facts


def unpack_step(kind: str, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> TorchStep:
    """The saved step of a kind; KeyError, TypeError, ValueError or RuntimeError where it is damaged."""
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return TorchStep(_EMBEDDINGS[kind].unpack(tensors, facts))
