"""What items are compared by: features as they are, prepared, or put through what a method learnt.

A representation turns each item by itself into a point. Clustering, recognition and diagnosis use Euclidean distances
between points. A representation can be saved, so it holds tensors and names, never functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from medi.cluster.groups import group_sums
from medi.cluster.whitening import whitening_factor
from medi.data.augment import to_float
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods import unpack_embedding
from medi.nets.embed import Embedding
from medi.train.checkpoint import under_prefix, with_prefix

CHUNK = 4096
"""Items that become points at a time: points take more memory than items, and often only their sums are needed."""

SHRINKAGE = 0.2
"""Part of the within-class covariance that is replaced by a round one of the same size."""


@dataclass(frozen=True)
class Representation:
    """Items to points; the order is shift, matrix, unit length, embedding, unit length again.

    Attributes:
        name: What it is called in a report.
        shape: Shape of one item, (d,) or (c, h, w).
        shift: (d,) float64, subtracted first; None for nothing.
        matrix: (d, e) float64, multiplied from the right; None for the identity.
        unit: Whether points are scaled to length 1.
        embedding: Applied to what the other steps give, or to images as they are; None for none.
        unit_after: Whether what the embedding gives is scaled to length 1.
    """

    name: str
    shape: tuple[int, ...]
    shift: Tensor | None = None
    matrix: Tensor | None = None
    unit: bool = False
    embedding: Embedding | None = None
    unit_after: bool = False

    def __call__(self, items: Tensor) -> Tensor:
        """Points (n, e) float64 on the CPU, of items (n, *shape).

        Float64, so that an item gives the same point to the last printed digit whatever other items it comes with.
        """
        if tuple(items.shape[1:]) != self.shape:
            raise InputError(
                f"items of shape {tuple(items.shape[1:])}, but {self.shape} is what was learnt from: "
                "prepare them the same way, or learn again."
            )
        if items.is_floating_point() and not items.isfinite().all():
            raise InputError("some features are NaN or infinite: repair or drop those items.")
        if self.embedding is None:
            return self.prepare(items).cpu()
        return self.embed(self.prepare(items) if len(self.shape) == 1 else items)

    def prepare(self, items: Tensor) -> Tensor:
        """Items (n, *shape) after the steps before the embedding, (n, e) float64."""
        points = to_float(items).flatten(1).double()
        if self.shift is not None:
            points = points - self.shift.to(points.device)
        if self.matrix is not None:
            points = points @ self.matrix.to(points.device)
        return normalize(points, dim=1) if self.unit else points

    def embed(self, prepared: Tensor) -> Tensor:
        """Points (n, e) of prepared vectors, or of images (n, c, h, w), which may be floats that were augmented."""
        assert self.embedding is not None
        points = self.embedding(prepared).cpu().double()
        return normalize(points, dim=1) if self.unit_after else points

    def followed_by(self, embedding: Embedding, name: str, *, unit: bool) -> Representation:
        """The same preparation with what a method learnt behind it."""
        return replace(self, name=name, embedding=embedding.exact(), unit_after=unit)

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON-able facts from which `unpack` makes it again."""
        tensors = {key: value for key in ("shift", "matrix") if (value := getattr(self, key)) is not None}
        facts: dict[str, Any] = {"name": self.name, "shape": list(self.shape), "unit": self.unit, "embedding": None}
        if self.embedding is not None:
            learnt, facts["embedding"] = self.embedding.pack()
            tensors |= with_prefix("embedding", learnt)
            facts |= {"kind": self.embedding.kind, "unit_after": self.unit_after}
        return tensors, facts

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Representation:
        """What `pack` took apart; KeyError, TypeError, ValueError or RuntimeError where it is damaged."""
        shape = tuple(int(side) for side in facts["shape"])
        prepared = cls(str(facts["name"]), shape, tensors.get("shift"), tensors.get("matrix"), bool(facts["unit"]))
        if facts["embedding"] is None:
            return prepared
        embedding = unpack_embedding(facts["kind"], under_prefix("embedding", tensors), facts["embedding"])
        return replace(prepared, embedding=embedding, unit_after=bool(facts["unit_after"]))


def chunks(items: Tensor) -> tuple[Tensor, ...]:
    """Items (n, …), `CHUNK` at a time."""
    parts: tuple[Tensor, ...] = torch.split(items, CHUNK)
    return parts


def class_means(known: ImageSet, represent: Callable[[Tensor], Tensor]) -> Tensor:
    """Mean (c, e) float64 of the points of each known class, every one of which must have items."""
    parts = zip(chunks(known.images), chunks(known.labels), strict=True)
    sums = [group_sums(represent(items), labels, known.n_classes) for items, labels in parts]
    return torch.stack(sums).sum(0) / torch.bincount(known.labels, minlength=known.n_classes)[:, None]


def as_they_are(items: Tensor, name: str) -> Representation:
    """Features, or pixels, unchanged."""
    return Representation(name, tuple(items.shape[1:]))


def unit_length(known: ImageSet, name: str) -> Representation:
    """The mean of the known features subtracted, then length 1: only angles count."""
    return Representation(name, tuple(known.images.shape[1:]), shift=_mean(known.images), unit=True)


def principal(known: ImageSet, width: int, seed: int = 0) -> Representation:
    """The mean of the known features subtracted, the `width` directions in which they differ most, length 1.

    Of many items a part is drawn at random: it shows the same directions.
    """
    some = known.images
    if len(some) > 2 * CHUNK:
        some = some[torch.randperm(len(some), generator=torch.Generator().manual_seed(seed))[: 2 * CHUNK].sort().values]
    points = some.double()
    centred = points - points.mean(0)
    width = min(width, *points.shape)
    with torch.random.fork_rng(devices=[]):  # the search for directions starts at random
        torch.default_generator.manual_seed(seed)
        directions = torch.pca_lowrank(centred, q=min(width + 10, *points.shape), center=False, niter=3)[2][:, :width]
    return Representation(
        "principal", tuple(known.images.shape[1:]), points.mean(0), directions.contiguous(), unit=True
    )


def whitened(known: ImageSet, name: str, shrinkage: float = SHRINKAGE) -> Representation:
    """Length 1 after whitening: directions in which items of one known class differ count for less.

    Args:
        known: Vectors (n, d).
        name: What to call it.
        shrinkage: Above 0, so that the covariance can be inverted, to 1, where nothing is whitened.
    """
    factor = whitening_factor(known.images, known.labels, shrinkage)
    return replace(unit_length(known, name), matrix=factor)


def _mean(items: Tensor) -> Tensor:
    """Mean (d,) float64 of items (n, d)."""
    return torch.stack([part.double().sum(0) for part in chunks(items)]).sum(0) / len(items)
