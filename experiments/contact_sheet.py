"""A contact sheet: rows of thumbnails, each with a name and a remark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import get_data_path
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

TILE, GAP, LABEL, HEAD = 48, 4, 128, 92
INK, PALE, PAPER, FRAME = "#1c2733", "#66727f", "#ffffff", "#d8dde2"


@dataclass(frozen=True)
class Row:
    """A name, a remark below it, and images (channels, height, width) of uint8."""

    name: str
    remark: str
    images: Sequence[NDArray[np.uint8]]


def contact_sheet(rows: Sequence[Row], title: str, legend: str) -> Image.Image:
    """Lay the rows out one below the other."""
    width = LABEL + max(len(row.images) for row in rows) * (TILE + GAP) + 10 * GAP
    height = TILE + 3 * GAP
    sheet = Image.new("RGB", (width, HEAD + len(rows) * height + 2 * GAP), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((4 * GAP, 14), title, INK, _font(22, bold=True))
    draw.text((4 * GAP, 46), legend, PALE, _font(14))
    for number, row in enumerate(rows):
        x, y = 4 * GAP, HEAD + number * height
        draw.text((x, y + 4), row.name, INK, _font(16, bold=True))
        draw.text((x, y + 26), row.remark, PALE, _font(12))
        for place, image in enumerate(row.images):
            left = x + LABEL + place * (TILE + GAP)
            sheet.paste(_tile(image), (left, y))
            draw.rectangle([left - 1, y - 1, left + TILE, y + TILE], outline=FRAME)
    return sheet


def _tile(image: NDArray[np.uint8]) -> Image.Image:
    """A thumbnail; ink is dark on paper."""
    pixels: Any = image.transpose(1, 2, 0)
    picture = Image.fromarray(255 - pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    return picture.convert("RGB").resize((TILE, TILE), Image.Resampling.LANCZOS)


def _font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    face = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(Path(get_data_path()) / "fonts" / "ttf" / face, size)
