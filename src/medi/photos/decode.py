"""Read one photo from one file, of any kind and in any state that turns up in people's folders.

Large JPEGs are decoded at a fraction of their size, and only the part that is needed is resized.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import BinaryIO
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError, features

from medi.photos import raw

SUFFIXES = raw.RAW_SUFFIXES | {
    *(".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"),
    *(".heic", ".heif", ".avif"),
}
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")
"""What Pillow may try, whatever a file is called: some of its other readers run programs."""
BOXED = ("AVIF", "HEIF")
"""What it may try on a file that begins like a HEIC or AVIF."""

LARGEST = 150_000_000
"""Pixels that may be decoded: 600 MB as Pillow holds them, and as much again while a HEIC or AVIF is decoded."""
LARGEST_JPEG = 300_000_000
"""Pixels of a JPEG, which is decoded at a fraction of its size; a progressive one still holds 3 bytes a pixel."""
ALONE = 20_000_000
"""Pixels from which on photos are decoded one at a time, so that memory does not grow with the number of threads."""

_LARGE = Lock()
_REGISTERING = Lock()
_BRANDS = frozenset(b"heic heix heim heis hevc hevx hevm hevs mif1 msf1 avif avis".split())
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
    """The part of a photo that an encoder looks at, in the middle, as a square.

    Attributes:
        side: Pixels it is resized to.
        fraction: Its side as a fraction of the photo's shorter side.
        filter: How it is resized.
        squash: It is no square in the photo, but that fraction of its width and of its height.
    """

    side: int
    fraction: float = 1.0
    filter: Image.Resampling = Image.Resampling.BICUBIC
    squash: bool = False


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


def read_photo(file: BinaryIO, cut: Cut, *, preview: bool = False, longest: int = PREVIEW) -> Photo:
    """Read the photo in an open file; inside `decoding()`.

    Args:
        file: The file.
        cut: The part of the photo that is wanted.
        preview: Whether to make one of the whole photo.
        longest: Its longer side in pixels.

    Raises:
        UnreadableError: It is no photo, or a damaged or an excessively large one.
    """
    pixels = None
    try:
        if raw.called_raw(file):
            photo = _read_raw(file, cut, preview, longest)
            if photo is not None:
                return photo
        pixels = _stated(file)
        with Image.open(file, formats=FORMATS if pixels is None else BOXED) as image:
            return _read(image, cut, preview, longest, pixels or 0)
    except UnreadableError:
        raise
    except UnidentifiedImageError as error:
        raise UnreadableError("cut short or damaged" if pixels is not None else "not an image") from error
    except Image.DecompressionBombError as error:
        raise UnreadableError(f"more than {LARGEST_JPEG // 10**6} million pixels") from error
    except MemoryError as error:
        raise UnreadableError("too large for this machine's memory") from error
    except Exception as error:  # a broken file makes Pillow raise almost anything: struct.error, SyntaxError, …
        raise UnreadableError(f"cut short or damaged ({_one_line(error)})") from error


def _read(image: Image.Image, cut: Cut, preview: bool, longest: int, pixels: int = 0) -> Photo:
    """Decode a photo that was opened; `pixels`: how many are decoded at least, where only a part of them is shown."""
    width, height = image.size
    if image.format in ("JPEG", "MPO"):  # HEIC would decode a thumbnail here, before its size is checked
        image.draft(None, _needed(image.size, cut, longest))
    decoded = max(pixels, image.size[0] * image.size[1])
    if decoded > LARGEST or width * height > LARGEST_JPEG:
        raise _too_many(width, height)
    with _LARGE if decoded >= ALONE else nullcontext():
        return _reduced(image, cut, preview, longest)


def _read_raw(file: BinaryIO, cut: Cut, preview: bool, longest: int) -> Photo | None:
    """A raw photo; None for a file of another kind that only has the name of one."""
    if not raw.can_read_raw():
        raise UnreadableError(raw.CURE)
    with raw.opened(file) as photo:
        if photo is None:
            return None
        width, height = _needed(photo.size, cut, longest)
        image = photo.camera_jpeg((min(width, photo.size[0]), min(height, photo.size[1])))
        if image is not None:
            return _read(image, cut, preview, longest)
        if photo.pixels > LARGEST:
            raise _too_many(*photo.size)
        with _LARGE if photo.pixels >= ALONE else nullcontext():
            half = 2 * width <= photo.size[0] and 2 * height <= photo.size[1]
            return _reduced(photo.developed(half=half), cut, preview, longest)


def _needed(size: tuple[int, int], cut: Cut, longest: int) -> tuple[int, int]:
    """The width and height at which a photo must be decoded.

    They are enough for a preview even where none is asked for, so that the pixels of a photo do not depend on that.
    """
    scale = max(cut.side / (cut.fraction * min(size)), longest / max(size))
    return math.ceil(scale * size[0]), math.ceil(scale * size[1])


def _stated(file: BinaryIO) -> int | None:
    """The most pixels that an image in a HEIC or AVIF file has, as its header says; None for files of other kinds.

    Pillow only tells how many are left once the edges are cut off, but all of them are decoded.
    """
    file.seek(0)
    head = file.read(64)
    end = file.seek(0, 2)
    file.seek(0)
    if head[4:8] != b"ftyp" or head[8:12] not in _BRANDS:
        return None
    if b"avif" in head and not features.check("avif"):
        raise UnreadableError("this build of Pillow cannot read AVIF: pip install --upgrade pillow")
    most = max(_sizes(file, 0, end, (b"meta", b"iprp", b"ipco", b"ispe")), key=math.prod, default=(0, 0))
    if math.prod(most) > LARGEST:
        raise _too_many(*most)
    _register_heif()
    return math.prod(most)


def _register_heif() -> None:
    """Tell Pillow of the reader of HEIC, which is loaded when the first such file turns up, by whatever thread."""
    with _REGISTERING:
        if "HEIF" not in Image.OPEN:
            from pillow_heif import register_heif_opener

            register_heif_opener(decode_threads=1)  # photos are read in threads of their own


def _sizes(file: BinaryIO, start: int, end: int, kinds: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Width and height in the boxes of a part of a file; `kinds`: of boxes in boxes, outermost first."""
    while start + 8 <= end:
        file.seek(start)
        length, kind, longer = struct.unpack(">I4sQ", file.read(16).ljust(16, b"\0"))
        inside = start + (16 if length == 1 else 8)
        length = {0: end - start, 1: longer}.get(length, length)
        if kind == kinds[0] == b"ispe":
            file.seek(inside + 4)
            yield struct.unpack(">II", file.read(8))
        elif kind == kinds[0]:
            yield from _sizes(file, inside + 4 * (kind == b"meta"), min(end, start + length), kinds[1:])
        start += max(length, 8)


