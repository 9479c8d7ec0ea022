"""What was made of photos before, features and thumbnails, found by the content of the file.

Each encoder has a folder in the user's cache folder, and so have the thumbnails. In it is one file for each shard of
photos: safetensors, named by its own checksum. A shard is written whole or not at all, never changed, and checked when
it is read. So a killed process leaves nothing half-written, and any number of processes and machines may share the
folder, also on a network disk, without waiting for each other. Where the cache cannot be used, the work is done
without it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

from medi.core import system
from medi.core.errors import InputError
from medi.core.files import write_atomically
from medi.core.progress import Reporter
from medi.core.reading import read_file

THUMBNAILS = "thumbnails-1"
"""Name of the cache of thumbnails; the number changes whenever they would."""
DIGEST_BYTES = 32
"""Bytes of a digest: SHA-256."""
SUFFIX = ".shard"
STALE_SECONDS = 3600.0
"""Age at which a temporary file is taken for that of a killed process: a shard is written in a moment."""
LOADED = 4
"""Shards that are held in memory: threads that read photos side by side are that far apart."""

Bytes = NDArray[np.uint8]


class _Shard(NamedTuple):
    """The arrays of a shard: digests (n, DIGEST_BYTES), and values (n, width)."""

    digests: Bytes
    values: Bytes


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
        self._lock = Lock()
        self._usable = True
        self._shards: list[Path] = []
        self._loaded: dict[int, _Shard] = {}
        # First 8 bytes of every digest, sorted, the shard it is in and its row there: 16 bytes a photo.
        self._index = np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int32)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._add((path, _digests(path)) for path in sorted(self.path.glob(f"*{SUFFIX}")))
            self._clear_leftovers()
        except OSError as error:
            self._give_up(error)

    def get(self, digest: bytes) -> bytes | None:
        """The value of a digest, None where there is none."""
        keys, shards, rows = self._index
        key = np.frombuffer(digest[:8], np.uint64)[0]
        place = int(np.searchsorted(keys, key))
        if place == len(keys) or keys[place] != key:
            return None
        shard = self._load(int(shards[place]))
        row = int(rows[place])
        return shard.values[row].tobytes() if shard and shard.digests[row].tobytes() == digest else None

    def put(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep pairs of digest and value, all values of one length, as one shard."""
        if not rows or not self._usable:
            return
        if {(len(digest), len(value)) for digest, value in rows} != {(DIGEST_BYTES, len(rows[0][1]))}:
            raise ValueError(f"a shard needs digests of {DIGEST_BYTES} bytes and values of one length")
        columns = (np.frombuffer(b"".join(column), np.uint8) for column in zip(*rows, strict=True))
        shard = _Shard(*(column.reshape(len(rows), -1) for column in columns))
        content = save(shard._asdict())
        path = self.path / _name(content)
        try:
            write_atomically(path, content)
        except InputError as error:
            self._give_up(error.__cause__ or error)
        else:
            self._add([(path, shard.digests)])

    def _add(self, shards: Iterable[tuple[Path, Bytes | None]]) -> None:
        """Add shards to the index; a damaged one is removed, because its values can be computed again."""
        with self._lock:
            columns = [self._index]
            for path, digests in shards:
                if digests is None:
                    _remove(path)
                    continue
                keys = np.frombuffer(digests, np.uint64)[:: DIGEST_BYTES // 8]
                rows = np.arange(len(keys), dtype=np.int32)
                columns.append((keys, np.full(len(keys), len(self._shards), np.int32), rows))
                self._shards.append(path)
            keys, numbers, rows = (np.concatenate(column) for column in zip(*columns, strict=True))
            order = np.argsort(keys, kind="stable")
            self._index = keys[order], numbers[order], rows[order]  # one assignment: other threads are reading

    def _load(self, number: int) -> _Shard | None:
        """A shard; None for one that is damaged, which is dropped, or out of reach."""
        with self._lock:
            if number in self._loaded:
                return self._loaded[number]
            path = self._shards[number]
            try:
                content = read_file(path)
            except OSError:  # somebody emptied the cache, or the disk is gone
                return None
            if _name(content) != path.name:
                keys, numbers, rows = self._index
                keep = numbers != number
                self._index = keys[keep], numbers[keep], rows[keep]
                _remove(path)
                return None
            if len(self._loaded) == LOADED:
                del self._loaded[next(iter(self._loaded))]
            self._loaded[number] = _Shard(**load(content))
            return self._loaded[number]

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


def _name(content: bytes) -> str:
    """What a shard is called, by which damage shows."""
    return f"{sha256(content).hexdigest()[:32]}{SUFFIX}"


def _digests(path: Path) -> Bytes | None:
    """The digests in a shard, None where it is plainly damaged, or of an earlier version."""
    if not system.is_file(path.stat()):
        return None
    with suppress(SafetensorError), safe_open(path, "numpy") as shard:
        digests: Bytes = shard.get_tensor("digests")
        return digests if digests.dtype == np.uint8 and digests.shape[1:] == (DIGEST_BYTES,) else None
    return None


def _remove(path: Path) -> None:
    with suppress(OSError):  # where it may not be removed, it is found damaged again next time
        path.unlink()
