"""The result of a discovery, which the command, the estimator, the report and the review all use.

It holds plain numbers and strings only, so that `dataclasses.asdict` makes it JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from typing import Literal

from medi.grouping.engine import Kind

Verdict = Literal["trustworthy", "doubtful", "no help"]
"""no help: the known classes teach nothing that the novel ones share."""

GroupVerdict = Literal["tight", "uncertain", "mixed", "may be one"]
"""tight: its items are very probably of one class; mixed: probably of two or more; may be one: it and another group may
be the same class; uncertain: everything between."""

SURE_FROM = 67
"""Per cent of confidence below which a line is marked as doubtful: one in three of those, or more, is wrong."""


def per_cent(share: float) -> int:
    """A share as every page shows it: in whole per cent, of the four digits that files have.

    >>> per_cent(0.66496), per_cent(0.665), per_cent(0.6649)
    (67, 67, 66)
    """
    return floor(100 * round(share, 4) + 0.5)


def is_doubtful(confidence: float) -> bool:
    """Whether a line is marked as doubtful; it is decided by the number that is shown.

    >>> is_doubtful(0.664), is_doubtful(0.665)
    (True, False)
    """
    return per_cent(confidence) < SURE_FROM


@dataclass(frozen=True)
class ClassCount:
    """How many novel classes there are, and how that was found.

    Attributes:
        k: The number used.
        low: Lower end of the 90 % interval.
        high: Its upper end; `low == high == k` where the number was given.
        candidates: Numbers with a probability of their own; empty where the number was given.
        probabilities: One for each candidate.
        certain: False where the data cannot tell: say so to the user.
        how: One plain sentence.
    """

    k: int
    low: int
    high: int
    candidates: tuple[int, ...]
    probabilities: tuple[float, ...]
    certain: bool
    how: str


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the trust in groups rests on; None where something could not be measured.

    Attributes:
        expected: Share of the lines of `clusters.csv` that are expected to be right: the mean confidence.
        rehearsed: Share of items put right when hidden known classes were grouped in the same way.
        rehearsed_spread: Its standard error over splits of the known classes, which are the independent units.
        gain: What learning from known classes adds to that share.
        gain_spread: Its standard error over splits.
        distance: How far novel items lie from the nearest known class; 1 is as far as hidden known classes lie.
        overlap: Fraction of the mass that the worst pair of known classes has in common (tau of Definition 2).
        known_share: Share of the pool that looks like known classes.
        calibrated: Whether known classes set the confidence; without them it is a rough guess, never above one half.
    """

    expected: float | None = None
    rehearsed: float | None = None
    rehearsed_spread: float | None = None
    gain: float | None = None
    gain_spread: float | None = None
    distance: float | None = None
    overlap: float | None = None
    known_share: float = 0.0
    calibrated: bool


@dataclass(frozen=True, kw_only=True)
class Diagnosis(Measured):
    """Whether the groups can be trusted, and the figures behind that.

    Attributes:
        verdict: In one word.
        reasons: Plain sentences, the most important first.
    """

    verdict: Verdict
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """One group that was found.

    Attributes:
        items: How many it has.
        confidence: Mean confidence of its items.
        together: Probability that two of its items, drawn at random, are of one class; 1 for a single item.
        pure: Probability that all its items are of one class.
        verdict: In a word or two.
        sibling: The group that it would most probably be one with; None where there is no other.
        sibling_probability: How probable it is that an item of the one and an item of the other are of one class.
        medoid: Index of the most typical item.
        neighbours: Names of the most similar known classes, the most similar first.
    """

    items: int
    confidence: float
    together: float
    pure: float
    verdict: GroupVerdict
    sibling: int | None
    sibling_probability: float
    medoid: int
    neighbours: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """What was found among the m items of a pool.

    Attributes:
        kinds: Of each item.
        labels: Group of each item, 0 to count.k - 1, the largest group 0; -1 for items that are not novel.
        known: Name of the known class that an item looks like where its kind is known; otherwise empty.
        confidence: 0 to 1 each: how probable it is that kind, group and known class are right.
        doubtful: Of each item, whether it `is_doubtful`.
        nearest_known: Name of the most similar known class of each item; empty strings where there are none.
        groups: By number.
        count: How many groups, and why.
        diagnosis: Whether to trust it.
        representation: What items were compared by, such as "encoder" or "encoder + projector".
        representation_scores: Share of items put right with each representation, on known classes that were hidden.
        positions: Place of each item on a 2-D map, both coordinates from 0 to 1.
    """

    kinds: tuple[Kind, ...] = ()
    labels: tuple[int, ...] = ()
    known: tuple[str, ...] = ()
    confidence: tuple[float, ...] = ()
    doubtful: tuple[bool, ...] = ()
    nearest_known: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    count: ClassCount
    diagnosis: Diagnosis
    representation: str
    representation_scores: Mapping[str, float]
    positions: tuple[tuple[float, float], ...] = ()
