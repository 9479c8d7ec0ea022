"""A 2-D map of items: near on the map means alike, as far as two dimensions allow."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from medi.discovery.points import compact

FEWEST_MAPPED, MOST_MAPPED = 5, 2000
"""t-SNE needs so many items and takes too long with more; otherwise the map shows principal directions."""


@dataclass(frozen=True)
class Plane:
    """A map on which further items can be placed.

    Attributes:
        centre: (d,), the middle of the map's items.
        directions: (d, 2), in which they differ most.
        low: (2,), their least coordinates.
        high: (2,), their largest ones.
    """

    centre: Tensor
    directions: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, points: Tensor) -> Self:
        """The plane in which points (n, d) differ most."""
        points = points.double()
        centre = points.mean(0)
        directions = torch.zeros(points.shape[1], 2, dtype=torch.float64)
        found = torch.linalg.svd(points - centre, full_matrices=False).Vh[:2]
        directions[:, : len(found)] = found.T
        places = (points - centre) @ directions
        return cls(centre, directions, places.amin(0), places.amax(0))

    def __call__(self, points: Tensor) -> Tensor:
        """Places (n, 2) from 0 to 1 of points (n, d); those beyond the map's items are put on the edge."""
        places = (points.double() - self.centre) @ self.directions
        span = self.high - self.low
        return torch.where(span > 0, (places - self.low) / span.clamp(min=1e-300), 0.5).clamp(0, 1)


def map_positions(points: Tensor, seed: int) -> tuple[tuple[float, float], ...]:
    """A place (x, y) from 0 to 1 for each of the points (n, d)."""
    if len(points) > MOST_MAPPED:
        return tuple((x, y) for x, y in Plane.of(points)(points).tolist())
    flat = compact(points.double()).numpy()
    flat = flat - flat.mean(0)
    if len(flat) < FEWEST_MAPPED or np.allclose(flat, 0):
        places = _principal(flat)
    else:
        from sklearn.manifold import TSNE

        with warnings.catch_warnings():  # identical items: their principal directions are undefined, and do not matter
            warnings.simplefilter("ignore", RuntimeWarning)
            start = 1e-4 * _principal(flat) / max(1e-12, float(_principal(flat).std()))
            perplexity = min(30.0, (len(flat) - 1) / 3)
            places = TSNE(perplexity=perplexity, init=start, random_state=seed, n_jobs=1).fit_transform(flat)
    low, high = places.min(0), places.max(0)
    unit = np.where(high > low, (places - low) / np.where(high > low, high - low, 1), 0.5)
    return tuple((float(x), float(y)) for x, y in unit)


def _principal(flat: np.ndarray) -> np.ndarray:
    """The two directions in which points (n, d) differ most, as (n, 2)."""
    u, s, _ = np.linalg.svd(flat, full_matrices=False)
    places = np.zeros((len(flat), 2), dtype=np.float32)
    places[:, : len(s)] = (u * s)[:, :2]
    return places
