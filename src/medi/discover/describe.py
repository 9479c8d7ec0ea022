"""What is reported of the items and the groups of a pool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from medi.core.arrays import Ints
from medi.discover.choice import Choice
from medi.discover.result import ClassCount, Diagnosis, Discovery, Group, is_doubtful
from medi.discover.verdict import group_verdict
from medi.grouping.engine import Grouping, kind_of, known_label

NEAREST_NAMED = 3
"""Most similar known classes named for each group."""


def describe(
    blank: Discovery, grouping: Grouping, whole: Grouping, drawn: Ints, place: Ints, names: tuple[str, ...]
) -> Discovery:
    """The discovery among all lines of a pool, but for what is said of the whole.

    Args:
        blank: What is said of nothing.
        grouping: Of the items that were grouped.
        whole: Of all different items.
        drawn: (n,) which of these were grouped.
        place: (m,) the item of each line.
        names: Of the known classes.
    """
    labels, confidence = whole.labels[place], whole.confidence[place]
    nearest = [""] * len(whole.labels)
    if names:
        nearest = [names[i] for i in whole.likeness(whole.points).argmax(1).tolist()]
    first = {int(item): line for line, item in reversed(list(enumerate(place.tolist())))}
    sizes = np.bincount(labels[labels >= 0], minlength=grouping.k)
    return replace(
        blank,
        kinds=tuple(kind_of(label) for label in labels.tolist()),
        labels=tuple(np.maximum(labels, -1).tolist()),
        known=tuple(names[known_label(0) - label] if label <= known_label(0) else "" for label in labels.tolist()),
        confidence=tuple(confidence.tolist()),
        doubtful=tuple(map(is_doubtful, confidence.tolist())),
        nearest_known=tuple(nearest[item] for item in place.tolist()),
        groups=tuple(_groups(grouping, sizes, [first[item] for item in drawn.tolist()], names)),
    )


def nothing(choice: Choice) -> Discovery:
    """The result where the pool is empty."""
    return Discovery(
        count=ClassCount(0, 0, 0, (), (), True, "No groups: there is no novel item."),
        diagnosis=Diagnosis(
            gain=choice.gain,
            gain_spread=choice.spread,
            calibrated=bool(choice.splits),
            verdict="doubtful",
            reasons=("There is no novel item to group.",),
        ),
        representation=choice.representation,
        representation_scores=dict(choice.scores),
    )


def _groups(grouping: Grouping, sizes: Ints, lines: list[int], names: tuple[str, ...]) -> Iterator[Group]:
    """The groups: how many lines (k,) each has, and the first line (n,) of each item that was grouped."""
    labels, points = grouping.labels, grouping.points
    k, calibrated = grouping.k, grouping.calibrated
    members = [np.flatnonzero(labels == g) for g in range(k)]
    kin, likeness, pure = grouping.kin, grouping.likeness(points), grouping.pure
    for g, mine in enumerate(members):
        others = kin[g].copy()
        others[g] = -1
        probability = float(others.max()) if k > 1 else 0.0
        centre = points[mine].sum(0)
        medoid = int(mine[np.argmax(2 * points[mine] @ centre / len(mine) - np.square(points[mine]).sum(1))])
        closest = likeness[mine].mean(0).argsort()[::-1][:NEAREST_NAMED]
        confidence, certain = float(grouping.confidence[mine].mean()), calibrated and len(mine) > 1
        yield Group(
            items=int(sizes[g]),
            confidence=confidence,
            together=_together(float(pure[g]), float(grouping.between[g, g]), len(mine)),
            pure=float(pure[g]),
            verdict=group_verdict(confidence, float(pure[g]), probability, calibrated=certain),
            sibling=int(others.argmax()) if k > 1 else None,
            sibling_probability=probability,
            medoid=lines[medoid],
            neighbours=tuple(names[i] for i in closest),
        )


def _together(pure: float, inside: float, items: int) -> float:
    """Probability that two items of a group, drawn at random, are of one class.

    A group that is not pure has at least one stray, so that of its pairs 2 / items are of two classes.
    """
    return pure + (1 - pure) * min(inside, 1 - 2 / items) if items > 1 else 1.0
