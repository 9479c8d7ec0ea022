"""Photos of the pool for a page: by number, encoded anew, so that neither metadata nor anything but pixels gets out."""

from __future__ import annotations

from collections import OrderedDict
from io import BytesIO
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Literal

from PIL import Image

from medi.photos.decode import Cut, UnreadableError, read_photo
from medi.review.discovery_folder import Folder

Size = Literal["thumb", "full"]
LONGEST: dict[Size, int] = {"thumb": 256, "full": 1600}
"""Longer side in pixels; smaller photos are not enlarged."""
KEPT_BYTES = 96 * 2**20
"""Of photos in memory; those not asked for longest go first."""
AT_ONCE = 4
"""Photos decoded at a time, so that a fast scroll does not fill the memory."""


class MissingError(Exception):
    """A photo that cannot be shown; the message says why."""


class Photos:
    """JPEGs of the photos of a pool, made when they are asked for and kept for a while."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._kept: OrderedDict[tuple[int, Size], bytes] = OrderedDict()
        self._bytes = 0
        self._lock, self._room = Lock(), BoundedSemaphore(AT_ONCE)

    def __len__(self) -> int:
        return len(self._folder.start)

    def path(self, item: int) -> Path:
        """Where a photo is."""
        return self._folder.novel / self._folder.start.paths[item]

    def jpeg(self, item: int, size: Size) -> bytes:
        """A photo as a JPEG, upright, without metadata.

        Raises:
            MissingError: It is gone or damaged.
        """
        key = item, size
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with self._room:
            made = self._encode(item, size)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._bytes += len(made)
            while self._bytes > KEPT_BYTES:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= len(dropped)
        return made

    def missing(self) -> list[str]:
        """Paths of photos that are no longer where they were."""
        return [path for item, path in enumerate(self._folder.start.paths) if not self.path(item).is_file()]

    def _encode(self, item: int, size: Size) -> bytes:
        try:
            with self.path(item).open("rb") as file:
                preview = read_photo(file, Cut(1), preview=True, longest=LONGEST[size]).preview
        except OSError as error:
            raise MissingError("This photo is not where it was: put it back, or discover again.") from error
        except UnreadableError as error:
            raise MissingError(f"This photo can no longer be read: {error}.") from error
        if preview is None:
            raise MissingError("This photo has no pixels.")
        canvas = Image.new("RGB", preview.size)  # a new image: saving a read one would write its comments too
        canvas.paste(preview)
        buffer = BytesIO()
        canvas.save(buffer, "JPEG", quality=82 if size == "thumb" else 88)
        return buffer.getvalue()
