"""What differs between operating systems: locks, renames, processes, and what a file may be called.

Everything that asks which system this is stands here; the rest of the package is the same everywhere.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EEXIST
from functools import cache
from pathlib import Path, PurePath
from typing import BinaryIO

FILE_NAME_ERRORS = sys.getfilesystemencodeerrors()
"""How UTF-8 holds a file name that is no Unicode, so that it comes back as it is on disk."""
BUSY_SECONDS = 5.0
"""How long a rename on Windows waits for another program, a virus scanner perhaps, to close the file."""
BUSY_PAUSE = 0.05
WINDOWS_PATH = 260
"""Characters from which on Windows refuses a path, unless it was told to allow long ones."""
KEPT_MEMORY = 256 * 2**20
"""So many bytes of freed memory a process keeps for its next tensors."""
ALL_THREADS = "OMP_NUM_THREADS"
"""The variable by which a person says how many threads there are for everything, reading photos as well."""
ALGEBRA_THREADS = ("MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Those of torch and of linear algebra alone; libraries read them when they are loaded."""
_LOCKED_BYTE = 2**30
"""What Windows locks of a file: a byte beyond its end, so that others can still read who holds it."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_WINDOWS_FAILURE = 0xC0000000
"""Exit codes from here on are Windows' own: a process that crashed or was ended by the system."""
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[1-9¹²³])[ ]*([.:].*)?", re.IGNORECASE | re.DOTALL)


def keep_freed_memory() -> bool:
    """Let this process use freed memory again, where its C library is glibc; True where that was arranged.

    By itself glibc hands the memory of large tensors back to the system as soon as they are freed. The system then
    clears every page of the next one, which can take much of the time of a small training on a CPU.
    """
    if sys.platform == "linux":
        import ctypes

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        settings = (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD)
        return mallopt is not None and all(mallopt(setting, KEPT_MEMORY) for setting in settings)
    else:
        return False


def return_freed_memory() -> None:
    """Hand freed memory back to the system, where the C library is glibc, which keeps some for each thread."""
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def prefer_one_thread() -> None:
    """Let torch and linear algebra take one thread, where nobody says how many; to be called before they are loaded.

    Small networks and small products gain nothing from a second thread. On a busy machine they lose several times what
    they take by themselves, because the threads wait for each other at every one of many tiny operations.
    """
    if ALL_THREADS not in os.environ:
        for name in ALGEBRA_THREADS:
            os.environ.setdefault(name, "1")


@contextmanager
def locked(file: BinaryIO) -> Iterator[None]:
    """Hold an open file for this process alone; the system frees it with the process, however that ends.

    Raises:
        OSError: Another process holds it (EACCES or EAGAIN), or it cannot be locked.
    """
    if sys.platform == "win32":
        import msvcrt

        file.seek(_LOCKED_BYTE)  # the lock is on one byte from where the file stands
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        try:
            yield
        finally:
            file.seek(_LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def rename(source: Path, target: Path) -> None:
    """Give a file or a folder another name, in the place of a file that has it.

    Windows refuses that while somebody has a file open, for reading too; so it is tried for a while.
    """
    waiting_ends = time.monotonic() + (BUSY_SECONDS if sys.platform == "win32" else 0.0)
    while True:
        try:
            source.replace(target)
            return
        except PermissionError:
            if time.monotonic() >= waiting_ends:
                raise
        time.sleep(BUSY_PAUSE)


def rename_to_new(source: Path, target: Path) -> None:
    """Give a file another name, which no other file may have.

    Raises:
        FileExistsError: One has it.
    """
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if target.exists():
            raise FileExistsError(EEXIST, os.strerror(EEXIST), str(target)) from None
        rename(source, target)
    else:
        source.unlink()


def sync_folder(folder: Path) -> None:
    """Make a rename durable; Windows cannot open a folder, and then there is nothing to do."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def failed_by_itself(code: int) -> bool:
    """Whether a process that ended with some exit code did so itself; otherwise it was killed, or had no answer."""
    return 0 < code < _WINDOWS_FAILURE


def is_file(state: os.stat_result) -> bool:
    """Whether it is a file of a disk: no folder, pipe, device or socket, and nothing that the kernel makes up."""
    return stat.S_ISREG(state.st_mode) and state.st_dev not in kernel_devices()


@cache
def kernel_devices() -> frozenset[int]:
    """Where what looks like files and folders is the kernel talking, perhaps without an end."""
    return frozenset(place.stat().st_dev for place in map(Path, ("/proc", "/sys")) if os.path.ismount(place))


def too_long(path: Path) -> bool:
    """Whether a path may be too long for this system."""
    return sys.platform == "win32" and len(str(path.absolute())) >= WINDOWS_PATH


def portable(path: str) -> str:
    """A path with the separators that our files have on every system."""
    return path.replace("\\", "/") if sys.platform == "win32" else path


def is_below(path: str, flavour: type[PurePath] = PurePath) -> bool:
    """Whether a path that comes from a file leads to a place below the folder it is relative to."""
    pure = flavour(path)
    return bool(pure.parts) and not pure.anchor and ".." not in pure.parts and "\0" not in path


def name_fault(name: str) -> str:
    """Why this system cannot have a folder of some name; empty where it can."""
    return windows_name_fault(name) if sys.platform == "win32" else ""


def windows_name_fault(name: str) -> str:
    """Why Windows cannot have a folder of some name; empty where it can."""
    if found := re.search(r'[<>:"/\\|?*\x00-\x1f]', name):
        return f"Windows allows no {found[0]} in it"
    if name.endswith((".", " ")):
        return "Windows drops the dot or space at its end"
    return "Windows has a device of that name" if _RESERVED.fullmatch(name) else ""


def same_on_some_systems(name: str) -> str:
    """What names have in common that macOS and Windows take for one: small and capital letters, composed accents."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())
