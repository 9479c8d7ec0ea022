"""Can the groups be trusted? A verdict for the whole and for each group, in words that cannot be misread.

Rules for the sentences: the reader is a biologist. Numbers are about the reader's own pictures, or say in the same
sentence whose pictures they are about. What speaks against trust comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TypeGuard

from medi.discovery.result import Diagnosis, GroupVerdict, Verdict

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
WIDE = 1.5
"""The number of groups counts as uncertain where the interval's upper end is more than this times the lower."""
EXPECTED = 0.75
"""Share of the lines expected to be right from which the whole can be called trustworthy."""
MUCH_KNOWN = 1 / 3
"""Share of the pool that looks known from which it counts as a pool of known things too."""

# Thresholds of a group.
MIXED_BELOW = 0.5
"""Two of the group's items are more probably of different classes than of one: half and half of two give less."""
MAY_BE_ONE = 1 / 3
"""That it and another group are one class is at least half as probable as that they are not."""
TIGHT_TOGETHER, TIGHT_APART = 0.8, 0.2
"""Two of its items are of one class with at least the first probability, it and another group with at most the last."""


@dataclass(frozen=True)
class Figures:
    """What a verdict rests on; None where something could not be measured.

    Attributes:
        expected: Mean calibrated confidence of the pool's items.
        rehearsed: Share of items put right when hidden known classes were grouped in the same way, number unknown.
        rehearsed_spread: Its standard error over splits of the known classes, which are the independent units.
        gain: What learning from known classes adds to that share.
        gain_spread: Its standard error over splits.
        distance: Of novel items from the nearest known class; 1 is as far as hidden known classes lie.
        overlap: Fraction of the mass that the worst pair of known classes has in common.
        known_share: Share of the pool that looks like known classes.
        low: Lower end of the 90 % interval of the number of groups.
        k: The number used.
        high: Upper end of that interval.
        number_given: Whether the user gave the number.
        calibrated: Whether known classes set the confidence.
        known_classes: How many there are.
        items: How many items the pool has.
    """

    expected: float | None
    rehearsed: float | None
    rehearsed_spread: float | None
    gain: float | None
    gain_spread: float | None
    distance: float | None
    overlap: float | None
    known_share: float
    low: int
    k: int
    high: int
    number_given: bool
    calibrated: bool
    known_classes: int
    items: int


def diagnosis_of(figures: Figures, noun: str = "picture") -> Diagnosis:
    """The verdict, its reasons and its figures; `noun` is what the sentences call an item."""
    return Diagnosis(
        verdict=judge(figures),
        reasons=reasons(figures, noun),
        expected=figures.expected,
        rehearsed=figures.rehearsed,
        rehearsed_spread=figures.rehearsed_spread,
        gain=figures.gain,
        gain_spread=figures.gain_spread,
        distance=figures.distance,
        overlap=figures.overlap,
        known_share=figures.known_share,
        calibrated=figures.calibrated,
    )


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
    """Why, in plain sentences: first what speaks against trust, then what speaks for it, last whose rule is trusted."""
    return (*_doubts(figures, noun), *_support(figures, noun), _rule(figures, noun))


def group_verdict(together: float, sibling_probability: float, items: int, *, calibrated: bool = True) -> GroupVerdict:
    """The verdict on one group.

    Args:
        together: Probability that two of its items are of one class.
        sibling_probability: Probability that it and the group most like it are one class.
        items: How many it has; a single one is never tight, as nothing confirms it.
        calibrated: Whether known classes set these probabilities; without them no group is called tight.
    """
    if items > 1 and together < MIXED_BELOW:
        return "mixed"
    if sibling_probability >= MAY_BE_ONE:
        return "may be one"
    if calibrated and items > 1 and together >= TIGHT_TOGETHER and sibling_probability <= TIGHT_APART:
        return "tight"
    return "uncertain"


def percent(share: float) -> str:
    """A share or probability in per cent, which says neither all nor none."""
    if share > 0.99:
        return "over 99 %"
    return "under 1 %" if share < 0.01 else f"{100 * share:.0f} %"


def about(share: float) -> str:
    """The same as an estimate: about 67 %."""
    return percent(share) if not 0.01 <= share <= 0.99 else f"about {percent(share)}"


def expectation(figures: Figures | Diagnosis) -> float | None:
    """The share of the lines expected to be right; None where known classes could not set it or are too different."""
    usable = figures.calibrated and measured(figures.expected) and not _far(figures)
    return figures.expected if usable else None


def measured(value: float | None) -> TypeGuard[float]:
    """Whether a figure could be had."""
    return value is not None and isfinite(value)


def _far(figures: Figures | Diagnosis) -> bool:
    return measured(figures.distance) and figures.distance > FAR


def _badly_rehearsed(figures: Figures) -> bool:
    return measured(figures.rehearsed) and figures.rehearsed < GROUPED


def _learning_helps(figures: Figures) -> bool:
    gain, spread = figures.gain, figures.gain_spread
    return measured(gain) and measured(spread) and gain > max(USEFUL, STANDARD_ERRORS * spread)


def _doubts(figures: Figures, noun: str) -> list[str]:
    """What speaks against trust, the most important first; empty where nothing does."""
    if not figures.items:
        return [f"There are no {noun}s to sort."]
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
    if not figures.number_given and figures.high > WIDE * figures.low:
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
    spread = figures.rehearsed_spread
    found = []
    if not measured(figures.rehearsed):
        found.append(f"Nothing could be rehearsed on your known classes: they have too few {noun}s.")
    elif _badly_rehearsed(figures):
        text = f"{rehearsal}: too many of those known {noun}s came out wrong"
        found.append(text + ("." if _learning_helps(figures) else ", and learning from the others did not mend it."))
    elif not measured(spread):
        found.append(f"{rehearsal}. That could be done only once, which is too little to rely on.")
    elif figures.rehearsed - STANDARD_ERRORS * spread < GROUPED:
        found.append(f"{rehearsal}: it went well with some of those known classes and badly with others.")
    if not figures.calibrated:
        found.append(f"Confidence could not be checked on your known classes, so {guess}.")
    return found


def _support(figures: Figures, noun: str) -> list[str]:
    """What speaks for trust."""
    found: list[str] = []
    if not figures.items:
        return found
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
