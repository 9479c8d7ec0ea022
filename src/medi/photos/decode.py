"""Read one photo from one file, of any kind and in any state that turns up in people's folders.

Large JPEGs are decoded at a fraction of their size, and only the part that is needed is resized.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import BinaryIO
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"})
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")
"""What Pillow may try, whatever a file is called: some of its other readers run programs."""

LARGEST = 150_000_000
"""Pixels that may be decoded: 600 MB as Pillow holds them."""
LARGEST_JPEG = 300_000_000
"""Pixels of a JPEG, which is decoded at a fraction of its size; a progressive one still holds 3 bytes a pixel."""
ALONE = 20_000_000
"""Pixels from which on photos are decoded one at a time, so that memory does not grow with the number of threads."""

_LARGE = Lock()
_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
PREVIEW = 128
"""Longer side of a preview in pixels; smaller photos are not enlarged."""


class UnreadableError(Exception):
    """A file that is not a usable photo; the message is the reason in plain words."""


@dataclass(frozen=True)
class Cut:
    """The square of a photo that an encoder looks at.

    Attributes:
        side: Pixels it is resized to.
        fraction: Its side as a fraction of the photo's shorter side; it lies in the middle.
        filter: How it is resized.
    """

    side: int
    fraction: float = 1.0
    filter: Image.Resampling = Image.Resampling.BICUBIC


@dataclass(frozen=True)
class Photo:
    """A photo that was read.

    Attributes:
        pixels: (3, side, side) uint8, upright.
        preview: The whole photo, small, upright, RGB; None where none was asked for.
    """

    pixels: npt.NDArray[np.uint8]
    preview: Image.Image | None = None


@contextmanager
def decoding() -> Iterator[None]:
    """Replace Pillow's size limit by ours and silence its warnings while photos are read."""
    limit = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = LARGEST_JPEG
    try:
        with catch_warnings():
            simplefilter("ignore")
            yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def read_photo(file: BinaryIO, cut: Cut, *, preview: bool = False) -> Photo:
    """Read the photo in an open file; inside `decoding()`.

    Raises:
        UnreadableError: It is no photo, or a damaged or an excessively large one.
    """
    try:
        with Image.open(file, formats=FORMATS) as image:
            return _read(image, cut, preview)
    except UnreadableError:
        raise
    except UnidentifiedImageError as error:
        raise UnreadableError("not an image") from error
    except Image.DecompressionBombError as error:
        raise UnreadableError(f"more than {LARGEST_JPEG // 10**6} million pixels") from error
    except MemoryError as error:
        raise UnreadableError("too large for this machine's memory") from error
    except Exception as error:  # a broken file makes Pillow raise almost anything: struct.error, SyntaxError, …
        raise UnreadableError(f"cut short or damaged ({_one_line(error)})") from error


def _read(image: Image.Image, cut: Cut, preview: bool) -> Photo:
    width, height = image.size
    # The scale at which it must be decoded; enough for a preview even where none is asked for, so that the pixels of a
    # photo do not depend on that.
    needed = max(cut.side / (cut.fraction * min(width, height)), PREVIEW / max(width, height))
    image.draft(None, (math.ceil(needed * width), math.ceil(needed * height)))  # only JPEG can; others stay as they are
    decoded = image.size[0] * image.size[1]
    if decoded > LARGEST or width * height > LARGEST_JPEG:
        raise UnreadableError(f"{width:,} x {height:,} pixels are too many")
    with _LARGE if decoded >= ALONE else nullcontext():
        return _reduced(image, cut, preview)


def _reduced(image: Image.Image, cut: Cut, preview: bool) -> Photo:
    image.load()
    turn = _UPRIGHT.get(_orientation(image))
    middle = _resized(image, (cut.side, cut.side), _middle(image.size, cut.fraction), cut.filter)
    small = None
    if preview:
        width, height = image.size
        scale = min(1.0, PREVIEW / max(width, height))
        size = (max(1, round(scale * width)), max(1, round(scale * height)))
        small = _turned(_resized(image, size, (0, 0, width, height), cut.filter), turn)
    # The middle square stays in the middle when a photo is turned, so the small square is turned, not the photo.
    pixels = np.asarray(_turned(middle, turn)).transpose(2, 0, 1)
    return Photo(np.ascontiguousarray(pixels), small)


def _middle(size: tuple[int, int], fraction: float) -> tuple[float, float, float, float]:
    """Left, upper, right and lower edge of the middle square."""
    width, height = size
    side = fraction * min(size)
    return (width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2


def _resized(
    image: Image.Image, size: tuple[int, int], box: tuple[float, float, float, float], how: Image.Resampling
) -> Image.Image:
    """A part of a photo in another size, as RGB; colours are converted last, to save memory."""
    if image.mode not in ("RGB", "L", "CMYK", "YCbCr"):
        outer = math.floor(box[0]), math.floor(box[1]), math.ceil(box[2]), math.ceil(box[3])
        image = _continuous(image.crop(outer))
        box = (box[0] - outer[0], box[1] - outer[1], box[2] - outer[0], box[3] - outer[1])
    white = _white(image)  # before resizing, which overshoots at edges
    image = image.resize(size, how, box, reducing_gap=3.0)
    if white is not None:
        values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=white)
        image = Image.fromarray(np.clip(values / white * 255, 0, 255).round().astype(np.uint8))
    if image.mode in ("RGBA", "LA"):
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", size, "white"), image).convert("RGB")
    return image.convert("RGB")


def _continuous(image: Image.Image) -> Image.Image:
    """The same picture in a mode whose pixels can be averaged: palettes, bits and 16-bit numbers cannot."""
    if image.mode.startswith("I;16"):
        return image.convert("I")
    if image.mode in ("P", "PA", "RGBa", "La") or "transparency" in image.info:
        return image.convert("RGBA")
    return image if image.mode in ("RGBA", "LA", "I", "F") else image.convert("RGB")


def _white(image: Image.Image) -> float | None:
    """The level that counts as white in grey pictures of unknown depth; None for pictures of 8 bits.

    Scanners and microscopes store 10, 12 or 14 bits in files of 16 without saying so: the smallest even number of bits
    that holds the brightest pixel is taken. Floats are fractions where none exceeds 1.
    """
    if image.mode not in ("I", "F"):
        return None
    brightest = float(np.nan_to_num(np.asarray(image), posinf=0, neginf=0).max())
    if image.mode == "F" and brightest <= 1:
        return 1.0
    bits = max(8, math.ceil(brightest).bit_length())
    return float(2 ** (bits + bits % 2) - 1)


def _orientation(image: Image.Image) -> int:
    """How the camera was held; 1 (upright) where EXIF does not say, or is damaged."""
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # EXIF is written by everything that ever touched a photo: a broken one is no reason to skip it
        return 1


def _turned(image: Image.Image, turn: Image.Transpose | None) -> Image.Image:
    return image if turn is None else image.transpose(turn)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
