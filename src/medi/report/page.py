"""`report.html`: what a discovery found, as one page for people.

The page is a single file. It loads nothing (its content security policy forbids it), runs no script but its own, and
everything but the preview on the map works without a script.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from math import sqrt
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from PIL import Image

from medi.discovery.result import Discovery, Neighbour
from medi.photos.folders import Skipped
from medi.report import curve, words

SIZE = 128
"""Longer side of a thumbnail in pixels: sharp at the 88 or so that the page shows it at, also on denser screens."""

LIMIT = 5_600
"""Bytes of a thumbnail. In base64, 500 of them and one more for each of 40 groups take 4.04 of the page's 5 MB."""

MOST = 1_000
"""Pictures shown: beyond that a page is too heavy to open, and too long for anybody to look through."""

_QUALITIES = (80, 65, 50, 35, 20)
_MOST_COVERS = 40
_GOLDEN_ANGLE = 137.508
_UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, lone surrogates (bytes of a name that are not UTF-8), and what breaks or turns a line around."""


@dataclass(frozen=True)
class Item:
    """A novel picture: its path as the user knows it, and its thumbnail as JPEG (not looked at if it is not shown)."""

    path: str
    thumbnail: bytes


@dataclass(frozen=True)
class _Picture:
    """An item as the page shows it; x and y are its place on a map of 1000 by 1000."""

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
        shown: Those of them that there is room for.
        neighbours: Its nearest known classes.
    """

    number: int
    hue: float
    size: int
    confidence: float
    doubtful: int
    shown: tuple[_Picture, ...]
    neighbours: tuple[Neighbour, ...]


def thumbnail(image: Image.Image, size: int = SIZE, limit: int = LIMIT) -> bytes:
    """A small JPEG of an image, without its metadata, transparent parts white.

    Args:
        image: Any size, 8 bits a channel.
        size: The longer side at most, in pixels; smaller images are not enlarged.
        limit: Most bytes. Where the image is too busy for that, first quality and then size give way.
    """
    if image.mode not in ("L", "RGB", "RGBA"):
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    scale = min(1.0, size / max(image.size))
    shape = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    small = image.resize(shape, Image.Resampling.LANCZOS, reducing_gap=3.0)
    canvas = Image.new("RGB", shape, "white")  # a new image, because a saved one takes its comments along
    canvas.paste(small, mask=small if small.mode == "RGBA" else None)
    for quality in _QUALITIES:
        buffer = BytesIO()
        canvas.save(buffer, "JPEG", quality=quality, optimize=True)
        if buffer.tell() <= limit:
            return buffer.getvalue()
    if size == 1:
        raise ValueError(f"no JPEG fits into {limit} bytes")
    return thumbnail(image, max(1, size * 3 // 4), limit)


def render(
    discovery: Discovery,
    items: Sequence[Item],
    skipped: Sequence[Skipped],
    command: str,
    facts: Mapping[str, str],
) -> str:
    """Write the page.

    Args:
        discovery: What was found among m items.
        items: The m items, in the same order.
        skipped: Files that were left out.
        command: The exact command that does it again.
        facts: What else is worth knowing (versions, seed, encoder, …), by name.

    Returns:
        One HTML file that can be encoded as UTF-8, whatever the strings contain.
    """
    if len(items) != len(discovery.labels):
        raise ValueError(f"{len(items)} items for a discovery among {len(discovery.labels)}")
    groups = _groups(discovery, items)
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
        radius=round(min(30.0, max(11.0, 300 / sqrt(max(len(items), 1)))), 1),
        representation=discovery.representation,
        representation_scores=discovery.representation_scores,
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        skipped=skipped,
        style=_text("page.css"),
    )


def shown_items(discovery: Discovery) -> list[list[int]]:
    """Which items of each group a page shows, by number: the most typical one first, doubtful ones last.

    All, or the first and the last of each group: the most typical and the most doubtful ones say most.
    """
    members: list[list[int]] = [[] for _ in range(discovery.count.k)]
    for number, label in enumerate(discovery.labels):
        members[label].append(number)
    room = MOST if len(discovery.labels) <= MOST else max(1, MOST // len(members))
    medoids = set(discovery.medoids)
    shown = []
    for numbers in members:
        numbers.sort(key=lambda i: (i not in medoids, discovery.doubtful[i], -discovery.confidence[i]))
        last = room // 2 if len(numbers) > room else 0
        shown.append(numbers[: room - last] + numbers[len(numbers) - last :])
    return shown


def _groups(discovery: Discovery, items: Sequence[Item]) -> tuple[_Group, ...]:
    sizes, doubtful, total = Counter(discovery.labels), Counter[int](), defaultdict[int, float](float)
    for label, sure, unsure in zip(discovery.labels, discovery.confidence, discovery.doubtful, strict=True):
        doubtful[label] += unsure
        total[label] += sure
    groups = []
    for number, shown in enumerate(shown_items(discovery)):
        hue = round((215 + number * _GOLDEN_ANGLE) % 360, 1)  # neighbouring numbers get hues far apart
        pictures = tuple(_picture(discovery, items[i], i, hue) for i in shown)
        size = sizes[number]
        confidence = total[number] / max(size, 1)
        groups.append(_Group(number, hue, size, confidence, doubtful[number], pictures, discovery.neighbours[number]))
    return tuple(groups)


def _picture(discovery: Discovery, item: Item, number: int, hue: float) -> _Picture:
    x, y = discovery.positions[number]
    return _Picture(
        number=number,
        path=item.path,
        source=Markup("data:image/jpeg;base64," + b64encode(item.thumbnail).decode()),
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
    r"""Show characters that a page cannot show or that would turn its text around: a newline as \n, say.

    Applied to all that the template prints, so that no file name, whatever its bytes, spoils the page.
    """
    if type(value) is not str:  # markup is ours
        return value
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), value)


def _text(name: str) -> str:
    return files("medi.report").joinpath(name).read_text(encoding="utf-8")
