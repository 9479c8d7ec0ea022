"""Files that are never half-read: locks of folders, atomic writes, and journals of one JSON object a line."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from errno import EACCES, EAGAIN
from pathlib import Path
from typing import Any, BinaryIO

from medi.core import system
from medi.core.errors import InputError
from medi.core.reading import input_errors, open_file, parse, read_file


def make_folder(path: Path) -> Path:
    """Create a folder (and its parents) or say why it cannot be had."""
    with input_errors(path, "create the folder"):
        path.mkdir(parents=True, exist_ok=True)
    return path


LOCK = ".lock"
LOCK_SECONDS = 0.2
"""Time between two looks at a lock that another process holds."""
_HELD = (EACCES, EAGAIN)


class InUseError(InputError):
    """Another process holds a folder."""


@contextmanager
def only_process(folder: Path, command: str = "medi") -> Iterator[None]:
    """Hold a folder for this process alone; another one that wants it is told which command holds it.

    The operating system frees it with the process, however that ends, so a leftover lock file means nothing.
    """
    path = folder / LOCK
    with input_errors(path, "write"):
        file = open_file(path, "a+b")
    with file, ExitStack() as held:
        if not _taken(held, file, path) or not _is_at(file, path):
            file.seek(0)
            holder = file.read(200).decode(errors="replace").strip() or "medi"
            raise InUseError(
                f"{folder} is in use by another medi process ({holder}): stop it, wait for it, or choose another "
                "folder."
            )
        with suppress(OSError):  # on a full disk nobody is told who holds it
            file.truncate(0)
            file.write(f"{command}, process {os.getpid()}".encode())
            file.flush()
        try:
            yield
        finally:
            with suppress(OSError):  # Windows keeps what is open
                path.unlink()


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Whether an open file still has its name: the process that held it may just have taken it away."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def waiting_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file, waiting for a process that holds it; `on_wait` is called once if there is one.

    The file stays: taking it away would let a third process lock a new one while the second still waits for the old.
    """
    with input_errors(path, "write"):
        file = open_file(path, "a+b")
    with file, ExitStack() as held:
        if not _taken(held, file, path):
            on_wait()
            while not _taken(held, file, path):
                time.sleep(LOCK_SECONDS)
        yield


def _taken(held: ExitStack, file: BinaryIO, path: Path) -> bool:
    """Whether the lock on an open file is ours from now on, until `held` ends; else another process has it."""
    try:
        held.enter_context(system.locked(file))
    except OSError as error:
        if error.errno in _HELD:
            return False
        with input_errors(path, "lock"):
            raise
    return True


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, whatever happens in between."""
    with written_atomically(path) as file:
        file.write(content)


@contextmanager
def written_atomically(path: Path) -> Iterator[BinaryIO]:
    """Write a file bit by bit; a reader sees the old content or, if all went well, the new.

    The bytes go to a temporary name beside the target, reach the disk, and only then take its name.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with input_errors(path, "write"):
        try:
            with temporary.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            system.rename(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        system.sync_folder(path.parent)


def remove_leftovers(folder: Path, stem: str) -> None:
    """Drop what killed processes left of files `stem.*` that they were writing; call it where nobody writes them."""
    with input_errors(folder, "clean"):
        for leftover in folder.glob(f".{stem}.*.tmp"):
            leftover.unlink(missing_ok=True)


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The objects of a journal; a last line cut short by a killed process is left out.

    A broken line anywhere else is damage no crash of ours explains, and an error.
    """
    with input_errors(path, "read"):
        try:
            content = read_file(path)
        except FileNotFoundError:
            return []
    *lines, rest = content.split(b"\n")
    rows = []
    for number, line in enumerate([*lines, rest], 1):
        if not line.strip():
            continue
        try:
            row = parse(line)
            if not isinstance(row, dict):
                raise ValueError("not an object")
        except ValueError as error:
            if number == len(lines) + 1:
                break
            raise InputError(f"{path} line {number} is not a JSON object: mend or delete that line.") from error
        rows.append(row)
    return rows


def append_to_journal(path: Path, row: Mapping[str, Any]) -> None:
    """Add one object as a line that is on the disk when this returns; where it fails, the journal is as it was.

    What a killed process left of a line is cut off first; a whole last line that only lacks its newline is kept.
    """
    with input_errors(path, "write"), open_file(path, "a+b", buffering=0) as file:
        _append(file, row)


class ExchangedError(InputError):
    """A file that only this process should change was changed, exchanged or deleted."""


class Journal:
    """A journal that only this process may change: it notices when somebody else did.

    The file may be missing as long as nothing is in it.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, read_journal(path)
        self._seen = _fingerprint(path.stat()) if path.exists() else None

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one object as a line that is on the disk, in the file of that name, when this returns."""
        self.check()
        with input_errors(self.path, "write"):
            with open_file(self.path, "a+b", buffering=0) as file:
                ours = self._seen is None or _fingerprint(os.fstat(file.fileno())) == self._seen
                line = _append(file, row) if ours else b""
                written = _fingerprint(os.fstat(file.fileno()))
            ours = ours and self.path.exists() and _fingerprint(self.path.stat()) == written
        if not ours:
            raise self._exchanged()
        self._seen = written
        self.rows.append(parse(line))

    def check(self) -> None:
        """Refuse a file that another program deleted, changed or exchanged; what it held is kept beside it."""
        if not self.unchanged():
            raise self._exchanged()

    def _exchanged(self) -> ExchangedError:
        kept = self.path.with_name(f"{self.path.stem}-kept{self.path.suffix}")
        write_atomically(kept, b"".join((json.dumps(row) + "\n").encode() for row in self.rows))
        return ExchangedError(
            f"{self.path} was deleted or changed by another program: what it held is in {kept}. Rename that to go on "
            "with it, or start again without."
        )

    def unchanged(self) -> bool:
        """Whether the file holds what this process knows of."""
        try:
            now = _fingerprint(self.path.stat())
        except FileNotFoundError:
            return self._seen is None
        if now != self._seen:
            with suppress(InputError):
                if read_journal(self.path) == self.rows:
                    self._seen = now
        return now == self._seen


def _fingerprint(state: os.stat_result) -> tuple[int, ...]:
    """What differs once a file was written or exchanged."""
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def _append(file: BinaryIO, row: Mapping[str, Any]) -> bytes:
    """Write a line to an open journal and to the disk; where that fails, none of it stays."""
    try:
        line = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:  # names that are no Unicode, as file names may be
        line = (json.dumps(row, allow_nan=False) + "\n").encode()
    _mend_last_line(file)
    end, rest = file.seek(0, os.SEEK_END), memoryview(line)
    try:
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            file.truncate(end)
        raise
    return line


def _mend_last_line(file: BinaryIO) -> None:
    """End the last line of an open journal, or cut it off where it is not a whole object."""
    end = file.seek(0, os.SEEK_END)
    if end == 0:
        return
    file.seek(end - 1)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    content = file.read()
    start = content.rfind(b"\n") + 1
    try:
        parse(content[start:])
    except ValueError:
        file.truncate(start)
    else:
        file.write(b"\n")
