"""An order of their own for items, so that the order in which they come does not matter, and copies found."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from medi.cluster.posterior import Ints
from medi.data.imageset import ImageSet

DIGEST = 16
"""Bytes of a digest; items with the same digest are the same."""


def unique_items(items: Tensor) -> tuple[Tensor, Ints, Ints]:
    """Items (m, …) without copies, in an order that depends on their content alone.

    Returns:
        The n different items, how many copies (n,) there are of each, and the place (m,) of every item among them.
    """
    _, first, place, copies = np.unique(
        _digests(items), return_index=True, return_inverse=True, return_counts=True
    )  # fmt: skip
    return items[torch.from_numpy(first)], copies, place


def in_order(known: ImageSet) -> ImageSet:
    """Known items class by class, inside a class in an order that depends on their content alone."""
    order = np.lexsort((_digests(known.images), known.labels.numpy()))
    chosen = torch.from_numpy(order)
    return replace(known, images=known.images[chosen], labels=known.labels[chosen])


def _digests(items: Tensor) -> np.ndarray:
    """A digest (m,) of the bytes of each item."""
    rows = items.cpu().contiguous().flatten(1).numpy()
    return np.array([blake2b(row.tobytes(), digest_size=DIGEST).hexdigest() for row in rows], dtype=f"U{2 * DIGEST}")
