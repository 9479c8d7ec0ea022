"""Many photos in, one array each: decoded in parallel, encoded in batches, kept shard by shard, never all held at once.

A shard is what is kept at a time, what a restart finds finished, and what processes that share the work take in turn.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import file_digest
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from medi.photos.cache import FeatureCache
from medi.photos.decode import Cut, UnreadableError, decoding, read_photo
from medi.photos.encoders import Encoder
from medi.photos.folders import Skipped
from medi.runtime.progress import Reporter

BATCH = 8
"""Photos that a thread decodes and encodes at a time: more take more memory and no less time."""
SHARD = 128
"""Photos written to the cache at a time, whole batches: what a killed process has to do again at most."""
MOST_THREADS = 16

S = TypeVar("S")
T = TypeVar("T")


@dataclass
class Reading:
    """What became of a list of files; `paths`, `digests` and the rows of `arrays` belong together.

    Attributes:
        arrays: (n, *shape of the encoder).
        paths: Of the photos that could be read.
        digests: Of their contents.
        skipped: The files that could not be read.
        encoded: How many of the arrays had to be computed, because they were not kept.
    """

    arrays: Tensor
    paths: list[str] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    encoded: int = 0


@dataclass(frozen=True)
class _Look:
    """One file: either the reason why it is skipped, or its digest and its array, kept before or pixels to encode."""

    reason: str = ""
    digest: bytes = b""
    kept: bytes | None = None
    pixels: npt.NDArray[np.uint8] | None = None


def read_photos(
    root: Path,
    paths: Sequence[str],
    encoder: Encoder,
    cache: FeatureCache,
    reporter: Reporter,
    *,
    title: str = "reading photos",
) -> Reading:
    """Encode the photos of a folder, in the order given; what cannot be read is listed, and so is the reason.

    Args:
        root: The folder.
        paths: Files, relative to it.
        encoder: What makes arrays of them.
        cache: Where arrays are looked for and kept.
        reporter: Shows progress.
        title: Of the progress.
    """
    whole = Reading(torch.empty(len(paths), *encoder.shape, dtype=encoder.dtype))
    for shard in read_shards(root, paths, encoder, cache, reporter, title=title):
        whole.arrays[len(whole.paths) : len(whole.paths) + len(shard.paths)] = shard.arrays
        whole.paths += shard.paths
        whole.digests += shard.digests
        whole.skipped += shard.skipped
        whole.encoded += shard.encoded
    whole.arrays = whole.arrays[: len(whole.paths)]
    return whole


def read_shards(
    root: Path,
    paths: Sequence[str],
    encoder: Encoder,
    cache: FeatureCache,
    reporter: Reporter,
    *,
    title: str = "reading photos",
) -> Iterator[Reading]:
    """The same a shard at a time, each in the cache before it is given out: no more than a few are held at once."""

    def batch(names: Sequence[str]) -> list[_Look]:
        return _encoded([_look(root / name, encoder, cache) for name in names], encoder)

    starts = range(0, len(paths), BATCH)
    with decoding(), reporter.track(title, len(paths)) as tick:
        looks = _in_parallel(batch, (paths[start : start + BATCH] for start in starts))
        for start in range(0, len(paths), SHARD):
            names = paths[start : start + SHARD]
            yield _shard(names, looks, encoder, cache)
            tick(start + len(names))


def _shard(names: Sequence[str], looks: Iterator[list[_Look]], encoder: Encoder, cache: FeatureCache) -> Reading:
    """The next shard of the looks, which come in batches."""
    reading = Reading(torch.empty(len(names), *encoder.shape, dtype=encoder.dtype))
    new: list[tuple[bytes, bytes]] = []
    try:
        for start in range(0, len(names), BATCH):
            for path, look in zip(names[start : start + BATCH], next(looks), strict=True):
                if look.kept is None:
                    reading.skipped.append(Skipped(path, look.reason))
                    continue
                reading.arrays[len(reading.paths)] = _array(look.kept, encoder)
                reading.paths.append(path)
                reading.digests.append(look.digest)
                if look.pixels is not None:
                    new.append((look.digest, look.kept))
    finally:
        cache.put(new)  # on Ctrl-C too: what was finished is kept
    reading.encoded = len(new)
    reading.arrays = reading.arrays[: len(reading.paths)]
    return reading


def read_thumbnails(root: Path, paths: Sequence[str], make: Callable[[Image.Image], bytes]) -> list[bytes]:
    """What is made of a small RGB picture of each photo; nothing of one that can no longer be read."""

    def small(name: str) -> bytes:
        try:
            with (root / name).open("rb") as file:
                preview = read_photo(file, Cut(1), preview=True).preview  # the cut is not looked at
        except (UnreadableError, OSError):
            return b""
        return make(preview) if preview else b""

    with decoding():
        return list(_in_parallel(small, paths))


def _look(path: Path, encoder: Encoder, cache: FeatureCache) -> _Look:
    """Read one file, as far as that is needed."""
    try:
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").digest()
            kept = cache.get(digest)
            if kept is not None:
                return _Look(digest=digest, kept=kept)
            file.seek(0)
            return _Look(digest=digest, pixels=read_photo(file, encoder.cut).pixels)
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


def _in_parallel(work: Callable[[S], T], pieces: Iterable[S]) -> Iterator[T]:
    """Work on pieces in threads, each on its own core: Pillow and torch both let go of the interpreter.

    Threads that work on a batch of their own take half the processor time of threads that share one, because they
    need not wait for each other (benchmarks/discover.py).
    """
    threads = min(_cores(), MOST_THREADS)
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        ahead: deque[Future[T]] = deque()
        try:
            for piece in pieces:
                ahead.append(pool.submit(work, piece))
                if len(ahead) > 2 * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _cores() -> int:
    """Cores for this process: those it may use, shared with the other processes that torchrun or Ray put there."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if "LOCAL_WORLD_SIZE" in os.environ:  # torchrun; it also sets OMP_NUM_THREADS to 1, whatever there is
        return max(1, cores // int(os.environ["LOCAL_WORLD_SIZE"]))
    chosen = os.environ.get("OMP_NUM_THREADS", "")  # Ray sets it to what a task asked for
    return min(cores, int(chosen)) if chosen.isdecimal() and int(chosen) else cores
