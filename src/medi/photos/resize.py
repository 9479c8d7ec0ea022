"""A part of a picture of any mode in another size, as RGB, without a second copy of a large picture."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

DIRECT = ("RGB", "L", "CMYK", "YCbCr")
"""Modes whose pixels can be averaged as they are."""
LARGE = 20_000_000
"""Pixels from which on other pictures are made smaller by whole factors first, a band of rows at a time."""
BAND = 2_000_000
"""Pixels of a band."""
GAP = 3.0
"""How much larger than what is wanted a picture stays where it is made smaller by whole factors."""


def resized(
    image: Image.Image, size: tuple[int, int], box: tuple[float, float, float, float], how: Image.Resampling
) -> Image.Image:
    """A part of a photo in another size, as RGB; colours are converted last, to save memory."""
    white = None
    if image.mode not in DIRECT:
        outer = math.floor(box[0]), math.floor(box[1]), math.ceil(box[2]), math.ceil(box[3])
        across, down = _factors(outer, size)
        image, white = _continuous_part(image, outer, (across, down))
        left, upper = outer[:2]
        box = (box[0] - left) / across, (box[1] - upper) / down, (box[2] - left) / across, (box[3] - upper) / down
    image = image.resize(size, how, box, reducing_gap=GAP)
    if white is not None:
        values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=white)
        image = Image.fromarray(np.clip(values / white * 255, 0, 255).round().astype(np.uint8))
    if image.mode in ("RGBA", "LA"):
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", size, "white"), image).convert("RGB")
    return image.convert("RGB")


def _factors(outer: tuple[int, int, int, int], size: tuple[int, int]) -> tuple[int, int]:
    """By which whole factors a part is made smaller first, across and down: as Pillow does it, but only large ones."""
    width, height = outer[2] - outer[0], outer[3] - outer[1]
    if width * height < LARGE:
        return 1, 1
    return max(1, int(width / size[0] / GAP)), max(1, int(height / size[1] / GAP))


def _continuous_part(
    image: Image.Image, outer: tuple[int, int, int, int], factors: tuple[int, int]
) -> tuple[Image.Image, float | None]:
    """A part of a picture, made smaller, in a mode whose pixels can be averaged, and the level of its white."""
    left, upper, right, lower = outer
    rows = max(1, BAND // (right - left) // factors[1]) * factors[1] if max(factors) > 1 else lower - upper
    bands, brightest = [], []
    for top in range(upper, lower, rows):
        band = _continuous(image.crop((left, top, right, min(top + rows, lower))))
        brightest.append(_brightest(band))  # before it is made smaller, which overshoots at edges
        bands.append(band.reduce(factors) if max(factors) > 1 else band)
    whole = bands[0]
    if len(bands) > 1:
        whole = Image.new(whole.mode, (whole.width, sum(band.height for band in bands)))
        for number, band in enumerate(bands):
            whole.paste(band, (0, number * bands[0].height))
    return whole, _white(whole.mode, max(brightest)) if whole.mode in ("I", "F") else None


def _continuous(image: Image.Image) -> Image.Image:
    """The same picture in a mode whose pixels can be averaged: palettes, bits and 16-bit numbers cannot."""
    if image.mode.startswith("I;16"):
        return image.convert("I")
    if image.mode in ("P", "PA", "RGBa", "La") or "transparency" in image.info:
        return image.convert("RGBA")
    return image if image.mode in ("RGBA", "LA", "I", "F") else image.convert("RGB")


def _brightest(image: Image.Image) -> float:
    """The largest number of a grey picture of unknown depth; 0 of others."""
    if image.mode not in ("I", "F"):
        return 0.0
    return float(np.nan_to_num(np.asarray(image), posinf=0, neginf=0).max())


def _white(mode: str, brightest: float) -> float:
    """The level that counts as white in grey pictures of unknown depth.

    Scanners and microscopes store 10, 12 or 14 bits in files of 16 without saying so: the smallest even number of bits
    that holds the brightest pixel is taken. Floats are fractions where none exceeds 1.
    """
    if mode == "F" and brightest <= 1:
        return 1.0
    bits = max(8, math.ceil(brightest).bit_length())
    return float(2 ** (bits + bits % 2) - 1)
