"""What only the report says, in plain words; what it shares with the terminal is in `medi.discover.summary`."""

from __future__ import annotations

from medi.discover import summary, verdict
from medi.discover.result import Diagnosis, Discovery, Group
from medi.discover.verdict import FAR, expectation, measured

NOT_MEASURED = "Could not be measured."
_USUAL = 0.15
"""Distances within this of 1 count as about as far as hidden known classes."""


def headline(discovery: Discovery) -> str:
    """What was found: groups, pictures that look known, pictures that resemble nothing else."""
    kinds = discovery.kinds
    return summary.headline(discovery.count.k, kinds.count("known"), kinds.count("alone"), len(kinds))


def number(discovery: Discovery) -> str:
    """How sure the number of groups is."""
    count = discovery.count
    return summary.number_words(
        count.k,
        count.low,
        count.high,
        given=not count.candidates,
        certain=count.certain,
        calibrated=discovery.diagnosis.calibrated,
    )


def doubtful(discovery: Discovery) -> str:
    """How many pictures are marked as doubtful, which does not say that the others are right."""
    pictures, marked = len(discovery.kinds), sum(discovery.doubtful)
    if not marked:
        return "No picture is marked as doubtful, which does not mean that all are right."
    if marked == pictures:
        return "Every picture is marked as doubtful."
    are = "is" if marked == 1 else "are"
    return f"{marked:,} of {pictures:,} {are} marked as doubtful; some of the others may be wrong too."


def group_verdict(group: Group, *, calibrated: bool) -> str:
    """A group's verdict, with what decides it; the name of its sibling is left to the page, which makes it a link."""
    if tone(group) == "single":
        return "Uncertain: a single picture"
    one_kind = f" ({probability(group.pure)} likely to be all one kind)" if calibrated else ""
    return {
        "tight": f"Tight: very probably one kind of thing{one_kind}",
        "uncertain": f"Uncertain: some of these may belong elsewhere{one_kind}",
        "mixed": f"Mixed: probably two things in one{one_kind}",
        "may be one": "May be one with",
    }[group.verdict]


def sibling_chance(group: Group, *, calibrated: bool) -> str:
    """How probable it is that a group and its sibling are one."""
    return f" ({probability(group.sibling_probability)} likely)" if calibrated else ""


def tone(group: Group) -> str:
    """A group's verdict as one word; a single picture confirms nothing, whatever its verdict."""
    single = group.items == 1 and group.verdict != "may be one"
    return "single" if single else group.verdict.replace(" ", "-")


def probability(confidence: float) -> str:
    """How probable it is that a line is right, in per cent that stay on one line."""
    return verdict.percent(confidence).replace(" %", "\N{NO-BREAK SPACE}%") if measured(confidence) else "–"


def figures(diagnosis: Diagnosis) -> dict[str, str]:
    """The figures behind the verdict: what each is about, and a sentence with the number and how to read it."""
    return {
        "Rehearsal": _rehearsal(diagnosis),
        "What your known classes teach": _gain(diagnosis),
        "How unlike your known classes the pictures are": _distance(diagnosis),
        "How alike your known classes are": _overlap(diagnosis),
    }


def _of_100(share: float) -> str:
    return f"{min(99, max(1, round(100 * share)))} of 100" if 0 < share < 1 else f"{round(100 * share)} of 100"


def _give_or_take(spread: float | None) -> str:
    return f" (give or take {max(1, round(200 * spread))})" if measured(spread) else ""


def _rehearsal(diagnosis: Diagnosis) -> str:
    if not measured(diagnosis.rehearsed):
        return "Nothing could be rehearsed: that takes at least 4 known classes."
    text = (
        "We hid some of your known classes and grouped them the same way, without saying how many they were: "
        f"{_of_100(diagnosis.rehearsed)} of those known pictures{_give_or_take(diagnosis.rehearsed_spread)} came out "
        "right. Your new pictures may be harder or easier"
    )
    expected = expectation(diagnosis)
    if expected is not None:
        return f"{text}; for them we expect about {_of_100(expected)} to be right."
    return f"{text}."


def _gain(diagnosis: Diagnosis) -> str:
    if not measured(diagnosis.gain):
        return NOT_MEASURED
    points = round(100 * diagnosis.gain)
    if not points:
        change = "about as many known pictures came out right as without"
    else:
        change = f"{abs(points)} {'more' if points > 0 else 'fewer'} of 100 known pictures came out right than without"
    margin = _give_or_take(diagnosis.gain_spread)
    return f"On hidden known classes by themselves, their number told, after learning from the others {change}{margin}."


def _distance(diagnosis: Diagnosis) -> str:
    distance = diagnosis.distance
    if not measured(distance):
        return NOT_MEASURED
    if distance > FAR:
        how = "far more"
    elif distance > 1 + _USUAL:
        how = "somewhat more"
    else:
        how = "about as much" if distance >= 1 - _USUAL else "less"
    return (
        f"Your new pictures differ from the nearest known class {how} {'as' if how.startswith('about') else 'than'} "
        f"hidden known classes did (index {distance:.2f}: 1 is equal, above {FAR} is far)."
    )


def _overlap(diagnosis: Diagnosis) -> str:
    if not measured(diagnosis.overlap):
        return NOT_MEASURED
    return (
        f"Take the two of your known classes that are hardest to tell apart: {_of_100(diagnosis.overlap)} of their "
        "pictures look as if they could be in either. Your other known classes are easier to tell apart."
    )
