"""Features of photos that were read before, by the content of the file and the encoder.

One SQLite file an encoder in the user's cache folder: a killed process leaves nothing half-written, and several
programs may read and write at once. It is a convenience: where it cannot be had, the work is done without it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from medi.progress import Reporter

WAIT_SECONDS = 30.0
"""How long another program's writing is waited for."""


def cache_folder() -> Path:
    """Where features are kept: `$MEDI_CACHE`, or the user's cache folder; all in it may be deleted at any time."""
    if chosen := os.environ.get("MEDI_CACHE"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path  # only asked when the environment is silent

    return user_cache_path("medi") / "features"


class FeatureCache:
    """Bytes by digest, on disk; may be read from several threads."""

    def __init__(self, encoder: str, reporter: Reporter, folder: Path | None = None) -> None:
        """Open the cache of an encoder.

        Args:
            encoder: Its identity, fit to be a file's name.
            reporter: Told once where the cache cannot be used.
            folder: Where it lies; None for the user's cache folder.
        """
        self.path = (folder or cache_folder()) / f"{encoder}.sqlite"
        self._reporter = reporter
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = self._open()
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def get(self, digest: bytes) -> bytes | None:
        """What was put under a digest, None where nothing was."""
        with self._lock:
            if self._connection is None:
                return None
            try:
                row = self._connection.execute("SELECT value FROM features WHERE digest = ?", (digest,)).fetchone()
            except sqlite3.Error as error:
                self._give_up(error)
                return None
        return None if row is None else bytes(row[0])

    def put(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep pairs of digest and value: all of them or, if the process dies meanwhile, none."""
        with self._lock:
            if self._connection is None:
                return
            try:
                with self._connection:
                    self._connection.executemany("INSERT OR IGNORE INTO features VALUES (?, ?)", rows)
            except sqlite3.Error as error:
                self._give_up(error)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.OperationalError:
            raise  # no permission, no space, locked: nothing is wrong with the file
        except sqlite3.DatabaseError:
            # Not a database, or a damaged one: features can be computed again.
            self.path.unlink()
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=WAIT_SECONDS, check_same_thread=False)
        try:
            connection.execute("CREATE TABLE IF NOT EXISTS features (digest BLOB PRIMARY KEY, value BLOB NOT NULL)")
            connection.commit()
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _give_up(self, error: Exception) -> None:
        """Go on without: features are then computed anew each time."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._reporter.say(f"Features are not kept for next time: {self.path} cannot be used ({error}).")
