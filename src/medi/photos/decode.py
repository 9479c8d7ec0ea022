"""Read one photo from one file, of any kind and in any state that turns up in people's folders.

Large JPEGs are decoded at a fraction of their size, and only the part that is needed is resized.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import BinaryIO
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError, features

from medi.core.errors import reason_of
from medi.photos import raw
from medi.photos.resize import resized
from medi.photos.room import LEAST_BOXED, MOST_BYTES, RAW, RAW_HALF, ROOM, bytes_held

SUFFIXES = raw.RAW_SUFFIXES | {
    *(".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"),
    *(".heic", ".heif", ".avif"),
}
UNBOXED = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")
"""What Pillow may try, whatever a file is called: some of its other readers run programs."""
BOXED = ("AVIF", "HEIF")
"""What it may try on a file that begins like a HEIC or AVIF."""

MOST_PIXELS = 300_000_000
"""That a photo may have, however little memory they take: they take time as well."""

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
    """The part of a photo that an encoder looks at, in the middle, as a square."""

    side: int  # pixels it is resized to
    fraction: float = 1.0  # its side as a fraction of the photo's shorter side
    filter: Image.Resampling = Image.Resampling.BICUBIC  # how it is resized
    squash: bool = False  # it is no square in the photo, but that fraction of its width and of its height


@dataclass(frozen=True)
class Photo:
    """A photo that was read."""

    pixels: npt.NDArray[np.uint8]  # (3, side, side) uint8, upright
    preview: Image.Image | None = None  # the whole photo, small, upright, RGB; None where none was asked for


@contextmanager
def decoding() -> Iterator[None]:
    """Replace Pillow's size limit by ours and silence its warnings while photos are read."""
    limit = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    try:
        with catch_warnings():
            simplefilter("ignore")
            yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def read_photo(file: BinaryIO, cut: Cut, *, preview: bool = False, longest: int = PREVIEW) -> Photo:
    """Read a part of the photo in an open file, and perhaps a preview of all of it; inside `decoding()`.

    Raises:
        UnreadableError: It is no photo, or a damaged or an excessively large one.
    """
    try:
        with ExitStack() as room:  # given back once nothing of the picture is left
            return _opened(file, cut, preview, longest, room)
    except UnreadableError:
        raise
    except Image.DecompressionBombError as error:
        raise UnreadableError(f"more than {MOST_PIXELS // 10**6} million pixels") from error
    except MemoryError as error:
        raise UnreadableError("too large for this machine's memory") from error
    except Exception as error:  # a broken file makes Pillow raise almost anything: struct.error, SyntaxError, …
        raise UnreadableError(f"cut short or damaged ({reason_of(error)})") from error


def _opened(file: BinaryIO, cut: Cut, preview: bool, longest: int, room: ExitStack) -> Photo:
    """Read a file of any kind; `room` is where it says how much memory it takes."""
    if raw.called_raw(file):
        photo = _read_raw(file, cut, preview, longest, room)
        if photo is not None:
            return photo
    pixels = _stated(file)
    try:
        image = Image.open(file, formats=UNBOXED if pixels is None else BOXED)
    except UnidentifiedImageError as error:
        raise UnreadableError("cut short or damaged" if pixels is not None else "not an image") from error
    with image:
        return _read(image, cut, preview, longest, room, pixels or 0)


def _read(image: Image.Image, cut: Cut, preview: bool, longest: int, room: ExitStack, pixels: int = 0) -> Photo:
    """Decode a photo that was opened; `pixels`: how many are decoded at least, where only a part of them is shown."""
    width, height = image.size
    if image.format in ("JPEG", "MPO"):  # HEIC would decode a thumbnail here, before its size is checked
        image.draft(None, _needed(image.size, cut, longest))
    held = bytes_held(image, max(pixels, math.prod(image.size)), max(pixels, width * height))
    if held > MOST_BYTES or width * height > MOST_PIXELS:
        raise _too_many(width, height)
    room.enter_context(ROOM.taken(held))
    return _reduced(image, cut, preview, longest)


def _read_raw(file: BinaryIO, cut: Cut, preview: bool, longest: int, room: ExitStack) -> Photo | None:
    """A raw photo; None for a file of another kind that only has the name of one."""
    if not raw.can_read_raw():
        raise UnreadableError(raw.CURE)
    with raw.opened(file) as photo:
        if photo is None:
            return None
        width, height = _needed(photo.size, cut, longest)
        image = photo.camera_jpeg((min(width, photo.size[0]), min(height, photo.size[1])))
        if image is not None:
            return _read(image, cut, preview, longest, room)
        half = 2 * width <= photo.size[0] and 2 * height <= photo.size[1]
        held = photo.pixels * (RAW_HALF if half else RAW)
        if held > MOST_BYTES:
            raise _too_many(*photo.size)
        room.enter_context(ROOM.taken(held))
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
    if math.prod(most) * LEAST_BOXED > MOST_BYTES:
        raise _too_many(*most)
    _register_heif()
    return math.prod(most)


def _register_heif() -> None:
    """Tell Pillow of the reader of HEIC, which is loaded when the first such file turns up, by whatever thread."""
    with _REGISTERING:
        if "HEIF" not in Image.OPEN:
            from pi_heif import register_heif_opener

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
    middle = resized(image, (cut.side, cut.side), _middle(image.size, cut), cut.filter)
    small = None
    if preview:
        width, height = image.size
        scale = min(1.0, longest / max(width, height))
        size = (max(1, round(scale * width)), max(1, round(scale * height)))
        small = _turned(resized(image, size, (0, 0, width, height), cut.filter), turn)
    # The middle square stays in the middle when a photo is turned, so the small square is turned, not the photo.
    pixels = np.asarray(_turned(middle, turn)).transpose(2, 0, 1)
    return Photo(np.ascontiguousarray(pixels), small)


def _middle(size: tuple[int, int], cut: Cut) -> tuple[float, float, float, float]:
    """Left, upper, right and lower edge of the part in the middle."""
    width, height = size
    across, down = (cut.fraction * (side if cut.squash else min(size)) for side in size)
    return (width - across) / 2, (height - down) / 2, (width + across) / 2, (height + down) / 2


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
