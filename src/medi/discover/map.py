"""A 2-D map of items: near on the map means alike, as far as two dimensions allow."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.discover.thinning import compact

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

    centre: Floats
    directions: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, points: Floats) -> Self:
        """The plane in which points (n, d) differ most."""
        centre = points.mean(0)
        directions = np.zeros((points.shape[1], 2))
        found = np.linalg.svd(points - centre, full_matrices=False)[2][:2]
        directions[:, : len(found)] = found.T
        places = (points - centre) @ directions
        return cls(centre, directions, places.min(0), places.max(0))

    def __call__(self, points: Floats) -> Floats:
        """Places (n, 2) from 0 to 1 of points (n, d); those beyond the map's items are put on the edge."""
        places = (points - self.centre) @ self.directions
        span = self.high - self.low
        return np.clip(np.where(span > 0, (places - self.low) / np.maximum(span, 1e-300), 0.5), 0, 1)


def map_positions(points: Floats, drawn: Ints, seed: int) -> Floats:
    """A place (n, 2) from 0 to 1 for each of the points (n, d); of very many, those `drawn` span the map."""
    if len(points) > MOST_MAPPED:
        points = points.astype(np.float64)
        return Plane.of(points[drawn])(points)
    flat = compact(points)
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
    return np.asarray(np.where(high > low, (places - low) / np.where(high > low, high - low, 1), 0.5), np.float64)


def _principal(flat: np.ndarray) -> np.ndarray:
    """The two directions in which points (n, d) differ most, as (n, 2)."""
    u, s, _ = np.linalg.svd(flat, full_matrices=False)
    places = np.zeros((len(flat), 2), dtype=np.float32)
    places[:, : len(s)] = (u * s)[:, :2]
    return places
