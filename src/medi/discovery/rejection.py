"""Thresholds: how far from the nearest mean an item may lie and still belong to that class or group.

Known classes set the thresholds. Some are held out and a handful of their items is grouped as if they were novel. Then
further items of these classes are compared with the means of the groups, and all but `MISSED` of them must be within
the threshold. Items of no class take no part: nothing is known of those that will be met later.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medi.cluster.groups import group_means
from medi.cluster.kmeans import squared_distances
from medi.discovery.grouping import group
from medi.discovery.held_out import Choice

MISSED = 0.15
"""Fraction of the new items of a class that may be called none."""
OBSERVED = (1, 2, 3, 5, 10)
"""Sizes of groups that have a threshold of their own; a size between two takes that of the smaller, which is wider."""
DRAWS = 8
"""Times that a handful is drawn from the held-out classes of a split."""

Grouping = Callable[[Tensor, Tensor], NDArray[np.int64]]
"""From points (n, d) and their classes (n,) to groups (n,)."""


def corrected_distances(points: Tensor, centres: Tensor, sizes: Tensor) -> Tensor:
    """Squared distances (n, c) of points (n, d) to means (c, d), divided by 1 + 1 / n for the mean of n items.

    The error of the mean enlarges distances by that factor, whatever the class. The spread of the class is left.
    """
    return squared_distances(points, centres) * (sizes / (sizes + 1.0))


def left_out_distances(points: Tensor, labels: Tensor, centres: Tensor, counts: Tensor) -> Tensor:
    """Corrected squared distances (n, c) of points to class means; the mean of an item's own class is taken without it.

    A class of one item keeps its mean.
    """
    sizes = counts.double()
    distances = corrected_distances(points, centres, sizes)
    n = sizes[labels]
    # Leaving an item out moves its mean away from it by n / (n - 1); n - 1 items are then behind the mean.
    own = squared_distances(points, centres).gather(1, labels[:, None]).squeeze(1)
    own = torch.where(n > 1, own * (n / (n - 1).clamp(min=1)).square() * (n - 1) / n, own / 2)
    return distances.scatter(1, labels[:, None], own[:, None])


def thresholds_by_splits(choice: Choice, group_sizes: Tensor, own: Tensor) -> Tensor:
    """Thresholds (k + c,) of groups and of known classes, set by held-out known classes.

    Args:
        choice: What was kept, and the splits.
        group_sizes: (k,) items in each group.
        own: (n, c) `left_out_distances` of known items from the c known classes.
    """
    fitted = choice.representation in choice.splits[0].candidates.learnt
    generator = torch.Generator().manual_seed(0)

    def clustered(points: Tensor, labels: Tensor) -> NDArray[np.int64]:
        return group(points, len(np.unique(labels.numpy())), choice.clustering, torch.Generator().manual_seed(0))

    of_groups: dict[int, list[Tensor]] = {observed_size(int(n)): [] for n in group_sizes}
    # Where the representation does not look at classes, an item left out of its own mean counts as a new one.
    of_classes = []
    for split in choice.splits:
        represent = split.candidates.all[choice.representation]
        learnt_from, held = represent(split.learnt_from.images), represent(split.held_out.images)
        counts = torch.bincount(split.learnt_from.labels, minlength=split.learnt_from.n_classes)
        classes = group_means(learnt_from, split.learnt_from.labels, len(counts))
        if fitted and len(split.kept_back):
            of_classes.append(corrected_distances(represent(split.kept_back.images), classes, counts).amin(1))
        for size, found in of_groups.items():
            for _ in range(DRAWS):
                groups, sizes, asked = handful(held, split.held_out.labels, size, clustered, generator)
                centres, behind = torch.cat([groups, classes]), torch.cat([sizes, counts])
                found.append(corrected_distances(held[asked], centres, behind).amin(1))
    of_class = threshold(torch.cat(of_classes) if of_classes else own.amin(1))
    return _by_size(of_groups, group_sizes, of_class, own.shape[1])


def thresholds_by_items(points: Tensor, labels: Tensor, group_sizes: Tensor, n_classes: int) -> Tensor:
    """Thresholds (k + c,) where there is nothing to hold out: by how items (n, d) of a class or group (n,) differ.

    Infinite where no class has two items: nothing is known of how they differ.
    """
    counts = torch.bincount(labels)
    several = counts[labels] > 1
    points, labels = points[several], ((counts > 1).cumsum(0) - 1)[labels[several]]
    if not len(points):
        return torch.full((len(group_sizes) + n_classes,), torch.inf, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    of_groups: dict[int, list[Tensor]] = {observed_size(int(n)): [] for n in group_sizes}
    for size, found in of_groups.items():
        for _ in range(DRAWS):
            groups, sizes, asked = handful(points, labels, size, _as_named, generator)
            found.append(corrected_distances(points[asked], groups, sizes).amin(1))
    within = torch.bincount(labels)
    left_out = left_out_distances(points, labels, group_means(points, labels, len(within)), within)
    return _by_size(of_groups, group_sizes, threshold(left_out.amin(1)), n_classes)


def handful(
    points: Tensor, labels: Tensor, size: int, grouping: Grouping, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Group a few items of each class.

    Args:
        points: (n, d) items of classes with two items or more.
        labels: (n,) their classes.
        size: Items of each class that are grouped; of a class with fewer than twice as many, half.
        grouping: How they are grouped.
        generator: Draws the items.

    Returns:
        Means (g, d) and sizes (g,) of the groups, and the indices (m,) of the items that were not grouped.
    """
    shuffled = torch.randperm(len(labels), generator=generator)
    shuffled = shuffled[labels[shuffled].argsort(stable=True)]
    counts = torch.bincount(labels)
    place = torch.arange(len(labels)) - (counts.cumsum(0) - counts)[labels[shuffled]]
    few = place < (counts // 2).clamp(max=size)[labels[shuffled]]
    observed = shuffled[few]
    groups = torch.from_numpy(grouping(points[observed], labels[observed]))
    sizes = torch.bincount(groups)
    return group_means(points[observed], groups, len(sizes)), sizes, shuffled[~few]


def observed_size(n: int) -> int:
    """The size in `OBSERVED` whose threshold a group of n items takes."""
    return max(size for size in OBSERVED if size <= max(n, 1))


def threshold(distances: Tensor) -> float:
    """The distance that the fraction `MISSED` of some distances (n,) exceeds."""
    return float(distances.quantile(1 - MISSED))


def _by_size(of_groups: dict[int, list[Tensor]], group_sizes: Tensor, of_class: float, n_classes: int) -> Tensor:
    by_size = {size: threshold(torch.cat(found)) for size, found in of_groups.items()}
    thresholds = [by_size[observed_size(int(n))] for n in group_sizes] + [of_class] * n_classes
    return torch.tensor(thresholds, dtype=torch.float64)


def _as_named(points: Tensor, labels: Tensor) -> NDArray[np.int64]:
    named: NDArray[np.int64] = labels.numpy()
    return named
