"""What items are compared by: features as they are, prepared, or put through a trained network.

A representation turns each item by itself into a point; Euclidean distances between points are what clustering,
recognition and diagnosis go by. It can be saved, so it holds tensors and names, never closures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from medi.data.augment import to_float
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.nets import NETWORKS, Network, build
from medi.nets.embed import in_batches
from medi.train.checkpoint import under_prefix, with_prefix

CHUNK = 4096
"""Items that become points at a time: of many, points take more memory than the items, and only sums are needed."""

SHRINKAGE = 0.2
"""Part of the within-class covariance that is replaced by a round one of the same size."""


@dataclass(frozen=True)
class Representation:
    """Items to points; the order is shift, matrix, unit length, network, unit length again.

    Attributes:
        name: What it is called in a report.
        shift: (d,) float64, subtracted first; None for nothing.
        matrix: (d, e) float64, multiplied from the right; None for the identity.
        unit: Whether points are scaled to length 1.
        network: Trained on what the other steps give; None for none.
        architecture: The network's name in `NETWORKS`.
        shape: Shape of one item, (d,) or (c, h, w).
        unit_after: Whether what the network gives is scaled to length 1.
    """

    name: str
    shape: tuple[int, ...]
    shift: Tensor | None = None
    matrix: Tensor | None = None
    unit: bool = False
    network: Network | None = None
    architecture: str | None = None
    unit_after: bool = False

    def __call__(self, items: Tensor) -> Tensor:
        """Points (n, e) float64 on the CPU, of items (n, *shape).

        Float64, so that the same item gives the same point to the last printed digit whatever it is asked with.
        """
        if tuple(items.shape[1:]) != self.shape:
            raise InputError(
                f"items of shape {tuple(items.shape[1:])}, but {self.shape} is what was learnt from: "
                "prepare them the same way, or learn again."
            )
        if items.is_floating_point() and not items.isfinite().all():
            raise InputError("some features are NaN or infinite: repair or drop those items.")
        if self.network is None or not len(items):
            return self.prepare(items).cpu() if self.network is None else torch.zeros(0, self.network.width).double()
        return self.embed_floats(self.prepare(items) if len(self.shape) == 1 else items)

    def embed_floats(self, items: Tensor) -> Tensor:
        """Points of items that are prepared, or of images (n, c, h, w), also as floats that were augmented."""
        assert self.network is not None
        network, device = self.network, next(self.network.parameters()).device
        points = in_batches(lambda batch: network(to_float(batch)), device, items, precision="float32").cpu().double()
        return normalize(points, dim=1) if self.unit_after else points

    def prepare(self, items: Tensor) -> Tensor:
        """What the network is given: floats (n, e)."""
        points = to_float(items).flatten(1).double()
        if self.shift is not None:
            points = points - self.shift.to(points.device)
        if self.matrix is not None:
            points = points @ self.matrix.to(points.device)
        return normalize(points, dim=1) if self.unit else points

    def with_network(self, name: str, network: Network, architecture: str, *, unit: bool) -> Representation:
        """The same preparation with a network behind it, in float64 for vectors."""
        network = (network.double() if len(self.shape) == 1 else network).eval()
        return replace(self, name=name, network=network, architecture=architecture, unit_after=unit)

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON-able facts from which `unpack` makes it again."""
        tensors = {key: value for key in ("shift", "matrix") if (value := getattr(self, key)) is not None}
        facts: dict[str, Any] = {"name": self.name, "shape": list(self.shape), "unit": self.unit, "architecture": None}
        if self.network is not None:
            tensors |= with_prefix("network", self.network.state_dict())
            head = None if isinstance(self.network.head, torch.nn.Identity) else self.network.width
            facts |= {"architecture": self.architecture, "embedding": head, "unit_after": self.unit_after}
        return tensors, facts

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Representation:
        """What `pack` took apart; KeyError, TypeError, ValueError or RuntimeError where it is damaged."""
        shape = tuple(int(side) for side in facts["shape"])
        plain = cls(str(facts["name"]), shape, tensors.get("shift"), tensors.get("matrix"), bool(facts["unit"]))
        architecture = facts["architecture"]
        if architecture is None:
            return plain
        if architecture not in NETWORKS:
            raise ValueError(f"unknown network {architecture}")
        inner = shape if plain.matrix is None else (plain.matrix.shape[1],)
        network = build(architecture, inner, embedding=facts["embedding"])
        weights = under_prefix("network", tensors)
        if len(shape) == 1:
            network = network.double()
        network.load_state_dict(weights)
        return plain.with_network(plain.name, network, architecture, unit=bool(facts["unit_after"]))


def chunks(items: Tensor) -> tuple[Tensor, ...]:
    """Items (n, …), `CHUNK` at a time."""
    parts: tuple[Tensor, ...] = torch.split(items, CHUNK)
    return parts


def class_means(known: ImageSet, represent: Callable[[Tensor], Tensor] = Tensor.double) -> Tensor:
    """Mean (c, e) float64 of the points of each known class, every one of which must have items."""
    total = torch.zeros(known.n_classes, represent(known.images[:1]).shape[1], dtype=torch.float64)
    for items, labels in zip(chunks(known.images), chunks(known.labels), strict=True):
        total.index_add_(0, labels, represent(items))
    return total / torch.bincount(known.labels, minlength=known.n_classes)[:, None]


def _mean(items: Tensor) -> Tensor:
    """Mean (d,) float64 of items (n, d)."""
    return torch.stack([part.double().sum(0) for part in chunks(items)]).sum(0) / len(items)


def as_they_are(items: Tensor, name: str) -> Representation:
    """Features, or pixels, unchanged."""
    return Representation(name, tuple(items.shape[1:]))


def unit_length(known: ImageSet, name: str) -> Representation:
    """Known features' mean subtracted, then length 1: the angle is what counts."""
    return Representation(name, tuple(known.images.shape[1:]), shift=_mean(known.images), unit=True)


def principal(known: ImageSet, width: int, seed: int = 0) -> Representation:
    """Known features' mean subtracted, the `width` directions in which they differ most, length 1.

    Of many items a part, drawn at random, is asked: it shows the same directions.
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
    """Directions in which items of one known class differ are shortened, so that they count for less; then length 1.

    Angles are taken under the known classes' common covariance, shrunk towards a round one. The Cholesky factor of
    its inverse is one of the many matrices that do that, and the cheapest.

    Args:
        known: Vectors (n, d).
        name: What to call it.
        shrinkage: Above 0, so that the covariance can be inverted, to 1, where nothing is whitened.
    """
    centres, width = class_means(known), known.images.shape[1]
    covariance = torch.zeros(width, width, dtype=torch.float64)
    for items, labels in zip(chunks(known.images), chunks(known.labels), strict=True):
        inside = items.double() - centres[labels]
        covariance += inside.T @ inside
    covariance /= max(1, len(known) - known.n_classes)
    scale = covariance.diagonal().mean()
    if not scale > 0:  # every class is a single point: there is nothing to whiten by
        return unit_length(known, name)
    identity = torch.eye(width, dtype=torch.float64)
    lower = torch.linalg.cholesky((1 - shrinkage) * covariance + shrinkage * scale * identity)
    matrix = torch.linalg.solve_triangular(lower, identity, upper=False).T.contiguous()
    return Representation(name, tuple(known.images.shape[1:]), _mean(known.images), matrix, unit=True)
