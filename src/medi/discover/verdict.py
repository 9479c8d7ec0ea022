"""Can the groups be trusted? A verdict for the whole and for each group, in words that cannot be misread.

Rules for the sentences: the reader is a biologist. Numbers are about the reader's own pictures, or say in the same
sentence whose pictures they are about. What speaks against trust comes first.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite
from typing import TypeGuard

from medi.discover.result import Diagnosis, GroupVerdict, Measured, Verdict, per_cent

# Thresholds of the whole (docs/estimator.md, The verdict).
FEWEST_CLASSES = 4
"""Known classes below which nothing can be rehearsed: two would play novel, two would be learnt from."""
GROUPED = 0.7
"""Share of the rehearsal's items put right from which a way of grouping counts as good."""
USEFUL = 0.05
"""What learning from known classes has to add to that share, beyond chance, to count as a help."""
STANDARD_ERRORS = 2
"""Over splits of the known classes, within which a figure counts as chance."""
FAR = 1.3
"""Distance from known classes, 1 for hidden known ones, beyond which what holds for known classes may not hold."""
UNCERTAIN = 1.5
"""The number of groups counts as uncertain where the interval's upper end is more than this times the lower."""
EXPECTED = 0.85
"""Share of the lines expected to be right from which the whole can be called trustworthy."""
MUCH_KNOWN = 1 / 3
"""Share of the pool that looks known from which it counts as a pool of known things too."""
FEW_EACH = 6
"""Labelled items of a known class below which more of them help most."""

# Thresholds of a group.
PURE, MIXED_BELOW = 0.9, 0.5
"""Probability that all its items are of one class from which a group is tight, and below which it is mixed."""
SURE_LINES = 0.75
"""Mean confidence of its lines that a tight group has at least, and a mixed one has not."""
MAY_BE_ONE = 0.2
"""Probability that it and another group are one class from which that is said."""


@dataclass(frozen=True, kw_only=True)
class Figures(Measured):
    """What a verdict rests on.

    Attributes:
        low: Lower end of the 90 % interval of the number of groups.
        high: Upper end of that interval.
        number_given: Whether the user gave the number.
        known_classes: How many there are.
        known_each: At least half of them have so many items or fewer; 0 where there are none.
    """

    low: int
    high: int
    number_given: bool
    known_classes: int
    known_each: int

    def diagnosis(self, noun: str = "picture") -> Diagnosis:
        """The verdict, its reasons and its figures; `noun` is what the sentences call an item."""
        measured = {one.name: getattr(self, one.name) for one in fields(Measured)}
        return Diagnosis(**measured, verdict=judge(self), reasons=reasons(self, noun))


def judge(figures: Figures) -> Verdict:
    """The verdict.

    No help: the novel items lie far from the known classes, or hidden known classes are grouped badly and learning
    does not mend it. Trustworthy: nothing speaks against it (`reasons`). Doubtful: everything between, and whatever
    could not be checked.
    """
    if _far(figures) or (_badly_rehearsed(figures) and not _learning_helps(figures)):
        return "no help"
    return "doubtful" if _doubts(figures, "item") else "trustworthy"


def reasons(figures: Figures, noun: str = "picture") -> tuple[str, ...]:
    """Why, in plain sentences: what speaks against trust and for it, what to watch, and whose rule is trusted."""
    return (*_doubts(figures, noun), *_support(figures, noun), *_remarks(figures, noun), _rule(figures, noun))


def group_verdict(confidence: float, pure: float, sibling: float, *, calibrated: bool = True) -> GroupVerdict:
    """The verdict on a group of two items or more.

    Args:
        confidence: Mean of its lines.
        pure: Probability that all its items are of one class.
        sibling: Probability that it and the group most like it are one class.
        calibrated: Whether known classes set these probabilities; without them no group is called tight or mixed.
    """
    if sibling >= MAY_BE_ONE:
        return "may be one"
    if calibrated and pure >= PURE and confidence >= SURE_LINES:
        return "tight"
    return "mixed" if calibrated and pure < MIXED_BELOW and confidence < SURE_LINES else "uncertain"


def percent(share: float) -> str:
    """A share or probability in per cent, which says neither all nor none."""
    if share > 0.99:
        return "over 99 %"
    return "under 1 %" if share < 0.01 else f"{per_cent(share)} %"


def about(share: float) -> str:
    """The same as an estimate: about 67 %."""
    return percent(share) if not 0.01 <= share <= 0.99 else f"about {percent(share)}"


def expectation(figures: Measured) -> float | None:
    """The share of the lines expected to be right; None where known classes could not set it or are too different."""
    usable = figures.calibrated and measured(figures.expected) and not _far(figures)
    return figures.expected if usable else None


