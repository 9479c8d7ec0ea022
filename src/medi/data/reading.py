"""Many photos in, one array each: decoded in parallel, encoded in batches, remembered, never all held at once."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
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

BATCH = 8
"""Photos that a thread decodes and encodes at a time: more take more memory and no less time."""
KEPT = 8
"""Batches written to the cache at a time: what a killed process has to do again at most."""
MOST_THREADS = 16

Thumbnail = Callable[[Image.Image], bytes]


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
    """One file: either the reason why it is skipped, or its digest and its array, kept before or pixels to encode."""

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
    thumbnail: Thumbnail | None = None,
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
    new: list[tuple[bytes, bytes]] = []

    def batch(names: Sequence[str]) -> list[_Look]:
        return _encoded([_look(root / name, encoder, cache, thumbnail) for name in names], encoder)

    batches = [paths[start : start + BATCH] for start in range(0, len(paths), BATCH)]
    done = 0
    with decoding(), reporter.track(title, len(paths)) as tick:
        for number, (names, looks) in enumerate(zip(batches, _in_parallel(batch, batches), strict=True), 1):
            for path, look in zip(names, looks, strict=True):
                if look.kept is None:
                    reading.skipped.append(Skipped(path, look.reason))
                    continue
                arrays[len(reading.paths)] = _array(look.kept, encoder)
                reading.paths.append(path)
                reading.digests.append(look.digest)
                reading.thumbnails.append(look.thumbnail)
                if look.pixels is not None:
                    new.append((look.digest, look.kept))
            if number % KEPT == 0 or number == len(batches):
                cache.put(new)
                new.clear()
            done += len(names)
            tick(done)
    reading.arrays = arrays[: len(reading.paths)]
    return reading


def _look(path: Path, encoder: Encoder, cache: FeatureCache, thumbnail: Thumbnail | None) -> _Look:
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
            return _Look(digest=digest, kept=kept, pixels=None if kept else photo.pixels, thumbnail=small)
    except UnreadableError as error:
        return _Look(reason=str(error))
    except OSError as error:
        return _Look(reason=(error.strerror or str(error)).lower())


def _encoded(looks: list[_Look], encoder: Encoder) -> list[_Look]:
    """The same with arrays for those that have only pixels."""
    waiting = [look.pixels for look in looks if look.pixels is not None]
    if not waiting:
        return looks
    arrays = iter(encoder.encode(torch.from_numpy(np.stack(waiting))))
    return [
        look if look.pixels is None else replace(look, kept=next(arrays).contiguous().numpy().tobytes())
        for look in looks
    ]


def _array(value: bytes, encoder: Encoder) -> Tensor:
    return torch.frombuffer(bytearray(value), dtype=encoder.dtype).view(encoder.shape)


def _in_parallel(
    work: Callable[[Sequence[str]], list[_Look]], batches: Sequence[Sequence[str]]
) -> Iterator[list[_Look]]:
    """Work on batches in threads, each on its own core: Pillow and torch both let go of the interpreter.

    Threads that work on a batch of their own take half the processor time of threads that share one, because they
    need not wait for each other (benchmarks/discover.py).
    """
    threads = min(_cores(), MOST_THREADS)
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        ahead: deque[Future[list[_Look]]] = deque()
        try:
            for names in batches:
                ahead.append(pool.submit(work, names))
                if len(ahead) > 2 * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
