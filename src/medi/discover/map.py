"""A 2-D map of items: near on the map means alike, as far as two dimensions allow."""

from __future__ import annotations

import warnings

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.discover.thinning import compact

FEWEST_MAPPED, MOST_MAPPED = 5, 2000
"""t-SNE needs so many items and takes too long with more; otherwise the map shows principal directions."""


def map_positions(points: Floats, drawn: Ints, seed: int) -> Floats:
    """A place (n, 2) from 0 to 1 for each of the points (n, d); of very many, those `drawn` span the map."""
    if len(points) > MOST_MAPPED:
        centred = points - points[drawn].mean(0)
        directions, places = _directions(centred[drawn])[2], np.zeros((len(points), 2))
        places[:, : len(directions)] = centred @ directions.T
    else:
        drawn, places = np.arange(len(points)), _mapped(compact(points), seed)
    low, high = places[drawn].min(0), places[drawn].max(0)
    within = np.where(high > low, (places - low) / np.where(high > low, high - low, 1), 0.5)
    return np.clip(within.astype(np.float64), 0, 1)  # what lies beyond the map is put on its edge


def _mapped(points: Floats, seed: int) -> np.ndarray:
    """A place (n, 2) for each of a few points (n, d): by t-SNE, or where those are too few in principal directions."""
    flat = points - points.mean(0)
    u, s, _ = _directions(flat)
    places = np.zeros((len(flat), 2), np.float32)
    places[:, : len(s)] = u * s
    if len(flat) < FEWEST_MAPPED or np.allclose(flat, 0):
        return places
    from sklearn.manifold import TSNE

    with warnings.catch_warnings():  # identical items: their principal directions are undefined, and do not matter
        warnings.simplefilter("ignore", RuntimeWarning)
        start = 1e-4 * places / max(1e-12, float(places.std()))
        perplexity = min(30.0, (len(flat) - 1) / 3)
        return np.asarray(TSNE(perplexity=perplexity, init=start, random_state=seed, n_jobs=1).fit_transform(flat))


def _directions(centred: Floats) -> tuple[Floats, Floats, Floats]:
    """The singular value decomposition of points (n, d) in the two directions, at most, in which they differ most."""
    u, s, v = np.linalg.svd(centred, full_matrices=False)
    return u[:, :2], s[:2], v[:2]