def measured(value: float | None) -> TypeGuard[float]:
    """Whether a figure could be had."""
    return value is not None and isfinite(value)


def _far(figures: Measured) -> bool:
    return measured(figures.distance) and figures.distance > FAR


def _badly_rehearsed(figures: Figures) -> bool:
    return measured(figures.rehearsed) and figures.rehearsed < GROUPED


def _learning_helps(figures: Figures) -> bool:
    gain, spread = figures.gain, figures.gain_spread
    return measured(gain) and measured(spread) and gain > max(USEFUL, STANDARD_ERRORS * spread)


def _doubts(figures: Figures, noun: str) -> list[str]:
    """What speaks against trust, the most important first; empty where nothing does."""
    found = []
    share = expectation(figures)
    if _far(figures):
        found.append(
            f"Your {noun}s look unlike all of your known classes. What those teach may not hold here, "
            f"so how many {noun}s are sorted correctly cannot be said."
        )
    found += _rehearsal_doubts(figures, noun)
    if share is not None and share < EXPECTED:
        found.append(f"We expect only {about(share)} of your {noun}s to be sorted correctly.")
    elif share is None and figures.calibrated and not _far(figures):
        found.append(f"How many of your {noun}s are sorted correctly could not be estimated.")
    return found


def _remarks(figures: Figures, noun: str) -> list[str]:
    """What to watch or to add; how many lines are right has it in it already."""
    found = []
    spread = figures.rehearsed_spread
    rehearsed = figures.rehearsed
    if 0 < figures.known_each < FEW_EACH and not _far(figures):
        found.append(
            f"Your known classes have few labelled {noun}s: at least half of them have no more than "
            f"{figures.known_each}. More labelled {noun}s of each known class would help most."
        )
    if measured(rehearsed) and measured(spread) and GROUPED <= rehearsed < GROUPED + STANDARD_ERRORS * spread:
        found.append("The rehearsal went well with some of your known classes and badly with others.")
    if not figures.number_given and figures.high > UNCERTAIN * figures.low:
        found.append(
            f"The number of groups is uncertain: anything from {figures.low} to {figures.high} would fit your {noun}s."
        )
    if figures.known_share >= MUCH_KNOWN:
        found.append(
            f"{about(figures.known_share).capitalize()} of your {noun}s look like classes that you already know. "
            "New things that resemble a known class may be among them."
        )
    return found


def _rehearsal_doubts(figures: Figures, noun: str) -> list[str]:
    """What the known classes say against trust, or that they could not be asked."""
    given, guess = figures.known_classes, "each confidence is a rough guess"
    if given < FEWEST_CLASSES:
        classes = f"only {given} known class{'es' if given > 1 else ''}" if given else "no known classes"
        return [f"You gave {classes}, so nothing could be rehearsed, and {guess}."]
    rehearsal = "As a rehearsal, we hid some of your known classes and grouped them the same way"
    found = []
    if not measured(figures.rehearsed):
        found.append(f"Nothing could be rehearsed on your known classes: they have too few {noun}s.")
    elif _badly_rehearsed(figures):
        text = f"{rehearsal}: too many of those known {noun}s came out wrong"
        found.append(text + ("." if _learning_helps(figures) else ", and learning from the others did not mend it."))
    elif not measured(figures.rehearsed_spread):
        found.append(f"{rehearsal}. That could be done only once, which is too little to rely on.")
    if not figures.calibrated:
        found.append(f"Confidence could not be checked on your known classes, so {guess}.")
    return found


def _support(figures: Figures, noun: str) -> list[str]:
    """What speaks for trust."""
    found = []
    share = expectation(figures)
    if share is not None and share >= EXPECTED:
        found.append(f"We expect {about(share)} of your {noun}s to be sorted correctly.")
    if not _rehearsal_doubts(figures, noun):
        found.append(
            "As a rehearsal, we hid some of your known classes and grouped them the same way: most of those known "
            f"{noun}s came out right. Your new {noun}s may be harder or easier."
        )
    return found


def _rule(figures: Figures, noun: str) -> str:
    """Whose rule is trusted."""
    if figures.known_classes < FEWEST_CLASSES:
        return (
            f"The groups follow general likeness. If you sort by another rule (say, by colour alone), the program "
            f"cannot notice that without {noun}s that you have sorted."
        )
    return (
        "The groups follow what tells your own known classes apart. If you mean another rule (say, you sort by colour "
        f"but your known classes are shapes), the program cannot notice that without {noun}s sorted by your rule."
    )
