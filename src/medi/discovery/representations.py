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

FEW = 500
"""Items up to which principal directions are found exactly."""

SHRINKAGE = 0.5
"""Part of the within-class covariance that is replaced by a round one of the same size."""

DIRECTIONS = 256
"""Directions in which features differ most that whitening works in; with more it takes longer and groups no better."""


@dataclass(frozen=True)
class Representation:
    """Items to points: root, shift, matrix, unit length, embedding, unit length again, centre, scale, in this order.

    Attributes:
        name: What it is called in a report.
        shape: Shape of one item, (d,) or (c, h, w).
        shift: (d,) float64, subtracted first; None for nothing.
        matrix: (d, e) float64, multiplied from the right; None for the identity.
        unit: Whether points are scaled to length 1.
        embedding: Applied to what the other steps give, or to images as they are; None for none.
        unit_after: Whether what the embedding gives is scaled to length 1.
        root: Whether square roots are taken first, with the sign kept: large features then count for less.
        centre: (e,) float64, subtracted last; None for nothing.
        scale: What points are multiplied with at the end.
    """

    name: str
    shape: tuple[int, ...]
    shift: Tensor | None = None
    matrix: Tensor | None = None
    unit: bool = False
    embedding: Embedding | None = None
    unit_after: bool = False
    root: bool = False
    centre: Tensor | None = None
    scale: float = 1.0

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
            return self._framed(self.prepare(items).cpu())
        return self.embed(self.prepare(items) if len(self.shape) == 1 else items)

    def prepare(self, items: Tensor) -> Tensor:
        """Items (n, *shape) after the steps before the embedding, (n, e) float64."""
        points = to_float(items).flatten(1).double()
        if self.root:
            points = points.sign() * points.abs().sqrt()
        if self.shift is not None:
            points = points - self.shift.to(points.device)
        if self.matrix is not None:
            points = points @ self.matrix.to(points.device)
        return normalize(points, dim=1) if self.unit else points

    def embed(self, prepared: Tensor) -> Tensor:
        """Points (n, e) of prepared vectors, or of images (n, c, h, w), which may be floats that were augmented."""
        assert self.embedding is not None
        points = self.embedding(prepared).cpu().double()
        return self._framed(normalize(points, dim=1) if self.unit_after else points)

    def framed(self, items: Tensor) -> Representation:
        """The same, with points of some items (n, *shape) about the origin at a mean squared distance of 1.

        What has length 1 already stays as it is.
        """
        if self.unit_after or (self.unit and self.embedding is None):
            return self
        parts = [self(part) for part in chunks(items)]
        centre = torch.stack([part.sum(0) for part in parts]).sum(0) / len(items)
        spread = float(torch.stack([(part - centre).square().sum() for part in parts]).sum() / len(items))
        return replace(self, centre=centre, scale=spread**-0.5 if spread > 0 else 1.0)

    def _framed(self, points: Tensor) -> Tensor:
        return (points if self.centre is None else points - self.centre) * self.scale

    def followed_by(self, embedding: Embedding, name: str, *, unit: bool) -> Representation:
        """The same preparation with what a method learnt behind it."""
        return replace(self, name=name, embedding=embedding.exact(), unit_after=unit)

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON-able facts from which `unpack` makes it again."""
        parts = ("shift", "matrix", "centre")
        tensors = {key: value for key in parts if (value := getattr(self, key)) is not None}
        facts: dict[str, Any] = {key: getattr(self, key) for key in ("name", "unit", "root", "scale")}
        facts |= {"shape": list(self.shape), "embedding": None}
        if self.embedding is not None:
            learnt, facts["embedding"] = self.embedding.pack()
            tensors |= with_prefix("embedding", learnt)
            facts |= {"kind": self.embedding.kind, "unit_after": self.unit_after}
        return tensors, facts

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Representation:
        """What `pack` took apart; KeyError, TypeError, ValueError or RuntimeError where it is damaged."""
        shape = tuple(int(side) for side in facts["shape"])
        prepared = cls(
            str(facts["name"]),
            shape,
            tensors.get("shift"),
            tensors.get("matrix"),
            bool(facts["unit"]),
            root=bool(facts["root"]),
            centre=tensors.get("centre"),
            scale=float(facts["scale"]),
        )
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
    if len(centred) <= FEW:  # their inner products are fewer than those of the features
        values, vectors = torch.linalg.eigh(centred @ centred.T)
        directions = centred.T @ vectors.flip(1)[:, :width]
        directions = torch.linalg.qr(directions).Q if float(values.max()) > 0 else torch.eye(len(centred.T))[:, :width]
    else:
        with torch.random.fork_rng(devices=[]):  # the search for directions starts at random
            torch.default_generator.manual_seed(seed)
            size = min(width + 10, *points.shape)
            directions = torch.pca_lowrank(centred.float(), q=size, center=False, niter=1)[2][:, :width].double()
    return Representation(
        "principal", tuple(known.images.shape[1:]), points.mean(0), directions.contiguous(), unit=True
    )


def whitened(known: ImageSet, name: str, *, root: bool = False, shrinkage: float = SHRINKAGE) -> Representation:
    """Length 1 after whitening: directions in which items of one known class differ count for less.

    Args:
        known: Vectors (n, d).
        name: What to call it.
        root: Whether square roots of the features are taken first.
        shrinkage: Above 0, so that the covariance can be inverted, to 1, where nothing is whitened.
    """
    rooted = replace(as_they_are(known.images, name), root=root)
    images = torch.cat([rooted.prepare(part).float() for part in chunks(known.images)]) if root else known.images
    base = principal(replace(known, images=images), DIRECTIONS)
    assert base.matrix is not None
    assert base.shift is not None
    points = torch.cat([(part.double() - base.shift) @ base.matrix for part in chunks(images)])
    factor = whitening_factor(points, known.labels, shrinkage)
    matrix = base.matrix if factor is None else base.matrix @ factor
    return replace(rooted, shift=base.shift, matrix=matrix, unit=True)


def _mean(items: Tensor) -> Tensor:
    """Mean (d,) float64 of items (n, d)."""
    return torch.stack([part.double().sum(0) for part in chunks(items)]).sum(0) / len(items)
