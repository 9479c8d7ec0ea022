"""What items are compared by: features as they are, prepared, or put through what a method learnt.

A representation turns each item by itself into a point. Clustering, recognition and diagnosis use Euclidean distances
between points. A representation can be saved, so it holds arrays and names, never functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Floats
from medi.core.errors import InputError
from medi.core.tensors import under_prefix, with_prefix
from medi.data.items import chunks
from medi.registry import LEARNT_STEPS, load_listed

SAME = 1e-12
"""Part of the size of items below which a distance is taken for rounding: they are all the same."""

TOO_LARGE, TOO_SMALL = 1e30, 1e-30
"""Features beyond the one, or all within the other, are refused: powers of them would be infinite or zero."""


class LearntStep(Protocol):
    """What a method learnt: it turns items, each by itself, into points.

    Attributes:
        kind: Of `medi.registry.LEARNT_STEPS`, where it can be saved.

    >>> "network" in LEARNT_STEPS  # a kind that can be saved
    True
    """

    kind: str

    def __call__(self, items: NDArray[Any]) -> Floats:
        """Points (n, e) float64 of prepared vectors or of images (n, …)."""

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON-able facts from which it can be made again."""


@dataclass(frozen=True)
class Representation:
    """Items to points: root, shift, matrix, unit length, learnt step, unit length again, centre, scale, in this order.

    Attributes:
        name: What it is called in a report.
        shape: Shape of one item, (d,) or (c, h, w).
        shift: (d,) subtracted first; None for nothing.
        matrix: (d, e) multiplied from the right; None for the identity.
        unit: Whether points are scaled to length 1.
        learnt: Applied to what the other steps give, or to images as they are; None for none.
        unit_after: Whether what the learnt step gives is scaled to length 1.
        root: Whether square roots are taken first, with the sign kept: large features then count for less.
        centre: (e,) subtracted last; None for nothing.
        scale: What points are multiplied with at the end.

    >>> halved = Representation("halved", shape=(2,), matrix=np.eye(2) / 2)
    >>> halved(np.array([[2.0, 4.0]]))
    array([[1., 2.]])
    >>> Representation.unpack(*halved.pack()).name
    'halved'
    """

    name: str
    shape: tuple[int, ...]
    shift: Floats | None = None
    matrix: Floats | None = None
    unit: bool = False
    learnt: LearntStep | None = None
    unit_after: bool = False
    root: bool = False
    centre: Floats | None = None
    scale: float = 1.0

    def __call__(self, items: NDArray[Any]) -> Floats:
        """Points (n, e) of items (n, *shape), vectors or uint8 images.

        Float64, so that an item gives the same point to the last printed digit whatever other items it comes with.
        """
        if items.shape[1:] != self.shape:
            raise InputError(
                f"items of shape {items.shape[1:]}, but {self.shape} is what was learnt from: "
                "prepare them the same way, or learn again."
            )
        check_features(items, "some")
        if self.learnt is None:
            return self._framed(self.prepare(items))
        return self.embed(self.prepare(items) if len(self.shape) == 1 else items)

    def prepare(self, items: NDArray[Any]) -> Floats:
        """Items (n, *shape) after the steps before the learnt one, (n, e)."""
        rows = (_scaled(items) if items.dtype == np.uint8 else items).reshape(len(items), prod(self.shape))
        points = rows.astype(np.float64)
        if self.root:
            points = np.sign(points) * np.sqrt(np.abs(points))
        if self.shift is not None:
            points = points - self.shift
        if self.matrix is not None:
            points = points @ self.matrix
        return unit(points) if self.unit else points

    def embed(self, prepared: NDArray[Any]) -> Floats:
        """Points (n, e) of prepared vectors, or of images (n, c, h, w), by the learnt step."""
        assert self.learnt is not None
        points = self.learnt(prepared)
        return self._framed(unit(points) if self.unit_after else points)

    @property
    def width(self) -> int:
        """Dimensions of a point."""
        blank = np.zeros((1, *self.shape), np.float64 if len(self.shape) == 1 else np.uint8)
        return int(self(blank).shape[1])

    def framed(self, items: NDArray[Any]) -> Representation:
        """The same, with points of some items (n, *shape) about the origin at a mean squared distance of 1.

        What lies at length 1 about a mean stays as it is. Of items that are all the same, their size is the unit.
        """
        if self.unit and self.learnt is None:
            return self
        parts = [self(part) for part in chunks(items)]
        centre = np.sum([part.sum(0) for part in parts], axis=0) / len(items)
        spread = float(np.sum([np.square(part - centre).sum() for part in parts]) / len(items))
        size = float(np.sum([np.square(part).sum() for part in parts]) / len(items))
        spread = spread if spread > SAME**2 * size else size
        return replace(self, centre=centre, scale=spread**-0.5 if spread > 0 else 1.0)

    def _framed(self, points: Floats) -> Floats:
        points = (points if self.centre is None else points - self.centre) * self.scale
        return np.clip(points, -TOO_LARGE, TOO_LARGE)

    def followed_by(self, learnt: LearntStep, name: str, *, unit: bool) -> Representation:
        """The same preparation with what a method learnt behind it."""
        return replace(self, name=name, learnt=learnt, unit_after=unit)

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON-able facts from which `unpack` makes it again.

        Raises:
            InputError: The learnt step is of a user's own kind, which nothing could read back.
        """
        parts = ("shift", "matrix", "centre")
        arrays = {key: value for key in parts if (value := getattr(self, key)) is not None}
        facts: dict[str, Any] = {key: getattr(self, key) for key in ("name", "unit", "root", "scale")}
        facts |= {"shape": list(self.shape), "embedding": None}
        if self.learnt is not None:
            if self.learnt.kind not in LEARNT_STEPS:
                raise InputError(
                    f"{self.name} cannot be saved: it makes points by a {self.learnt.kind} of your own, which no other "
                    "program could read back; let the method return a network of medi.nn.build."
                )
            learnt, facts["embedding"] = self.learnt.pack()
            arrays |= with_prefix("embedding", learnt)
            facts |= {"kind": self.learnt.kind, "unit_after": self.unit_after}
        return arrays, facts

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Representation:
        """What `pack` took apart; KeyError, TypeError, ValueError or RuntimeError where it is damaged."""
        prepared = cls(
            str(facts["name"]),
            tuple(int(side) for side in facts["shape"]),
            arrays.get("shift"),
            arrays.get("matrix"),
            bool(facts["unit"]),
            root=bool(facts["root"]),
            centre=arrays.get("centre"),
            scale=float(facts["scale"]),
        )
        if facts["embedding"] is None:
            return prepared
        unpack = load_listed(LEARNT_STEPS[facts["kind"]], "this model, which holds a network,")
        learnt = unpack(facts["kind"], under_prefix("embedding", arrays), facts["embedding"])
        return replace(prepared, learnt=learnt, unit_after=bool(facts["unit_after"]))


def check_features(items: NDArray[Any], which: str) -> None:
    """Refuse vectors that hold NaN, infinite or absurdly large numbers; `which` says whose they are.

    >>> check_features(np.array([[1.0, np.nan]]), "known")
    Traceback (most recent call last):
    medi.core.errors.InputError: known features are NaN or infinite: repair or drop those items.
    """
    for part in chunks(items) if items.dtype.kind == "f" else ():
        if not np.isfinite(part).all():
            raise InputError(f"{which} features are NaN or infinite: repair or drop those items.")
        if part.size and np.abs(part).max() > TOO_LARGE:
            raise InputError(f"{which} features are larger than {TOO_LARGE:g}: divide all of them by their usual size.")


def check_size(items: NDArray[Any], which: str) -> None:
    """Refuse vectors that are too small, all of them, for their squares to be told apart; all zero they may be.

    >>> check_size(np.array([[0.0, 1e-160]]), "known")
    Traceback (most recent call last):
    medi.core.errors.InputError: known features are all smaller than 1e-30: divide all of them by their usual size.
    """
    if 0 < max((float(np.abs(part).max()) for part in chunks(items) if part.size), default=0.0) < TOO_SMALL:
        raise InputError(
            f"{which} features are all smaller than {TOO_SMALL:g}: divide all of them by their usual size."
        )


def unit(points: Floats) -> Floats:
    """Points (n, d) scaled to length 1; the origin stays.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    return np.asarray(points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12))


def _scaled(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Images as floats from -2 to 2, as networks see them."""
    scaled = (images / np.float32(255) - np.float32(0.5)) / np.float32(0.25)
    return np.asarray(scaled, np.float32)
