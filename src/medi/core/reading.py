"""Files that other people made: opened without waiting for ever, parsed without crashing, refused in one line.

Whatever the package reads, it reads from here. What the operating system refuses becomes one line in one place:
`refusal`, which the command line asks about every such error, whoever forgot it.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from medi.core import system
from medi.core.errors import InputError, reason_of

DEEPEST = 50
"""How deeply JSON may be nested."""
_REASONS = {errno.EACCES: "no permission"} | dict.fromkeys((errno.EEXIST, errno.ENOTDIR), "a file is in the way")
"""In other words than the system's."""
_CURES = {
    errno.ENOENT: "check its name",
    errno.EACCES: "get the right to, or choose another place",
    errno.EPERM: "get the right to, or choose another place",
    errno.EISDIR: "give a file",
    errno.ELOOP: "mend the links",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOSPC: "free some space or choose another folder",
    errno.EDQUOT: "free some space or choose another folder",
    errno.EMFILE: "raise the limit (ulimit -n)",
}


def refusal(error: OSError, doing: str = "", path: Path | None = None) -> InputError:
    """What the operating system says, as one line with the culprit and the cure."""
    if path is None and isinstance(error.filename, str | bytes):
        path = Path(os.fsdecode(error.filename))
    culprit = f"{doing or 'use'} {path}" if path is not None else doing or "go on"
    reason = _REASONS.get(error.errno or 0) or reason_of(error)
    cure = _CURES.get(error.errno or 0, "choose another place")
    if path is not None and system.too_long(path):
        reason = f"the path has {len(str(path.absolute()))} characters"
        cure = "choose a folder with a shorter path, or allow long paths in Windows"
    return InputError(f"cannot {culprit}: {reason}; {cure}.")


@contextmanager
def input_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn what the operating system says of a path into one line with a cure."""
    try:
        yield
    except BrokenPipeError:  # of the terminal, where progress is shown: no fault of the path
        raise
    except OSError as error:
        raise refusal(error, doing, path) from error


def open_file(path: Path, mode: str = "rb", buffering: int = -1) -> BufferedReader:
    """Open a file of a disk. A pipe, a device or a socket, which could keep us waiting for ever, is an OSError."""
    return cast(BufferedReader, open(path, mode, buffering, opener=_opener))


def _opener(path: str, flags: int) -> int:
    try:
        handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
            raise _no_file(path) from error
        raise
    state = os.fstat(handle)
    if system.is_file(state) or stat.S_ISDIR(state.st_mode):  # of a folder, `open` says it
        return handle
    os.close(handle)
    raise _no_file(path)


def _no_file(path: str) -> OSError:
    return OSError(errno.EINVAL, "not a regular file", path)


def read_file(path: Path) -> bytes:
    """The content of a file of a disk."""
    with open_file(path) as file:
        return file.read()


def parse(content: bytes | str) -> Any:
    """What some JSON says; ValueError where it is none, or nested more deeply than anything of ours."""
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
    if level:
        raise ValueError("it is nested too deeply")
    return value


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
