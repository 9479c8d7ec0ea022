"""What was made of photos before, features and thumbnails, found by the content of the file.

Each encoder has a folder in the user's cache folder, and so have the thumbnails. In it is one file for each shard of
photos. A shard is written whole or not at all, never changed, and checked when it is read. So a killed process leaves
nothing half-written, and any number of processes and machines may share the folder, also on a network disk, without
waiting for each other. Where the cache cannot be used, the work is done without it.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from zlib import crc32

import numpy as np

from medi.errors import InputError
from medi.runtime.files import write_atomically
from medi.runtime.progress import Reporter

THUMBNAILS = "thumbnails-1"
"""Name of the cache of thumbnails; the number changes whenever they would."""
DIGEST = 32
"""Bytes of a digest: SHA-256."""
SUFFIX = ".shard"
STALE_SECONDS = 3600.0
"""Age at which a temporary file is taken for that of a killed process: a shard is written in a moment."""

# A shard: this head, the digests, a CRC-32 of each value, the values. The head's digest covers all but the values.
_HEAD = struct.Struct("<16sQQ32s")
_MAGIC = b"medi-features-1\n"
_CHECK = struct.Struct("<I")


def cache_folder() -> Path:
    """Where the cache lies: `$MEDI_CACHE`, or in the user's cache folder; it may be deleted at any time."""
    if chosen := os.environ.get("MEDI_CACHE"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path  # only asked when the environment is silent

    return user_cache_path("medi") / "features"


class PhotoCache:
    """Bytes by digest, on disk; may be read from several threads."""

    def __init__(self, name: str, reporter: Reporter, folder: Path | None = None) -> None:
        """Open the cache; what other processes add later is not seen.

        Args:
            name: Of its folder: an encoder's identity, or `THUMBNAILS`.
            reporter: Told once where the cache cannot be used.
            folder: Where it lies; None for `cache_folder()`.
        """
        self.path = (folder or cache_folder()) / name
        self._reporter = reporter
        self._writing = Lock()
        self._usable = True
        self._shards: list[Path] = []
        # First 8 bytes of every digest, sorted, the shard it is in and its row there: 16 bytes a photo.
        self._index = np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int32)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._add((path, _digests(path)) for path in sorted(self.path.glob(f"*{SUFFIX}")))
        except OSError as error:
            self._give_up(error)
        self._clear_leftovers()

    def get(self, digest: bytes) -> bytes | None:
        """The value of a digest, None where there is none."""
        keys, shards, rows = self._index
        key = np.frombuffer(digest[:8], np.uint64)[0]
        place = int(np.searchsorted(keys, key))
        if place == len(keys) or keys[place] != key:
            return None
        shard = int(shards[place])
        try:
            return _value(self._shards[shard], int(rows[place]), digest)
        except OSError:
            return None  # somebody emptied the cache, or the disk is out of reach
        except _DamagedError:
            self._forget(shard)
            return None

    def put(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep pairs of digest and value, all values of one length, as one shard."""
        if not rows or not self._usable:
            return
        digests, values = (b"".join(column) for column in zip(*rows, strict=True))
        width = len(values) // len(rows)
        if len(digests) != DIGEST * len(rows) or any(len(value) != width for _, value in rows):
            raise ValueError(f"a shard needs digests of {DIGEST} bytes and values of one length")
        checks = b"".join(_CHECK.pack(crc32(value)) for _, value in rows)
        path = self.path / f"{sha256(digests).hexdigest()[:32]}{SUFFIX}"
        head = _HEAD.pack(_MAGIC, len(rows), width, _checksum(len(rows), width, digests + checks))
        try:
            write_atomically(path, head + digests + checks + values)
        except InputError as error:
            self._give_up(error.__cause__ or error)
        else:
            self._add([(path, digests)])

    def _add(self, shards: Iterable[tuple[Path, bytes | None]]) -> None:
        """Add shards to the index; a damaged one is removed, because its values can be computed again."""
        with self._writing:
            columns = [self._index]
            for path, digests in shards:
                if digests is None:
                    _remove(path)
                    continue
                keys = np.frombuffer(digests, np.uint64)[:: DIGEST // 8]
                rows = np.arange(len(keys), dtype=np.int32)
                columns.append((keys, np.full(len(keys), len(self._shards), np.int32), rows))
                self._shards.append(path)
            keys, numbers, rows = (np.concatenate(column) for column in zip(*columns, strict=True))
            order = np.argsort(keys, kind="stable")
            self._index = keys[order], numbers[order], rows[order]  # one assignment: other threads are reading

    def _forget(self, shard: int) -> None:
        """Drop a damaged shard."""
        with self._writing:
            keys, numbers, rows = self._index
            keep = numbers != shard
            self._index = keys[keep], numbers[keep], rows[keep]
        _remove(self._shards[shard])

    def _clear_leftovers(self) -> None:
        """Remove temporary files of killed processes, but none that is being written now."""
        for path in self.path.glob(f".*{SUFFIX}.*.tmp"):
            with suppress(FileNotFoundError):  # its process has just finished it
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    _remove(path)

    def _give_up(self, error: BaseException) -> None:
        """Stop writing; everything is then computed anew each time."""
        self._usable = False
        self._reporter.say(f"Features are not kept for next time: {self.path} cannot be used ({error}).")


class _DamagedError(Exception):
    """A shard does not hold what was written."""


def _digests(path: Path) -> bytes | None:
    """The digests in a shard, None where it is damaged."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_HEAD.size)
        if len(head) != _HEAD.size:
            return None
        magic, count, width, checksum = _HEAD.unpack(head)
        if magic != _MAGIC or size != _HEAD.size + count * (DIGEST + _CHECK.size + width):
            return None
        body = file.read(count * (DIGEST + _CHECK.size))
    return body[: count * DIGEST] if _checksum(count, width, body) == checksum else None


def _value(path: Path, row: int, digest: bytes) -> bytes:
    """The value in a row of a shard; it must be that of the digest."""
    try:
        with path.open("rb") as file:
            _, count, width, _ = _HEAD.unpack(file.read(_HEAD.size))
            file.seek(_HEAD.size + row * DIGEST)
            same = file.read(DIGEST) == digest
            file.seek(_HEAD.size + count * DIGEST + row * _CHECK.size)
            (check,) = _CHECK.unpack(file.read(_CHECK.size))
            file.seek(_HEAD.size + count * (DIGEST + _CHECK.size) + row * width)
            value = file.read(width)
    except struct.error as error:
        raise _DamagedError from error
    if not same or crc32(value) != check:
        raise _DamagedError
    return value


def _checksum(count: int, width: int, body: bytes) -> bytes:
    return sha256(struct.pack("<QQ", count, width) + body).digest()


def _remove(path: Path) -> None:
    with suppress(OSError):  # where it may not be removed, it is found damaged again next time
        path.unlink()
