"""What a discovery says, in plain words: those that the terminal and the report share, and the terminal's summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medi.core.terminal import printable
from medi.discover.result import GroupVerdict, Verdict
from medi.discover.verdict import percent

MOST_CLASSES_NAMED = 8
"""Known classes that the terminal names as found in the pool; the others are counted."""


@dataclass(frozen=True)
class Advice:
    """A verdict for people: what to call it, and what to do about it."""

    title: str
    meaning: str


ADVICE: dict[Verdict, Advice] = {
    "trustworthy": Advice(
        "Trustworthy", "You can work with these groups. They are not faultless: look over the doubtful pictures first."
    ),
    "doubtful": Advice("Doubtful", "Take these groups as a first sketch, and check each of them by eye."),
    "no help": Advice(
        "Known classes do not help here",
        "They teach nothing that these pictures share, so the groups rest on general likeness alone. Check each of "
        "them by eye, or give known classes that are more like the new pictures.",
    ),
}


@dataclass(frozen=True)
class Summary:
    """What the terminal shows.

    Attributes:
        before: Lines above the table.
        header: Names of its columns.
        rows: One for each group; empty where there is none, and then no table is needed.
        after: Lines below it.
    """

    before: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    after: tuple[str, ...]


def summary(facts: Mapping[str, Any]) -> Summary:
    """The terminal's words about what `discovery.json` holds; every string is printable and of one line."""
    classes, diagnosis, groups = facts["classes"], facts["diagnostics"], facts["groups"]
    found: Mapping[str, int] = facts["known_photos_found"]
    known, alone, pool = sum(found.values()), facts["alone"], facts["novel_photos"]
    number = number_words(
        classes["k"],
        classes["low"],
        classes["high"],
        given=not classes["candidates"],
        certain=classes["certain"],
        calibrated=diagnosis["calibrated"],
    )
    rows = [
        (
            str(group["cluster"]),
            str(group["photos"]),
            percent(group["confidence"]) if diagnosis["calibrated"] else "a guess",
            group_words(group["verdict"], group["sibling"]),
            printable(group["typical"]),
            printable(", ".join(group["nearest_known"])),
        )
        for group in groups
    ]
    after = []
    if known:
        named = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        names = [f"{count} like {printable(name)}" for name, count in named[:MOST_CLASSES_NAMED]]
        if len(named) > MOST_CLASSES_NAMED:
            names.append(f"and {counted(sum(n for _, n in named[MOST_CLASSES_NAMED:]), 'other')}")
        after.append(f"In no group, because they look known: {', '.join(names)}.")
    if alone:
        after.append(f"In no group, because nothing else is like {'them' if alone > 1 else 'it'}: {alone}.")
    advice = ADVICE[diagnosis["verdict"]]
    after.append(f"Can you trust this? {advice.title}. {advice.meaning}")
    after += [f"- {printable(reason)}" for reason in diagnosis["reasons"]]
    open_number = classes["candidates"] and not classes["certain"]
    cure = "With --classes N you can give the number." if open_number else ""
    return Summary(
        before=(f"{headline(facts['n_classes'], known, alone, pool)}.", *filter(None, [number, cure])),
        header=("group", "pictures", "likely right", "verdict", "for example", "most similar known classes"),
        rows=tuple(rows),
        after=tuple(after),
    )


def headline(groups: int, known: int, alone: int, pool: int) -> str:
    """What was found among the `pool` pictures, all three kinds; a kind without pictures is not spoken of."""
    if not pool:
        return "No pictures"
    first = counted(groups, "group") if groups else "No groups"
    if not known and not alone:
        return f"{first} in {counted(pool, 'picture')}"
    parts = [first]
    if known:
        parts.append(f"{counted(known, 'picture')} that {'looks' if known == 1 else 'look'} known")
    if alone:
        what = f"{alone:,}" if known else counted(alone, "picture")
        parts.append(f"{what} that {'resembles' if alone == 1 else 'resemble'} nothing else")
    return ", ".join(parts)


def number_words(k: int, low: int, high: int, *, given: bool, certain: bool, calibrated: bool) -> str:
    """How sure the number of groups is; empty where there is nothing to say."""
    if given:
        return f"You asked for {counted(k, 'group')}. Whether that is the right number was not checked." if k else ""
    if not calibrated:
        between = f": anything from {low} to {high} is possible" if low < high else ""
        return f"The number of groups is a rough guess{between}."
    if low == high:
        there = f"there {'is' if k == 1 else 'are'} {counted(k, 'group')}"
        return f"The chances are at least 9 in 10 that {there}." if certain else f"That {there} is a guess."
    best = "Our best estimate" if certain else "The number is uncertain. Our best estimate"
    return f"{best} is {counted(k, 'group')}; the chances are about 9 in 10 that there are {low} to {high}."


def group_words(verdict: GroupVerdict, sibling: int | None) -> str:
    """A group's verdict in a few words."""
    if verdict == "mixed":
        return "mixed: probably two things in one"
    if verdict == "may be one":
        return f"may be one with {'another group' if sibling is None else f'group {sibling}'}"
    return verdict


def likely_words(confidence: float, size: int, *, calibrated: bool) -> str:
    """What the mean confidence of some pictures says."""
    if not calibrated:
        return "confidence: a rough guess"
    return f"{'on average ' * (size > 1)}{percent(confidence)} likely to be right"


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 group, 2 groups."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
