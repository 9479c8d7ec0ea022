"""A contact sheet: each discovered group as a strip of thumbnails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import get_data_path
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

TILE, GAP, LABEL, HEAD = 48, 4, 128, 92
INK, PALE, PAPER, WRONG = "#1c2733", "#66727f", "#ffffff", "#d1342f"


@dataclass(frozen=True)
class Thumbnail:
    """One picture of a group.

    Attributes:
        image: (channels, height, width) uint8.
        wrong: Framed in red: the truth, where it is known, puts it elsewhere.
    """

    image: NDArray[np.uint8]
    wrong: bool = False


@dataclass(frozen=True)
class Strip:
    """One group: a name, a remark below it, what was observed, and what was recognised afterwards."""

    name: str
    remark: str
    observed: Sequence[Thumbnail]
    recognised: Sequence[Thumbnail]


def contact_sheet(strips: Sequence[Strip], title: str, legend: str, *, columns: int = 2) -> Image.Image:
    """Lay out groups in columns, read downwards."""
    rows = -(-len(strips) // columns)
    observed = max(len(strip.observed) for strip in strips)
    recognised = max(len(strip.recognised) for strip in strips)
    width = LABEL + (observed + recognised) * (TILE + GAP) + 6 * GAP
    height = TILE + 3 * GAP
    sheet = Image.new("RGB", (columns * width + 4 * GAP, HEAD + rows * height + 2 * GAP), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((4 * GAP, 14), title, INK, _font(22, bold=True))
    draw.text((4 * GAP, 46), legend, PALE, _font(14))
    for number, strip in enumerate(strips):
        x, y = 4 * GAP + number // rows * width, HEAD + number % rows * height
        draw.text((x, y + 4), strip.name, INK, _font(16, bold=True))
        draw.text((x, y + 26), strip.remark, PALE, _font(12))
        x += LABEL
        for thumbnail in strip.observed:
            _paste(sheet, draw, thumbnail, x, y)
            x += TILE + GAP
        middle = x + GAP
        if strip.recognised:
            draw.line([(middle, y), (middle, y + TILE)], fill=PALE)
        x += 3 * GAP
        for thumbnail in strip.recognised:
            _paste(sheet, draw, thumbnail, x, y)
            x += TILE + GAP
    return sheet


def _paste(sheet: Image.Image, draw: ImageDraw.ImageDraw, thumbnail: Thumbnail, x: int, y: int) -> None:
    pixels = thumbnail.image.transpose(1, 2, 0)
    picture = Image.fromarray(255 - pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)  # ink dark on paper
    sheet.paste(picture.convert("RGB").resize((TILE, TILE), Image.Resampling.LANCZOS), (x, y))
    frame = WRONG if thumbnail.wrong else "#d8dde2"
    draw.rectangle([x - 1, y - 1, x + TILE, y + TILE], outline=frame, width=3 if thumbnail.wrong else 1)


def _font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    face = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(Path(get_data_path()) / "fonts" / "ttf" / face, size)
