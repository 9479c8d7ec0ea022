"""Turn the photos of a folder into arrays: decoded in parallel, encoded in batches, cached shard by shard.

A shard is what is cached at a time. A restart finds finished shards, and processes that work together take them in
turn. Only a few shards are in memory at once.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from hashlib import file_digest
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from medi.photos.cache import PhotoCache
from medi.photos.decode import Cut, UnreadableError, decoding, read_photo
from medi.photos.encoders import Encoder
from medi.photos.folders import Skipped
from medi.photos.thumbnails import thumbnail
from medi.runtime.devices import tensor_float32
from medi.runtime.progress import Reporter

BATCH = 8
"""Photos that a thread decodes and encodes at a time: more take more memory and no less time."""
SHARD = 128
"""Photos cached at a time, whole batches: what a killed process has to do again at most."""
MOST_THREADS = 16

S = TypeVar("S")
T = TypeVar("T")


@dataclass
class EncodedPhotos:
    """What became of a list of files; `paths`, `digests` and the rows of `arrays` belong together.

    Attributes:
        arrays: (n, *shape of the encoder).
        paths: Of the photos that could be read.
        digests: Of their contents.
        skipped: The files that could not be read.
        computed: How many of the arrays were not in the cache.
    """

    arrays: Tensor
    paths: list[str] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    computed: int = 0


@dataclass(frozen=True)
class _File:
    """One file on its way to an array: either `reason` says why it is skipped, or the other fields are set.

    Attributes:
        reason: Why it is skipped.
        digest: Of its content.
        pixels: (3, side, side), where the array is not in the cache.
        thumbnail: JPEG, made of pixels where thumbnails are asked for.
        value: Bytes of the array, once it is there.
    """

    reason: str = ""
    digest: bytes = b""
    pixels: npt.NDArray[np.uint8] | None = None
    thumbnail: bytes = b""
    value: bytes | None = None


def read_photos(
    root: Path,
    paths: Sequence[str],
    encoder: Encoder,
    cache: PhotoCache,
    reporter: Reporter,
    *,
    title: str = "reading photos",
    thumbnails: PhotoCache | None = None,
) -> EncodedPhotos:
    """Encode the photos of a folder, in the order given; files that cannot be read are listed with the reason.

    Args:
        root: The folder.
        paths: Files, relative to it.
        encoder: What makes arrays of them.
        cache: Where arrays are looked for and kept.
        reporter: Shows progress.
        title: Of the progress.
        thumbnails: Where to keep a thumbnail of every photo that is decoded; None to make none.
    """
    whole = EncodedPhotos(torch.empty(len(paths), *encoder.shape, dtype=encoder.dtype))
    for shard in read_shards(root, paths, encoder, cache, reporter, title=title, thumbnails=thumbnails):
        whole.arrays[len(whole.paths) : len(whole.paths) + len(shard.paths)] = shard.arrays
        whole.paths += shard.paths
        whole.digests += shard.digests
        whole.skipped += shard.skipped
        whole.computed += shard.computed
    whole.arrays = whole.arrays[: len(whole.paths)]
    return whole


def read_shards(
    root: Path,
    paths: Sequence[str],
    encoder: Encoder,
    cache: PhotoCache,
    reporter: Reporter,
    *,
    title: str = "reading photos",
    thumbnails: PhotoCache | None = None,
) -> Iterator[EncodedPhotos]:
    """The same, a shard at a time; each is in the cache when it is yielded."""

    def batch(names: Sequence[str]) -> list[_File]:
        files = [_read(root / name, encoder, cache, thumbnails is not None) for name in names]
        return _encoded(files, encoder) if encoder.in_threads else files

    # Features on a GPU are those of a CPU, which the cache takes them for: in bfloat16 and TF32 they are 1e-3 apart.
    exact = nullcontext() if encoder.in_threads else tensor_float32(False)
    with decoding(), exact, reporter.track(title, len(paths)) as tick:
        batches = _in_parallel(batch, (paths[start : start + BATCH] for start in range(0, len(paths), BATCH)))
        if not encoder.in_threads:
            batches = _encoded_together(batches, encoder)
        for start in range(0, len(paths), SHARD):
            names = paths[start : start + SHARD]
            yield _shard(names, batches, encoder, cache, thumbnails)
            tick(start + len(names))


def read_thumbnails(root: Path, paths: Sequence[str], digests: Sequence[bytes], cache: PhotoCache) -> list[bytes]:
    """A JPEG of each photo: from the cache, or else made now; empty for a photo that can no longer be read."""

    def read(photo: tuple[str, bytes]) -> bytes:
        name, digest = photo
        if (kept := cache.get(digest)) is not None:
            return kept.rstrip(b"\0")
        try:
            with (root / name).open("rb") as file:
                preview = read_photo(file, Cut(1), preview=True).preview  # the cut is not used
        except (UnreadableError, OSError):
            return b""
        return thumbnail(preview) if preview else b""

    with decoding():
        return list(_in_parallel(read, zip(paths, digests, strict=True)))


def _shard(
    names: Sequence[str],
    batches: Iterator[list[_File]],
    encoder: Encoder,
    cache: PhotoCache,
    thumbnails: PhotoCache | None,
) -> EncodedPhotos:
    """The next shard of the files, which come in batches."""
    photos = EncodedPhotos(torch.empty(len(names), *encoder.shape, dtype=encoder.dtype))
    arrays: list[tuple[bytes, bytes]] = []
    pictures: list[tuple[bytes, bytes]] = []
    try:
        for start in range(0, len(names), BATCH):
            for path, file in zip(names[start : start + BATCH], next(batches), strict=True):
                if file.value is None:
                    photos.skipped.append(Skipped(path, file.reason))
                    continue
                photos.arrays[len(photos.paths)] = _array(file.value, encoder)
                photos.paths.append(path)
                photos.digests.append(file.digest)
                if file.pixels is not None:
                    arrays.append((file.digest, file.value))
                if file.thumbnail:
                    pictures.append((file.digest, file.thumbnail))
    finally:  # on Ctrl-C too
        if thumbnails is not None:  # before the arrays: a photo whose array is found is not decoded again
            longest = max((len(jpeg) for _, jpeg in pictures), default=0)
            thumbnails.put([(digest, jpeg.ljust(longest, b"\0")) for digest, jpeg in pictures])
        cache.put(arrays)
    photos.computed = len(arrays)
    photos.arrays = photos.arrays[: len(photos.paths)]
    return photos


def _read(path: Path, encoder: Encoder, cache: PhotoCache, with_thumbnail: bool) -> _File:
    """Read one file: its digest, and its pixels where the cache does not have its array."""
    try:
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").digest()
            value = cache.get(digest)
            if value is not None:
                return _File(digest=digest, value=value)
            file.seek(0)
            photo = read_photo(file, encoder.cut, preview=with_thumbnail)
    except UnreadableError as error:
        return _File(reason=str(error))
    except OSError as error:
        return _File(reason=(error.strerror or str(error)).lower())
    return _File(digest=digest, pixels=photo.pixels, thumbnail=thumbnail(photo.preview) if photo.preview else b"")


def _encoded(files: list[_File], encoder: Encoder) -> list[_File]:
    """The same files with arrays of those that have only pixels."""
    pixels = [file.pixels for file in files if file.pixels is not None]
    if not pixels:
        return files
    arrays = iter(encoder.encode(torch.from_numpy(np.stack(pixels))))
    return [
        file if file.pixels is None else replace(file, value=next(arrays).contiguous().numpy().tobytes())
        for file in files
    ]


def _encoded_together(batches: Iterator[list[_File]], encoder: Encoder) -> Iterator[list[_File]]:
    """The same batches, encoded as many at a time as a shard has: a GPU waits less for each photo."""
    while some := list(islice(batches, SHARD // BATCH)):
        files = iter(_encoded(list(chain.from_iterable(some)), encoder))
        for batch in some:
            yield list(islice(files, len(batch)))


def _array(value: bytes, encoder: Encoder) -> Tensor:
    return torch.frombuffer(bytearray(value), dtype=encoder.dtype).view(encoder.shape)


def _in_parallel(work: Callable[[S], T], pieces: Iterable[S]) -> Iterator[T]:
    """Work on pieces in threads, results in order; Pillow and torch release the interpreter's lock.

    Threads with a batch each take half the processor time of threads that work on one batch together, because they
    do not wait for each other (benchmarks/discover.py).
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
    """Cores that this process may use, beside the other processes that torchrun or Ray started on the machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if "LOCAL_WORLD_SIZE" in os.environ:  # torchrun; it also sets OMP_NUM_THREADS to 1, whatever there is
        return max(1, cores // int(os.environ["LOCAL_WORLD_SIZE"]))
    chosen = os.environ.get("OMP_NUM_THREADS", "")  # Ray sets it to what a task asked for
    return min(cores, int(chosen)) if chosen.isdecimal() and int(chosen) else cores
