"""Figures that the paper's theory asks for: how far known classes overlap, and how far novel items lie from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from medi.cluster.groups import group_means
from medi.cluster.kmeans import squared_distances
from medi.discovery.held_out import Split
from medi.discovery.points import compact, thin
from medi.discovery.rehearsal import Stage

OVERLAP_NEIGHBOURS, OVERLAP_RESAMPLES, OVERLAP_POINTS = 5, 20, 500
"""How the overlap is estimated: neighbours, resamples (they only remove its bias), and most points."""


def largest_overlap(stages: Sequence[Stage]) -> float | None:
    """The largest overlap of two known classes (tau of the paper's Definition 2), where nothing was fitted to them.

    Classes of fewer than four items are left out; None where fewer than two are left.
    """
    from medi.theory import overlap

    found = []
    for stage in stages:
        points, labels = torch.from_numpy(stage.held_out), torch.from_numpy(stage.labels)
        few = thin(labels, OVERLAP_POINTS, torch.Generator().manual_seed(0))
        points, labels = points[few], labels[few]
        counts = torch.bincount(labels)
        keep = counts[labels] >= 4
        if len(torch.unique(labels[keep])) < 2:
            continue
        neighbours = min(OVERLAP_NEIGHBOURS, int(counts[counts >= 4].min()) // 2 - 1)
        points, labels = compact(points[keep]), labels[keep]
        found.append(overlap(points, labels, neighbours=neighbours, bootstrap=OVERLAP_RESAMPLES).tau)
    return max(found) if found else None


def distance_from_known(splits: Sequence[Split], novel: Tensor) -> float | None:
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
        representation = next(iter((candidates.learnt if of_images else candidates.plain).values()))
        learnt = split.learnt_from
        centres = group_means(representation(learnt.images), learnt.labels, learnt.n_classes)
        far, usual = (
            float(squared_distances(representation(items), centres).amin(1).sqrt().median())
            for items in (novel, split.held_out.images)
        )
        if usual > 0:
            ratios.append(far / usual)
    return float(np.mean(ratios)) if ratios else None
