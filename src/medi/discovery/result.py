"""What a discovery says: the one object that the command, the estimator and the report share.

Plain numbers and strings only, so that `dataclasses.asdict` makes it JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["trustworthy", "doubtful", "no help"]
"""no help: the known classes teach nothing that the novel ones share."""


SURE = 2 / 3
"""An item whose confidence is below this is marked as doubtful: it is less than twice as likely there as elsewhere."""


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
    """Is this solvable? A verdict and the figures behind it; None where a figure could not be had.

    Attributes:
        verdict: In one word.
        overlap: Share of the mass that the worst pair of known classes shares (tau of the paper's Definition 2).
        gain: ACC that learning from known classes adds over raw features, on held-out known classes.
        distance: How far novel items lie from the nearest known class, in units of how far known classes lie apart.
        stability: Mean adjusted Rand index of the grouping with itself under resampling.
        reasons: Plain sentences with the figures in them, the weightiest first.
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
        doubtful: Items that could as well belong elsewhere.
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
