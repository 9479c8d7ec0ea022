"""Turn the photos of a folder into arrays: decoded in parallel, encoded in batches, cached shard by shard.

A shard is what is cached at a time. A restart finds finished shards, and processes that work together take them in
turn. Only a few shards are in memory at once.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import file_digest
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from medi.core.errors import reason_of
from medi.core.progress import Reporter
from medi.core.reading import open_file
from medi.photos.cache import PhotoCache
from medi.photos.decode import Cut, UnreadableError, decoding, read_photo
from medi.photos.encoders import Encoder
from medi.photos.folders import Found, Skipped
from medi.photos.thumbnails import thumbnail

BATCH = 8
"""Photos that a thread decodes and encodes at a time: more take more memory and no less time."""
SHARD = 128
"""Photos cached at a time, whole batches: what a killed process has to do again at most."""
MOST_THREADS = 16

Piece = TypeVar("Piece")
Done = TypeVar("Done")


@dataclass
class EncodedPhotos:
    """What became of a list of files; `paths`, `digests` and the rows of `arrays` belong together."""

    arrays: npt.NDArray[Any]  # (n, *shape of the encoder)
    paths: list[str] = field(default_factory=list)  # of the photos that could be read
    digests: list[bytes] = field(default_factory=list)  # of their contents
    skipped: list[Skipped] = field(default_factory=list)  # the files that could not be read
    computed: int = 0  # how many of the arrays were not in the cache

    @classmethod
    def joined(cls, shards: Iterable[EncodedPhotos], count: int, encoder: Encoder) -> Self:
        """Shards of at most so many photos as one; no array is held twice."""
        whole = cls(np.empty((count, *encoder.shape), encoder.dtype))
        for shard in shards:
            whole.arrays[len(whole.paths) : len(whole.paths) + len(shard.paths)] = shard.arrays
            whole.paths += shard.paths
            whole.digests += shard.digests
            whole.skipped += shard.skipped
            whole.computed += shard.computed
        whole.arrays = whole.arrays[: len(whole.paths)]
        return whole


@dataclass(frozen=True)
class _File:
    """One file on its way to an array: either `reason` says why it is skipped, or the other fields are set."""

    reason: str = ""  # why it is skipped
    digest: bytes = b""  # of its content
    pixels: npt.NDArray[np.uint8] | None = None  # (3, side, side), where the array is not in the cache
    thumbnail: bytes = b""  # JPEG, made of pixels where thumbnails are asked for
    value: bytes = b""  # bytes of the array, none before it is there


def read_photos(
    found: Found,
    encoder: Encoder,
    cache: PhotoCache,
    reporter: Reporter,
    *,
    title: str = "reading photos",
    thumbnails: PhotoCache | None = None,
) -> EncodedPhotos:
    """Encode the photos of a folder, in the order given; files that cannot be read are listed with the reason.

    `thumbnails` is where to keep one of every photo that is decoded; None to make none.
    """
    shards = read_shards(found, encoder, cache, reporter, title=title, thumbnails=thumbnails)
    return EncodedPhotos.joined(shards, len(found.paths), encoder)


def read_shards(
    found: Found,
    encoder: Encoder,
    cache: PhotoCache,
    reporter: Reporter,
    *,
    title: str = "reading photos",
    thumbnails: PhotoCache | None = None,
) -> Iterator[EncodedPhotos]:
    """The same, a shard at a time; each is in the cache when it is yielded."""

    def batch(names: Sequence[str]) -> list[_File]:
        files = [_read(found.root / name, encoder, cache, thumbnails is not None) for name in names]
        return _encoded(files, encoder) if encoder.in_threads else files

    paths = found.paths
    with decoding(), reporter.track(title, len(paths)) as tick:
        batches = (paths[start : start + BATCH] for start in range(0, len(paths), BATCH))
        files = chain.from_iterable(_in_parallel(batch, batches))
        if not encoder.in_threads:
            files = chain.from_iterable(_encoded(some, encoder) for some in _shards_of(files))
        for start in range(0, len(paths), SHARD):
            names = paths[start : start + SHARD]
            yield _shard(names, files, encoder, cache, thumbnails)
            tick(start + len(names))


def read_thumbnails(root: Path, paths: Sequence[str], digests: Sequence[bytes], cache: PhotoCache) -> list[bytes]:
    """A JPEG of each photo: from the cache, or else made now; empty for a photo that can no longer be read."""

    def read(photo: tuple[str, bytes]) -> bytes:
        name, digest = photo
        if (kept := cache.get(digest)) is not None:
            return kept.rstrip(b"\0")
        return _thumbnail(root / name)

    with decoding():
        return list(_in_parallel(read, zip(paths, digests, strict=True)))


def make_thumbnails(root: Path, paths: Sequence[str]) -> list[bytes]:
    """A JPEG of each photo, made now; empty for a photo that can no longer be read."""
    with decoding():
        return list(_in_parallel(_thumbnail, (root / path for path in paths)))


def _thumbnail(path: Path) -> bytes:
    try:
        with open_file(path) as file:
            preview = read_photo(file, Cut(1), preview=True).preview  # the cut is not used
    except (UnreadableError, OSError):
        return b""
    return thumbnail(preview) if preview else b""


def _shard(
    names: Sequence[str], files: Iterator[_File], encoder: Encoder, cache: PhotoCache, thumbnails: PhotoCache | None
) -> EncodedPhotos:
    """The next files as a shard."""
    done: list[tuple[str, _File]] = []
    try:
        for pair in zip(names, files, strict=False):  # the files go on after these names
            done.append(pair)
    finally:  # after Ctrl-C, what was done before counts
        new = [file for _, file in done if file.pixels is not None]
        if thumbnails is not None:  # before the arrays: a photo whose array is found is not decoded again
            longest = max((len(file.thumbnail) for file in new), default=0)
            thumbnails.put([(file.digest, file.thumbnail.ljust(longest, b"\0")) for file in new])
        cache.put([(file.digest, file.value) for file in new])
    read = [(path, file) for path, file in done if file.value]
    values = bytearray().join(file.value for _, file in read)
    return EncodedPhotos(
        np.frombuffer(values, encoder.dtype).reshape(len(read), *encoder.shape),
        [path for path, _ in read],
        [file.digest for _, file in read],
        [Skipped(path, file.reason) for path, file in done if file.reason],
        len(new),
    )


def _read(path: Path, encoder: Encoder, cache: PhotoCache, with_thumbnail: bool) -> _File:
    """Read one file: its digest, and its pixels where the cache does not have its array."""
    try:
        with open_file(path) as file:
            digest = file_digest(file, "sha256").digest()
            value = cache.get(digest)
            if value is not None:
                return _File(digest=digest, value=value)
            file.seek(0)
            photo = read_photo(file, encoder.cut, preview=with_thumbnail)
    except (UnreadableError, OSError) as error:
        return _File(reason=reason_of(error))
    return _File(digest=digest, pixels=photo.pixels, thumbnail=thumbnail(photo.preview) if photo.preview else b"")


def _encoded(files: list[_File], encoder: Encoder) -> list[_File]:
    """The same files with arrays of those that have only pixels."""
    pixels = [file.pixels for file in files if file.pixels is not None]
    if not pixels:
        return files
    arrays = iter(encoder.encode(np.stack(pixels)))
    return [file if file.pixels is None else replace(file, value=next(arrays).tobytes()) for file in files]


def _shards_of(files: Iterator[_File]) -> Iterator[list[_File]]:
    """As many files at a time as a shard has: a GPU waits less for each photo."""
    while some := list(islice(files, SHARD)):
        yield some


def _in_parallel(work: Callable[[Piece], Done], pieces: Iterable[Piece]) -> Iterator[Done]:
    """Work on pieces in threads, results in order; Pillow and ONNX Runtime release the interpreter's lock.

    Threads with a batch each take half the processor time of threads that work on one batch together, because they
    do not wait for each other.
    """
    threads = min(_cores(), MOST_THREADS)
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[Done]] = deque()
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
    """Cores that this process may use, beside the other processes that torchrun or Ray started on the machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if "LOCAL_WORLD_SIZE" in os.environ:  # torchrun; it also sets OMP_NUM_THREADS to 1, whatever there is
        return max(1, cores // int(os.environ["LOCAL_WORLD_SIZE"]))
    chosen = os.environ.get("OMP_NUM_THREADS", "")  # Ray sets it to what a task asked for
    return min(cores, int(chosen)) if chosen.isdecimal() and int(chosen) else cores
