"""The page of `medi assign`: new pictures by what they were recognised as, the doubtful ones apart.

It is one file without scripts, made of the table that was written: what it says is what the table says.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from medi.discover.result import SURE_FROM, is_doubtful
from medi.discover.summary import counted, likely_words
from medi.photos.folders import Skipped
from medi.report.page import MOST_COVERS, fill
from medi.report.strips import ends, hue, room
from medi.report.words import probability

Row = Mapping[str, str]
"""A line of the table: a text for each of its columns."""


@dataclass(frozen=True)
class AssignedPicture:
    """A picture as the page shows it."""

    path: str  # as the user knows it
    source: Markup  # the thumbnail
    confidence: float  # how probable it is that its line is right
    second: str  # the second guess, in words


@dataclass
class Section:
    """Pictures with one answer."""

    kind: str  # of the answer; "unsure" where the likeliest one was less sure than asked
    label: str  # number of the group, name of the class, or empty
    size: int = 0  # how many pictures it has
    doubtful: int = 0  # how many of them are
    total: float = 0.0  # of their confidence
    lines: list[Row] = field(default_factory=list)  # of those that are shown, the surest first
    sure: list[AssignedPicture] = field(default_factory=list)  # the pictures of these
    look: list[AssignedPicture] = field(default_factory=list)  # the doubtful ones

    @property
    def confidence(self) -> float:
        """Their mean."""
        return self.total / self.size

    @property
    def hue(self) -> float | None:
        """Of its colour in degrees; None where it is no group."""
        return hue(int(self.label)) if self.kind == "novel" else None

    def count(self, row: Row) -> None:
        """Take note of one of its lines."""
        self.size += 1
        self.total += _sure(row)
        self.doubtful += _doubtful(row)

    def keep(self, places: int) -> None:
        """Keep as many lines: the surest and the most doubtful."""
        self.lines = ends(sorted(self.lines, key=lambda row: (-_sure(row), row["path"])), places)


def render_assigned(
    rows: Callable[[], Iterable[Row]],
    thumbnails: Callable[[Sequence[str]], Sequence[bytes]],
    skipped: Sequence[Skipped],
    *,
    calibrated: bool,
    sure: float = 0.0,
) -> str:
    """Write the page; memory holds no more lines than it shows, and a few.

    `sure` is how probable an answer had to be.
    The table is read twice; thumbnails are asked for once, of the paths that are shown.
    """
    found: dict[tuple[str, str], Section] = {}
    for row in rows():
        key = _answer(row)
        found.setdefault(key, Section(*key)).count(row)
    sections = sorted(found.values(), key=_order)
    places = {(s.kind, s.label): most for s, most in zip(sections, room([s.size for s in sections]), strict=True)}
    for row in rows():
        section, most = found[key := _answer(row)], places[key]
        section.lines.append(row)
        if len(section.lines) > 2 * most:
            section.keep(most)
    for section in sections:
        section.keep(places[section.kind, section.label])
    lines = [row for section in sections for row in section.lines]
    jpegs = iter(thumbnails([row["path"] for row in lines]))
    for section in sections:
        for row in section.lines:
            (section.look if _doubtful(row) else section.sure).append(_picture(row, next(jpegs)))
    by_kind = {kind: [s for s in sections if s.kind == kind] for kind in ("novel", "known", "none", "unsure")}
    sizes = {kind: sum(s.size for s in some) for kind, some in by_kind.items()}
    pictures = sum(sizes.values())
    return fill(
        "assigned.html.j2",
        asked=sure,
        calibrated=calibrated,
        counted=counted,
        covers=len(sections) <= MOST_COVERS,
        hidden=pictures - len(lines),
        likely_words=likely_words,
        pictures=pictures,
        sections=by_kind,
        sizes=sizes,
        skipped=skipped,
        sure_from=SURE_FROM,
    )


def _order(section: Section) -> tuple[bool, bool, bool, int, str]:
    """Groups by number, known classes by name, none of these."""
    number = int(section.label) if section.kind == "novel" else 0
    return section.kind == "unsure", section.kind == "none", section.kind == "known", number, section.label


def _answer(row: Row) -> tuple[str, str]:
    """Kind and label of the section that a line is in."""
    is_unsure = row["kind"] == "none" and row.get("likeliest", "")
    return ("unsure", "") if is_unsure else (row["kind"], row["label"])


def _sure(row: Row) -> float:
    """What is shown below a picture: how probable its line is, or else the likeliest answer."""
    return float(row["likeliest_confidence" if _answer(row)[0] == "unsure" else "confidence"])


def _doubtful(row: Row) -> bool:
    return is_doubtful(_sure(row))


def _picture(row: Row, jpeg: bytes) -> AssignedPicture:
    source = Markup("data:image/jpeg;base64," + b64encode(jpeg).decode())
    if _answer(row)[0] == "unsure":
        group = row["likeliest"].isdecimal()
        return AssignedPicture(row["path"], source, _sure(row), f"{'group ' * group}{row['likeliest']}")
    kind, label = row["second_kind"], row["second_label"]
    name = {"novel": f"group {label}", "known": label, "none": "none of these"}[kind]
    lead = "nearest to" if row["kind"] == "none" else "or"
    second = f"{lead} {name}, {probability(float(row['second_confidence']))}" if kind != row["kind"] or label else ""
    return AssignedPicture(row["path"], source, float(row["confidence"]), second)
