"""Figures that the paper's theory asks for: how far known classes overlap, and how far novel items lie from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from medi.discover.choice import Split
from medi.discover.thinning import compact, thin
from medi.grouping.engine import Stage
from medi.grouping.preparations import class_means
from medi.theory import overlap

OVERLAP_NEIGHBOURS, OVERLAP_RESAMPLES, OVERLAP_POINTS = 5, 20, 500
"""How the overlap is estimated: neighbours, resamples (they only remove its bias), and most points."""


def largest_overlap(stages: Sequence[Stage]) -> float | None:
    """The largest overlap of two known classes (tau of the paper's Definition 2), where nothing was fitted to them.

    Classes of fewer than four items are left out; None where fewer than two are left.
    """
    found = []
    for stage in stages:
        few = thin(stage.labels, OVERLAP_POINTS, seed=0)
        points, labels = stage.held_out[few], stage.labels[few]
        counts = np.bincount(labels)
        keep = counts[labels] >= 4
        if len(np.unique(labels[keep])) < 2:
            continue
        neighbours = min(OVERLAP_NEIGHBOURS, int(counts[counts >= 4].min()) // 2 - 1)
        found.append(
            overlap(compact(points[keep]), labels[keep], neighbours=neighbours, resamples=OVERLAP_RESAMPLES).tau
        )
    return max(found) if found else None


def distance_from_known(splits: Sequence[Split], novel: NDArray[Any]) -> float | None:
    """How far novel items lie from the nearest known class; 1 is as far as held-out known classes lie from the others.

    The ratio of medians over items, averaged over splits. Features are taken as they are, because vectors of length 1
    are never far from each other; images as a network embeds them that has not seen the held-out classes.
    """
    if not splits or not len(novel):
        return None
    ratios = []
    for split in splits:
        candidates = split.candidates
        of_images = novel.ndim == 4 and len(candidates.learnt) > 0
        represent = next(iter((candidates.learnt if of_images else candidates.plain).values()))
        centres = class_means(split.learnt_from, represent)
        nearest = (cdist(represent(items), centres).min(1) for items in (novel, split.held_out.values))
        far, usual = (float(np.quantile(distances, 0.5, method="lower")) for distances in nearest)
        if usual > 0:
            ratios.append(far / usual)
    return float(np.mean(ratios)) if ratios else None
