"""The pictures of a discovery in the strips that the report shows: one for a group, a known class, or what is alone."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import Markup

from medi.discover.result import Discovery
from medi.grouping.engine import Kind
from medi.report import words

MOST_SHOWN = 1_000
"""Pictures on a page: with more it is too heavy to open, and too long for anybody to look through."""

_GOLDEN_ANGLE = 137.508

Shown = TypeVar("Shown")
ThumbnailSource = Callable[[Sequence[int]], Sequence[bytes]]


@dataclass(frozen=True)
class Picture:
    """A picture as the page shows it; x and y are its place on a map of 1000 by 1000."""

    number: int  # among the pool's pictures
    path: str  # as the user knows it
    source: Markup  # the thumbnail
    mark: str  # what stands for its strip on the map: the group's number, K (looks known) or A (alone)
    belongs: str  # its strip in words
    hue: float | None  # of its group's colour in degrees; None for pictures in no group
    confidence: float  # how probable it is that its line is right
    doubtful: bool  # whether that is little
    typical: bool  # whether it is the most typical of its group
    nearest: str  # the most similar known class
    x: float
    y: float


@dataclass(frozen=True)
class Strip:
    """Pictures that the page shows together."""

    kind: Kind  # of all of them
    anchor: str  # its address on the page
    name: str  # a group's number, a known class, or empty for those that are alone
    hue: float | None  # of its colour in degrees; None where it is no group
    size: int  # how many pictures it has
    confidence: float  # their mean
    doubtful: int  # how many of them are
    shown: tuple[Picture, ...]  # those of its pictures that the page has room for
    verdict: str = ""  # in plain words, up to the name of the sibling; empty where it is no group
    tone: str = ""  # the verdict as one word, for the style
    sibling_chance: str = ""  # how probable that is, in words
    sibling: int | None = None  # the group that it may be one with, where the verdict says so
    neighbours: tuple[str, ...] = ()  # its most similar known classes, by name


@dataclass(frozen=True)
class Strips:
    """All of them: groups by number, known classes by name, and those that are alone, if any."""

    groups: tuple[Strip, ...]
    known: tuple[Strip, ...]
    alone: Strip | None

    def all(self) -> tuple[Strip, ...]:
        """In the page's order."""
        return (*self.groups, *self.known, *([self.alone] if self.alone else []))


def strips(discovery: Discovery, paths: Sequence[str], thumbnails: ThumbnailSource) -> Strips:
    """Arrange a discovery's pictures; thumbnails are asked for once, for those that are shown."""
    # A doubtful picture is typical of nothing, and neither is one that has no other beside it.
    typical = {group.medoid for group in discovery.groups if group.items > 1 and not discovery.doubtful[group.medoid]}

    def order(i: int) -> tuple[bool, bool, float, str]:
        return i not in typical, discovery.doubtful[i], -discovery.confidence[i], paths[i]

    members: list[list[int]] = [[] for _ in discovery.groups]
    of_class: dict[str, list[int]] = {}
    alone = []
    for i, kind in enumerate(discovery.kinds):
        if kind == "novel":
            members[discovery.labels[i]].append(i)
        elif kind == "known":
            of_class.setdefault(discovery.known[i], []).append(i)
        else:
            alone.append(i)
    classes = sorted(of_class)
    everything = [sorted(numbers, key=order) for numbers in (*members, *(of_class[name] for name in classes), alone)]
    shown_of = [ends(numbers, most) for numbers, most in zip(everything, room(list(map(len, everything))), strict=True)]
    calibrated = discovery.diagnosis.calibrated
    wanted = sorted(i for shown in shown_of for i in shown)
    jpegs = dict(zip(wanted, thumbnails(wanted), strict=True))

    def strip(place: int, kind: Kind, anchor: str, name: str, hue: float | None = None) -> Strip:
        numbers = everything[place]
        mark = {"novel": name, "known": "K", "alone": "A"}[kind]
        belongs = {"novel": f"Group {name}", "known": f"Looks like {name}", "alone": "Resembles nothing else"}[kind]
        pictures = []
        for i in shown_of[place]:
            x, y = (round(50 + 900 * c, 1) for c in discovery.positions[i])
            source = Markup("data:image/jpeg;base64," + b64encode(jpegs[i]).decode())
            about = discovery.confidence[i], discovery.doubtful[i], i in typical, discovery.nearest_known[i]
            pictures.append(Picture(i, paths[i], source, mark, belongs, hue, *about, x, y))
        mean = sum(discovery.confidence[i] for i in numbers) / max(len(numbers), 1)
        doubtful = sum(discovery.doubtful[i] for i in numbers)
        group = discovery.groups[place] if kind == "novel" else None
        return Strip(
            kind=kind,
            anchor=anchor,
            name=name,
            hue=hue,
            size=len(numbers),
            confidence=mean,
            doubtful=doubtful,
            shown=tuple(pictures),
            verdict=words.group_verdict(group, calibrated=calibrated) if group else "",
            sibling_chance=words.sibling_chance(group, calibrated=calibrated) if group else "",
            tone=words.tone(group) if group else "",
            sibling=group.sibling if group and group.verdict == "may be one" else None,
            neighbours=group.neighbours if group else (),
        )

    k = len(members)
    return Strips(
        groups=tuple(strip(g, "novel", f"group-{g}", str(g), hue(g)) for g in range(k)),
        known=tuple(strip(k + c, "known", f"known-{c}", name) for c, name in enumerate(classes)),
        alone=strip(len(everything) - 1, "alone", "alone-pictures", "") if alone else None,
    )


def hue(group: int) -> float:
    """Of a group's colour in degrees; those of neighbouring numbers are far apart."""
    return round((215 + group * _GOLDEN_ANGLE) % 360, 1)


def room(sizes: Sequence[int]) -> list[int]:
    """How many pictures of each strip are shown: all, or as many of each as there is room for, short strips whole."""
    left, rooms = MOST_SHOWN, [0] * len(sizes)
    for done, place in enumerate(sorted(range(len(sizes)), key=lambda place: (sizes[place], -place))):
        share = left // (len(sizes) - done)
        rooms[place] = min(sizes[place], share)
        left -= rooms[place]
    return rooms


def ends(items: list[Shown], most: int) -> list[Shown]:
    """The first and the last ones: the most typical and the most doubtful."""
    last = most // 2 if len(items) > most else 0
    return items[: most - last] + items[len(items) - last :]
