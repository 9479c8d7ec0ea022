"""The result of a discovery, which the command, the estimator and the report all use.

It holds plain numbers and strings only, so that `dataclasses.asdict` makes it JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["trustworthy", "doubtful", "no help"]
"""no help: the known classes teach nothing that the novel ones share."""


DOUBTFUL_BELOW = 2 / 3
"""An item with less confidence is marked as doubtful: it is less than twice as likely in its group as elsewhere."""


@dataclass(frozen=True)
class ClassCount:
    """How many novel classes there are, and how that was found.

    Attributes:
        k: The number used.
        low: Fewest that the data allows.
        high: Most that the data allows; `low == high == k` where the number was given.
        candidates: Numbers that were scored; empty where the number was given.
        scores: One score a candidate, higher is better.
        certain: False where the data cannot tell: say so to the user.
        how: One plain sentence.
    """

    k: int
    low: int
    high: int
    candidates: tuple[int, ...]
    scores: tuple[float, ...]
    certain: bool
    how: str


@dataclass(frozen=True)
class Diagnosis:
    """Whether the groups can be trusted: a verdict and the figures behind it, None where one could not be measured.

    Attributes:
        verdict: In one word.
        overlap: Fraction of the mass that the worst pair of known classes has in common (tau of Definition 2).
        gain: ACC that learning from known classes adds over raw features, on held-out known classes.
        distance: How far novel items lie from the nearest known class, in units of how far known classes lie apart.
        stability: Mean adjusted Rand index of the grouping with itself under resampling.
        reasons: Plain sentences with the figures in them, the most important first.
    """

    verdict: Verdict
    overlap: float | None
    gain: float | None
    distance: float | None
    stability: float | None
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Neighbour:
    """A known class near a group, and how far it lies (1 = as far as known classes lie apart)."""

    name: str
    distance: float


@dataclass(frozen=True)
class Discovery:
    """The groups found among m novel items.

    Attributes:
        labels: Group of each item, 0 to count.k - 1; the largest group is 0.
        confidence: 0 to 1 each.
        doubtful: Whether each item could as well belong to another group.
        nearest_known: Name of the nearest known class of each item; empty strings where there are none.
        neighbours: The nearest known classes of each group, nearest first.
        medoids: Index of the most typical item of each group.
        count: How many groups, and why.
        diagnosis: Whether to trust it.
        representation: What items were compared by, such as "encoder" or "encoder + projector".
        representation_scores: ACC on held-out known classes of each representation that was tried.
        positions: Place of each item on a 2-D map, both coordinates from 0 to 1.
    """

    labels: tuple[int, ...]
    confidence: tuple[float, ...]
    doubtful: tuple[bool, ...]
    nearest_known: tuple[str, ...]
    neighbours: tuple[tuple[Neighbour, ...], ...]
    medoids: tuple[int, ...]
    count: ClassCount
    diagnosis: Diagnosis
    representation: str
    representation_scores: Mapping[str, float]
    positions: tuple[tuple[float, float], ...]
