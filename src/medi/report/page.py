"""`report.html`: what a discovery found, as one page for people.

The page is a single file. Its content security policy forbids it to load anything or to run any script but its own.
Without scripts only the preview on the map is missing.
"""

from __future__ import annotations

import re
import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from math import sqrt
from typing import Any

from jinja2 import Environment, StrictUndefined

from medi.discover.result import Discovery
from medi.discover.summary import ADVICE, counted, likely_words
from medi.photos.folders import Skipped
from medi.report import curve, words
from medi.report.strips import ThumbnailSource, strips

MOST_COVERS = 40
"""Groups up to which each is shown by a picture at the top of the page."""
_UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, lone surrogates (bytes of a name that are not UTF-8), and what breaks or turns a line around."""


def render(
    discovery: Discovery,
    paths: Sequence[str],
    thumbnails: ThumbnailSource,
    skipped: Sequence[Skipped],
    command: str,
    facts: Mapping[str, str],
) -> str:
    """The page as one HTML file that can be encoded as UTF-8, whatever the strings contain.

    Args:
        discovery: What was found among m pictures.
        paths: Of the m pictures as the user knows them.
        thumbnails: From numbers of pictures, 0 to m - 1, to a JPEG of each; asked once, for those that are shown.
        skipped: Files that were left out.
        command: The one that does it again.
        facts: What else is worth knowing (versions, seed, encoder, …), by name.
    """
    if len(paths) != len(discovery.kinds):
        raise ValueError(f"{len(paths)} paths for a discovery among {len(discovery.kinds)}")
    found = strips(discovery, paths, thumbnails)
    shown = [picture for strip in found.all() for picture in strip.shown]
    script = _text("page.js")
    return fill(
        "page.html.j2",
        advice=ADVICE[discovery.diagnosis.verdict],
        command=command,
        count=discovery.count,
        counted=counted,
        covers=len(found.groups) <= MOST_COVERS,
        curve=curve.curve(discovery.count),
        curve_shape=curve,
        diagnosis=discovery.diagnosis,
        doubtful=words.doubtful(discovery),
        likely_words=likely_words,
        facts=facts,
        figures=words.figures(discovery.diagnosis),
        found=found,
        headline=words.headline(discovery),
        known_size=sum(strip.size for strip in found.known),
        number=words.number(discovery),
        partial=len(shown) < len(paths),
        # Typical pictures last, on top of the others, and those in no group first: they are drawn in this order.
        points=sorted(shown, key=lambda p: (p.typical, p.hue is not None)),
        pool=len(paths),
        radius=round(min(30.0, max(11.0, 300 / sqrt(max(len(paths), 1)))), 1),
        representation=discovery.representation,
        representation_scores=discovery.representation_scores,
        review=_review(command),
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        skipped=skipped,
    )


def _review(command: str) -> str:
    """The command that comes next: the page on which a person checks and names what was found."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    return shlex.join(["medi", "review", words[words.index("--out") + 1]]) if "--out" in words[:-1] else ""


def fill(template: str, **values: Any) -> str:
    """A template of this package, filled in; names cannot spoil the page."""
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, finalize=_printable
    )
    environment.filters |= {"probability": words.probability}
    return environment.from_string(_text(template)).render(style=_text("page.css"), **values)


def _printable(value: Any) -> Any:
    r"""Spell out characters that a page cannot show or that would turn its text around, such as a newline as \n.

    Applied to all that the template prints, so that no file name spoils the page.
    """
    if type(value) is not str:  # markup is ours
        return value
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), value)


def _text(name: str) -> str:
    return files("medi.report").joinpath(name).read_text(encoding="utf-8")
