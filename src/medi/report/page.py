"""`report.html`: what a discovery found, as one page for people.

The page is a single file. Its content security policy forbids it to load anything or to run any script but its own.
Without scripts only the preview on the map is missing.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from math import sqrt
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from medi.discovery.result import Discovery, Neighbour
from medi.photos.folders import Skipped
from medi.report import curve, words

MOST_SHOWN = 1_000
"""Pictures on a page: with more it is too heavy to open, and too long for anybody to look through."""

_MOST_COVERS = 40
_GOLDEN_ANGLE = 137.508
_UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, lone surrogates (bytes of a name that are not UTF-8), and what breaks or turns a line around."""


@dataclass(frozen=True)
class _Picture:
    """A picture as the page shows it; x and y are its place on a map of 1000 by 1000."""

    number: int
    path: str
    source: Markup
    group: int
    hue: float
    confidence: float
    doubtful: bool
    typical: bool
    nearest: str
    x: float
    y: float


@dataclass(frozen=True)
class _Group:
    """A group as the page shows it.

    Attributes:
        number: As in `clusters.csv`.
        hue: Of its colour, in degrees.
        size: How many pictures it has.
        confidence: Their mean.
        doubtful: How many of them are.
        shown: Those of its pictures that the page has room for.
        neighbours: Its nearest known classes.
    """

    number: int
    hue: float
    size: int
    confidence: float
    doubtful: int
    shown: tuple[_Picture, ...]
    neighbours: tuple[Neighbour, ...]


def render(
    discovery: Discovery,
    paths: Sequence[str],
    thumbnails: Callable[[Sequence[int]], Sequence[bytes]],
    skipped: Sequence[Skipped],
    command: str,
    facts: Mapping[str, str],
) -> str:
    """Write the page.

    Args:
        discovery: What was found among m pictures.
        paths: Of the m pictures as the user knows them, in the same order.
        thumbnails: From numbers of pictures, 0 to m - 1, to a JPEG of each; asked once, for those that are shown.
        skipped: Files that were left out.
        command: The exact command that does it again.
        facts: What else is worth knowing (versions, seed, encoder, …), by name.

    Returns:
        One HTML file that can be encoded as UTF-8, whatever the strings contain.
    """
    if len(paths) != len(discovery.labels):
        raise ValueError(f"{len(paths)} paths for a discovery among {len(discovery.labels)}")
    groups = _groups(discovery, paths, thumbnails)
    script = _text("page.js")
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, finalize=_printable
    )
    environment.filters |= {"percent": words.percent, "decimal": words.decimal}
    return environment.from_string(_text("page.html.j2")).render(
        command=command,
        count=discovery.count,
        counted=words.counted,
        advice=words.ADVICE[discovery.diagnosis.verdict],
        curve=curve.curve(discovery.count),
        curve_shape=curve,
        diagnosis=discovery.diagnosis,
        certainty=words.certainty(discovery.count),
        clarity=words.clarity(discovery),
        covers=len(groups) <= _MOST_COVERS,
        facts=facts,
        figures=words.figures(discovery.diagnosis),
        groups=groups,
        headline=words.headline(discovery),
        partial=any(len(group.shown) < group.size for group in groups),
        # Typical pictures last, on top of the others: they are drawn in this order.
        points=sorted((p for group in groups for p in group.shown), key=lambda p: (p.typical, p.group)),
        radius=round(min(30.0, max(11.0, 300 / sqrt(max(len(paths), 1)))), 1),
        representation=discovery.representation,
        representation_scores=discovery.representation_scores,
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        skipped=skipped,
        style=_text("page.css"),
    )


def _shown(discovery: Discovery) -> list[list[int]]:
    """Which pictures of each group the page shows, by number: the most typical one first, doubtful ones last.

    Where there is not room for all, the first and the last ones of each group: the most typical and most doubtful.
    """
    members: list[list[int]] = [[] for _ in range(discovery.count.k)]
    for number, label in enumerate(discovery.labels):
        members[label].append(number)
    room = MOST_SHOWN if len(discovery.labels) <= MOST_SHOWN else max(1, MOST_SHOWN // len(members))
    medoids = set(discovery.medoids)
    shown = []
    for numbers in members:
        numbers.sort(key=lambda i: (i not in medoids, discovery.doubtful[i], -discovery.confidence[i]))
        last = room // 2 if len(numbers) > room else 0
        shown.append(numbers[: room - last] + numbers[len(numbers) - last :])
    return shown


def _groups(
    discovery: Discovery, paths: Sequence[str], thumbnails: Callable[[Sequence[int]], Sequence[bytes]]
) -> tuple[_Group, ...]:
    shown_of = _shown(discovery)
    numbers = sorted(number for shown in shown_of for number in shown)
    jpegs = dict(zip(numbers, thumbnails(numbers), strict=True))
    sizes, doubtful, total = Counter(discovery.labels), Counter[int](), defaultdict[int, float](float)
    for label, sure, unsure in zip(discovery.labels, discovery.confidence, discovery.doubtful, strict=True):
        doubtful[label] += unsure
        total[label] += sure
    groups = []
    for number, shown in enumerate(shown_of):
        hue = round((215 + number * _GOLDEN_ANGLE) % 360, 1)  # neighbouring numbers get hues far apart
        pictures = tuple(_picture(discovery, i, paths[i], jpegs[i], hue) for i in shown)
        size = sizes[number]
        confidence = total[number] / max(size, 1)
        groups.append(_Group(number, hue, size, confidence, doubtful[number], pictures, discovery.neighbours[number]))
    return tuple(groups)


def _picture(discovery: Discovery, number: int, path: str, jpeg: bytes, hue: float) -> _Picture:
    x, y = discovery.positions[number]
    return _Picture(
        number=number,
        path=path,
        source=Markup("data:image/jpeg;base64," + b64encode(jpeg).decode()),
        group=discovery.labels[number],
        hue=hue,
        confidence=discovery.confidence[number],
        doubtful=discovery.doubtful[number],
        typical=number in discovery.medoids,
        nearest=discovery.nearest_known[number],
        x=round(50 + 900 * x, 1),
        y=round(50 + 900 * y, 1),
    )


def _printable(value: Any) -> Any:
    r"""Spell out characters that a page cannot show or that would turn its text around, such as a newline as \n.

    Applied to all that the template prints, so that no file name spoils the page.
    """
    if type(value) is not str:  # markup is ours
        return value
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), value)


def _text(name: str) -> str:
    return files("medi.report").joinpath(name).read_text(encoding="utf-8")
