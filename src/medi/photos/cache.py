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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from errno import EIO
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

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

Bytes = NDArray[np.uint8]


def cache_folder() -> Path:
    """Where the cache lies: `$MEDI_CACHE`, or in the user's cache folder; it may be deleted at any time."""
    if chosen := os.environ.get("MEDI_CACHE"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path  # only asked when the environment is silent

    return user_cache_path("medi") / "features"


class PhotoCache:
    """Bytes by digest, on disk; may be read from several threads. What other processes add later is not seen.

    The name is that of its folder: an encoder's identity, or `THUMBNAILS`. Where it cannot be used, that is said once.
    """

    def __init__(self, name: str, reporter: Reporter, folder: Path | None = None) -> None:
        self.path = (folder or cache_folder()) / name
        self._reporter = reporter
        self._usable = True
        self._places: dict[bytes, tuple[Path, int]] = {}  # the shard of each digest, and its row there
        self._shard = lru_cache(maxsize=4)(_shard)  # threads that read photos side by side are that far apart
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for path in self.path.glob(f"*{SUFFIX}"):
                self._add(path, _digests(path))
            for path in self.path.glob(f".*{SUFFIX}.*.tmp"):
                with suppress(FileNotFoundError):  # its process has just finished it
                    if time.time() - path.stat().st_mtime > STALE_SECONDS:
                        _remove(path)
        except OSError as error:
            self._give_up(error)

    def get(self, digest: bytes) -> bytes | None:
        """The value of a digest, None where there is none, or it is damaged."""
        if digest not in self._places:
            return None
        path, row = self._places[digest]
        try:
            shard = self._shard(path)
        except OSError:  # somebody emptied the cache, or the disk is gone
            return None
        return shard["values"][row].tobytes() if shard["digests"][row].tobytes() == digest else None

    def put(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep pairs of digest and value, all values of one length, as one shard."""
        if not rows or not self._usable:
            return
        if {(len(digest), len(value)) for digest, value in rows} != {(DIGEST_BYTES, len(rows[0][1]))}:
            raise ValueError(f"a shard needs digests of {DIGEST_BYTES} bytes and values of one length")
        digests, values = (
            np.frombuffer(b"".join(column), np.uint8).reshape(len(rows), -1) for column in zip(*rows, strict=True)
        )
        content = save({"digests": digests, "values": values})
        path = self.path / _name(content)
        try:
            write_atomically(path, content)
        except InputError as error:
            self._give_up(error.__cause__ or error)
        else:
            self._add(path, (digest for digest, _ in rows))

    def _add(self, path: Path, digests: Iterable[bytes]) -> None:
        self._places |= {digest: (path, row) for row, digest in enumerate(digests)}

    def _give_up(self, error: BaseException) -> None:
        """Stop writing; everything is then computed anew each time."""
        self._usable = False
        self._reporter.say(f"Features are not kept for next time: {self.path} cannot be used ({error}).")


def _shard(path: Path) -> Mapping[str, Bytes]:
    """The arrays of a shard; a damaged one is removed, because its values can be computed again, and an OSError."""
    content = read_file(path)
    if _name(content) != path.name:
        _remove(path)
        raise OSError(EIO, "damaged", str(path))
    return load(content)


def _name(content: bytes) -> str:
    """What a shard is called, by which damage shows."""
    return f"{sha256(content).hexdigest()[:32]}{SUFFIX}"


def _digests(path: Path) -> list[bytes]:
    """The digests in a shard; none of one that is plainly damaged, or of an earlier version, which is removed."""
    if system.is_file(path.stat()):
        with suppress(SafetensorError), safe_open(path, "numpy") as shard:
            digests: Bytes = shard.get_tensor("digests")
            if digests.dtype == np.uint8 and digests.shape[1:] == (DIGEST_BYTES,):
                return [digest.tobytes() for digest in digests]
    _remove(path)
    return []


def _remove(path: Path) -> None:
    with suppress(OSError):  # where it may not be removed, it is found damaged again next time
        path.unlink()
