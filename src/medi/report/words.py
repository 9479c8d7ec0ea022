"""What a discovery says, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TypeGuard

from medi.discovery.result import ClassCount, Diagnosis, Discovery, Verdict

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Advice:
    """A verdict for people: what to call it, and what to do about it."""

    title: str
    meaning: str


ADVICE: dict[Verdict, Advice] = {
    "trustworthy": Advice("Trustworthy", "You can work with these groups. Look over the doubtful pictures, if any."),
    "doubtful": Advice("Doubtful", "Take these groups as a first sketch, and check each of them by eye."),
    "no help": Advice(
        "Known classes do not help here",
        "They teach nothing that these pictures share, so the groups rest on general likeness alone. Check each of "
        "them by eye, or give known classes that are more like the new pictures.",
    ),
}


@dataclass(frozen=True)
class Figure:
    """One number behind the verdict: its name, its value and how to read it."""

    name: str
    value: str
    meaning: str


def headline(discovery: Discovery) -> str:
    """How many groups among how many pictures."""
    return f"{counted(discovery.count.k, 'group')} in {counted(len(discovery.labels), 'picture')}"


def certainty(count: ClassCount) -> str:
    """How sure the number of groups is."""
    between = f"anything from {count.low} to {count.high}"
    if not count.candidates:
        return f"You asked for {counted(count.k, 'group')}; the number was not estimated."
    if count.low == count.high:
        return (
            f"The pictures point to {count.k}." if count.certain else f"The pictures cannot tell: {count.k} is a guess."
        )
    if count.certain:
        return f"{count.k} is the most likely number; {between} would fit as well."
    return f"The pictures cannot tell the number well: {between} would fit, and {count.k} is a guess."


def clarity(discovery: Discovery) -> str:
    """How many pictures sit clearly in their group."""
    pictures, doubtful = len(discovery.labels), sum(discovery.doubtful)
    if not doubtful:
        return "No picture is doubtful."
    if doubtful == pictures:
        return "Every picture is doubtful: it could as well belong to another group."
    one = doubtful == 1
    return (
        f"{pictures - doubtful} of {pictures} pictures sit clearly in their group; "
        f"{doubtful} {'is' if one else 'are'} doubtful and could as well belong to another."
    )


def figures(diagnosis: Diagnosis) -> tuple[Figure, ...]:
    """The numbers behind the verdict."""
    return (
        Figure(
            "Overlap of known classes",
            percent(diagnosis.overlap),
            "How much the two known classes that are most alike share. Lower is better.",
        ),
        Figure(
            "Gain from known classes",
            NOT_MEASURED if not _known(diagnosis.gain) else f"{100 * diagnosis.gain:+.1f} points".replace("-", "−"),
            "Accuracy that learning from known classes adds, measured on known classes held back. Above 0 is better.",
        ),
        Figure(
            "Distance from known classes",
            decimal(diagnosis.distance),
            "How far the pictures lie from the nearest known class. 1 is as far as known classes lie apart.",
        ),
        Figure(
            "Stability of the groups",
            decimal(diagnosis.stability),
            "How alike the groups come out when they are found again from other samples. 1 is the same, 0 is chance.",
        ),
    )


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 group, 2 groups."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float | None) -> str:
    """A share from 0 to 1 in per cent, without digits that nobody can use."""
    return NOT_MEASURED if not _known(share) else f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def decimal(value: float | None) -> str:
    """A number with two digits after the point."""
    return NOT_MEASURED if not _known(value) else f"{value:.2f}".replace("-", "−")


def _known(value: float | None) -> TypeGuard[float]:
    return value is not None and isfinite(value)