def _reduced(image: Image.Image, cut: Cut, preview: bool, longest: int) -> Photo:
    image.load()
    turn = None if image.format == "HEIF" else _UPRIGHT.get(_orientation(image))  # HEIC is turned as it is decoded
    middle = _resized(image, (cut.side, cut.side), _middle(image.size, cut), cut.filter)
    small = None
    if preview:
        width, height = image.size
        scale = min(1.0, longest / max(width, height))
        size = (max(1, round(scale * width)), max(1, round(scale * height)))
        small = _turned(_resized(image, size, (0, 0, width, height), cut.filter), turn)
    # The middle square stays in the middle when a photo is turned, so the small square is turned, not the photo.
    pixels = np.asarray(_turned(middle, turn)).transpose(2, 0, 1)
    return Photo(np.ascontiguousarray(pixels), small)


def _middle(size: tuple[int, int], cut: Cut) -> tuple[float, float, float, float]:
    """Left, upper, right and lower edge of the part in the middle."""
    width, height = size
    across, down = (cut.fraction * (side if cut.squash else min(size)) for side in size)
    return (width - across) / 2, (height - down) / 2, (width + across) / 2, (height + down) / 2


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


def _too_many(width: int, height: int) -> UnreadableError:
    return UnreadableError(f"{width:,} x {height:,} pixels are too many")


def _one_line(error: Exception) -> str:
    text = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else str(error)
    return " ".join(text.split())[:120] or type(error).__name__
