"""Many photos in, one array each: decoded in parallel, encoded in batches, remembered, never all held at once."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from medi.data.cache import FeatureCache
from medi.data.folders import Skipped
from medi.data.photos import UnreadableError, decoding, read_photo
from medi.nets.pretrained import Encoder
from medi.progress import Reporter

BATCH = 32
"""Photos encoded at a time, and kept at a time: what a killed process has to do again at most."""


@dataclass
class Reading:
    """What became of a list of files; `paths`, `digests`, `thumbnails` and the rows of `arrays` belong together.

    Attributes:
        arrays: (n, *shape of the encoder).
        paths: Of the photos that could be read.
        digests: Of their contents.
        thumbnails: What was made of small pictures of them; empty where none were asked for.
        skipped: The files that could not be read.
    """

    arrays: Tensor
    paths: list[str] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    thumbnails: list[bytes] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


@dataclass(frozen=True)
class _Look:
    """One file: either the reason why it is skipped, or its digest with the array kept before or the pixels."""

    reason: str = ""
    digest: bytes = b""
    kept: bytes | None = None
    pixels: npt.NDArray[np.uint8] | None = None
    thumbnail: bytes = b""


def read_photos(
    root: Path,
    paths: Sequence[str],
    encoder: Encoder,
    cache: FeatureCache,
    reporter: Reporter,
    *,
    title: str = "reading photos",
    thumbnail: Callable[[Image.Image], bytes] | None = None,
) -> Reading:
    """Encode the photos of a folder, in the order given; what cannot be read is listed, and so is the reason.

    Args:
        root: The folder.
        paths: Files, relative to it.
        encoder: What makes arrays of them.
        cache: Where arrays are looked for and kept.
        reporter: Shows progress.
        title: Of the progress.
        thumbnail: Makes what is kept of a small RGB picture of each photo; None where none is wanted.
    """
    arrays = torch.empty(len(paths), *encoder.shape, dtype=encoder.dtype)
    reading = Reading(arrays)
    waiting: list[tuple[int, npt.NDArray[np.uint8]]] = []  # rows that wait for the encoder, and their pixels

    def look(path: str) -> _Look:
        return _look(root / path, encoder, cache, thumbnail)

    def encode() -> None:
        rows = [row for row, _ in waiting]
        arrays[rows] = encoder.encode(torch.from_numpy(np.stack([pixels for _, pixels in waiting])))
        cache.put([(reading.digests[row], arrays[row].numpy().tobytes()) for row in rows])
        waiting.clear()

    with decoding(), reporter.track(title, len(paths)) as tick:
        for number, (path, seen) in enumerate(zip(paths, _in_parallel(look, paths), strict=True), 1):
            if seen.reason:
                reading.skipped.append(Skipped(path, seen.reason))
            else:
                row = len(reading.paths)
                reading.paths.append(path)
                reading.digests.append(seen.digest)
                reading.thumbnails.append(seen.thumbnail)
                if seen.kept is not None:
                    arrays[row] = torch.frombuffer(bytearray(seen.kept), dtype=encoder.dtype).view(encoder.shape)
                elif seen.pixels is not None:
                    waiting.append((row, seen.pixels))
            if len(waiting) == BATCH or (waiting and number == len(paths)):
                encode()
            tick(number)
    reading.arrays = arrays[: len(reading.paths)]
    return reading


def _look(path: Path, encoder: Encoder, cache: FeatureCache, thumbnail: Callable[[Image.Image], bytes] | None) -> _Look:
    """Read one file, as far as that is needed."""
    try:
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").digest()
            kept = cache.get(digest)
            if kept is not None and thumbnail is None:
                return _Look(digest=digest, kept=kept)
            file.seek(0)
            photo = read_photo(file, encoder.cut, preview=thumbnail is not None)
            small = thumbnail(photo.preview) if thumbnail and photo.preview else b""
            return _Look(digest=digest, kept=kept, pixels=photo.pixels, thumbnail=small)
    except UnreadableError as error:
        return _Look(reason=str(error))
    except OSError as error:
        return _Look(reason=(error.strerror or str(error)).lower())


def _in_parallel(look: Callable[[str], _Look], paths: Sequence[str]) -> Iterator[_Look]:
    """Look at files in threads (Pillow lets go of the interpreter), two batches ahead of the encoder."""
    with ThreadPoolExecutor(_cores()) as pool:
        ahead: deque[Future[_Look]] = deque()
        try:
            for path in paths:
                ahead.append(pool.submit(look, path))
                if len(ahead) > 2 * BATCH:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
