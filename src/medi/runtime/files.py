"""Files that are never half-read: atomic writes, and journals of one JSON object a line."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from errno import EACCES, EAGAIN, ENOSPC
from pathlib import Path
from typing import Any, BinaryIO

from medi.errors import InputError
from medi.runtime import system


@contextmanager
def input_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn what the operating system says of a path into one line with a cure."""
    try:
        yield
    except BrokenPipeError:  # of the terminal, where progress is shown: no fault of the path
        raise
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"cannot {doing} {path}: a file is in the way; choose another folder.") from error
    except PermissionError as error:
        raise InputError(f"cannot {doing} {path}: no permission; choose a folder you may write to.") from error
    except OSError as error:
        if system.too_long(path):
            raise InputError(
                f"cannot {doing} {path}: the path has {len(str(path.absolute()))} characters; choose a folder with a "
                "shorter path, or allow long paths in Windows."
            ) from error
        reason = (error.strerror or str(error)).lower()
        cure = "free some space or choose another folder" if error.errno == ENOSPC else "choose another folder"
        raise InputError(f"cannot {doing} {path}: {reason}; {cure}.") from error


def make_folder(path: Path) -> Path:
    """Create a folder (and its parents) or say why it cannot be had."""
    with input_errors(path, "create the folder"):
        path.mkdir(parents=True, exist_ok=True)
    return path


LOCK = ".lock"
LOCK_SECONDS = 0.2
"""Time between two looks at a lock that another process holds."""


@contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Hold a folder for this process alone; another one that wants it is refused.

    The operating system frees it with the process, however that ends, so a leftover lock file means nothing.
    """
    with input_errors(folder, "write"):
        file = (folder / LOCK).open("a+b")
    with file, ExitStack() as held:
        try:
            held.enter_context(system.locked(file))
        except OSError as error:
            raise InputError(
                f"{folder} is in use by another medi process: wait for it, or choose another folder."
            ) from error
        yield


@contextmanager
def waiting_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file, waiting for a process that holds it; `on_wait` is called once if there is one.

    The file stays: taking it away would let a third process lock a new one while the second still waits for the old.
    """
    with input_errors(path, "write"):
        file = path.open("a+b")
    with file, ExitStack() as held:
        waited = False
        while True:
            try:
                held.enter_context(system.locked(file))
                break
            except OSError as error:
                if error.errno not in (EACCES, EAGAIN):
                    with input_errors(path, "lock"):
                        raise
            if not waited:
                on_wait()
                waited = True
            time.sleep(LOCK_SECONDS)
        yield


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
        if not path.exists():
            return []
        content = path.read_bytes()
    *lines, rest = content.split(b"\n")
    rows = []
    for number, line in enumerate([*lines, rest], 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("not an object")
        except ValueError as error:
            if number == len(lines) + 1:
                break
            raise InputError(f"{path} line {number} is not a JSON object: mend or delete that line.") from error
        rows.append(row)
    return rows


def append_to_journal(path: Path, row: Mapping[str, Any]) -> None:
    """Add one object as a line that is on the disk when this returns.

    What a killed process left of a line is cut off first; a whole last line that only lacks its newline is kept.
    """
    try:
        line = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:  # names that are no Unicode, as file names may be
        line = (json.dumps(row, allow_nan=False) + "\n").encode()
    with input_errors(path, "write"), path.open("a+b") as file:
        _mend_last_line(file)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def _mend_last_line(file: Any) -> None:
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
        json.loads(content[start:])
    except ValueError:
        file.truncate(start)
    else:
        file.write(b"\n")
