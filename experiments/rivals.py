"""DTC's way to estimate the number of classes, which `choose_k.py` compares with ours."""

from __future__ import annotations

import numpy as np
import torch
from medi.discovery.count import silhouette
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from medi.cluster.kmeans import plus_plus_seeds, squared_distances
from medi.metrics import acc


def constrained_kmeans(
    points: Tensor, anchors: Tensor, anchor_labels: Tensor, k: int, generator: torch.Generator, rounds: int = 30
) -> tuple[Tensor, Tensor]:
    """K-means in which some points are tied to clusters of their own class: DTC's semi-supervised k-means.

    Args:
        points: (n, d), free.
        anchors: (a, d), tied.
        anchor_labels: (a,) 0 to c - 1, their clusters.
        k: Further clusters, beside the c of the anchors.
        generator: Source of the seeds.
        rounds: Most rounds of Lloyd.

    Returns:
        Labels (n,), 0 to c + k - 1, and centres (c + k, d).
    """
    c = int(anchor_labels.max()) + 1 if len(anchor_labels) else 0
    total = torch.cat([anchors, points])
    seeds = points[plus_plus_seeds(points[None], k, generator=generator, restarts=1)[0, 0]]
    tied = one_hot(anchor_labels, c).to(points.dtype).T @ anchors / torch.bincount(anchor_labels, minlength=c)[:, None]
    centres = torch.cat([tied, seeds])
    labels = torch.full((len(points),), -1)
    for _ in range(rounds):
        nearest = squared_distances(points, centres).argmin(1)
        if bool((nearest == labels).all()):
            break
        labels = nearest
        members = one_hot(torch.cat([anchor_labels, labels]), c + k).to(points.dtype).T
        sizes = members.sum(1, keepdim=True)
        centres = torch.where(sizes > 0, members @ total / sizes.clamp(min=1), centres)
    return labels, centres


def dtc_probe(
    points: Tensor, probe: Tensor, probe_labels: Tensor, candidates: NDArray[np.int64], generator: torch.Generator
) -> int:
    """DTC's estimate: known classes are hidden among the novel points, and the k that finds both best is chosen.

    Four in five of the probe classes are anchors; the others are clustered with the novel points. The k with the best
    ACC on these others and the k with the best silhouette on the novel points are averaged. Clusters with at most a
    hundredth of the items of the largest are then dropped.

    Args:
        points: (n, d) novel.
        probe: (p, d) items of known classes.
        probe_labels: (p,) 0 to c - 1.
        candidates: Numbers of novel classes to try.
        generator: Source of the seeds.
    """
    c = int(probe_labels.max()) + 1
    hidden = max(1, c // 5)
    tied = probe_labels < c - hidden
    free = torch.cat([probe[~tied], points])
    distances = squared_distances(points, points).sqrt()
    accuracies, widths = [], []
    for k in candidates.tolist():
        labels, _ = constrained_kmeans(free, probe[tied], probe_labels[tied], k + hidden, generator)
        of_probe, of_novel = labels[: int((~tied).sum())], labels[int((~tied).sum()) :]
        accuracies.append(acc(probe_labels[~tied], of_probe))
        dense = torch.unique(of_novel, return_inverse=True)[1]
        widths.append(silhouette(distances, dense) if int(dense.max()) else -1.0)
    k = round((candidates[int(np.argmax(accuracies))] + candidates[int(np.argmax(widths))]) / 2)
    labels, _ = constrained_kmeans(free, probe[tied], probe_labels[tied], k + hidden, generator)
    sizes = torch.bincount(labels[int((~tied).sum()) :])
    return int((sizes > 0.01 * sizes.max()).sum())
