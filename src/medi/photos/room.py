"""How much memory decoding a photo takes, and room for so much of it at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from PIL.TiffImagePlugin import TiffImageFile

from medi.core.system import return_freed_memory

MOST_BYTES = 600_000_000
"""That photos being decoded may take together: with all else that the program holds, it stays below 1 GB."""
LARGE_BYTES = 80_000_000
"""That a photo took from which on memory is handed back to the system."""
_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2}
"""Of a pixel by mode; 4 of any other."""
_COPIES = {"WEBP": 12, "AVIF": 11, "HEIF": 6}
"""Of a pixel, what readers of formats hold beside the picture itself; 4 more where there is transparency."""
LEAST_BOXED = 10
"""Of a pixel of a HEIC or AVIF, before more is known of it."""
RAW, RAW_HALF = 20, 7
"""Bytes a pixel of the sensor, of a raw photo, developed whole or by half."""
_BITS, _ROWS, _STRIP_BYTES, _TILE_WIDTH, _TILE_LENGTH, _TILE_BYTES = 258, 278, 279, 322, 323, 325
"""Tags of a TIFF."""
_START_OF_SCAN = 0xDA
"""A marker of a JPEG."""


class Room:
    """Memory that threads share; a photo waits until there is enough for it.

    >>> room = Room(10)
    >>> with room.taken(8):
    ...     room.free
    2
    """

    def __init__(self, size: int) -> None:
        self.free = size  # bytes that nobody holds
        self._changed = Condition()

    @contextmanager
    def taken(self, size: int) -> Iterator[None]:
        """So many bytes, at most as many as there are in all."""
        with self._changed:
            self._changed.wait_for(lambda: self.free >= size)
            self.free -= size
        try:
            yield
        finally:
            if size >= LARGE_BYTES:
                return_freed_memory()
            with self._changed:
                self.free += size
                self._changed.notify_all()


ROOM = Room(MOST_BYTES)


def bytes_held(image: Image.Image, decoded: int, pixels: int) -> int:
    """The most bytes that decoding a picture takes, which was opened only: of a JPEG's pixels, only some may be."""
    return _BYTES.get(image.mode, 4) * decoded + _beside(image, pixels)


def _beside(image: Image.Image, pixels: int) -> int:
    """What a reader holds beside the picture itself: a strip of a TIFF, the scans of a JPEG, copies of its own."""
    if isinstance(image, TiffImageFile) and image.tile and image.tile[0][0] == "libtiff":
        tags = image.tag_v2
        rows = tags.get(_TILE_LENGTH) or min(tags.get(_ROWS, image.height), image.height)
        stored = max(tags.get(_STRIP_BYTES) or tags.get(_TILE_BYTES) or (0,))
        bits = int(tags.get(_TILE_WIDTH, image.width) * rows * sum(tags.get(_BITS, (1,))))
        return int(stored) + math.ceil(bits / 8)
    if isinstance(image, JpegImageFile) and ("progressive" in image.info or _in_scans(image)):
        samples = [across * down for _, across, down, _ in image.layer]
        return 2 * pixels * sum(samples) // max(samples)  # coefficients of 2 bytes
    copies = _COPIES.get(image.format or "", 0)
    return pixels * (copies + 4 * (copies > 0 and image.mode == "RGBA"))


def _in_scans(image: JpegImageFile) -> bool:
    """Whether the colours of a JPEG lie one after another, so that all are held before the first row is there."""
    file = image.fp
    assert file is not None
    file.seek(2)
    while (head := file.read(4))[:1] == b"\xff" and head[1] != _START_OF_SCAN:
        file.seek(int.from_bytes(head[2:]) - 2, 1)
    return head[:1] != b"\xff" or file.read(1)[0] < len(image.layer)
