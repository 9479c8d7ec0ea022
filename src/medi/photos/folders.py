"""The pictures a person has in folders: `known/<class>/**` and `novel/**`."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from errno import EINVAL
from pathlib import Path

from medi.core import system
from medi.core.errors import InputError, reason_of
from medi.photos.decode import SUFFIXES
from medi.photos.raw import CURE, RAW_SUFFIXES, can_read_raw

_CLUTTER = frozenset({"thumbs.db", "desktop.ini", "__macosx", "@eadir"})
"""What systems leave in folders of photos, beside hidden files: passed over silently."""


@dataclass(frozen=True)
class Skipped:
    """A file that was left out, and why in plain words."""

    path: str
    reason: str


@dataclass
class Found:
    """Files under one folder."""

    root: Path
    # files that look like photos, relative to it, in the same order on every machine
    paths: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)  # files and folders that were passed over
    subfolders: list[str] = field(default_factory=list)  # names of the folders directly in it


def find_photos(root: Path, what: str) -> Found:
    """All photos in a folder and its subfolders; links are followed, but no folder is searched twice.

    `what` it is for, such as `--novel`, is said where it is at fault.
    """
    if root.is_file():
        raise InputError(f"{what} {root} is a file: give the folder that holds the photos.")
    found, seen = Found(root), set[tuple[int, int]]()
    folders, links = [""], deque[str]()
    while folders or links:
        # Links come last, so that a folder is found by its own path rather than through a link.
        prefix = folders.pop() if folders else links.popleft()
        try:
            entries = _entries(root / prefix, seen)
        except OSError as error:
            if not prefix:
                raise InputError(f"{what} {root}: {reason_of(error)}; give a folder with photos.") from error
            found.skipped.append(Skipped(prefix, reason_of(error)))
            continue
        if entries is None:
            found.skipped.append(Skipped(prefix, "a link to a folder that was searched already"))
            continue
        for entry in entries:
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if _is_folder(entry):
                (links if entry.is_symlink() else folders).append(path)
                if not prefix:
                    found.subfolders.append(path)
            elif reason := _fault(entry):
                found.skipped.append(Skipped(path, reason))
            else:
                found.paths.append(path)
    found.paths.sort()
    found.skipped.sort(key=lambda skipped: skipped.path)
    return found


def class_of(path: str) -> str | None:
    """The class of a photo under `known/`: the folder it lies in; None for one that lies beside those folders."""
    name, separator, _ = path.partition("/")
    return name if separator else None


def _entries(folder: Path, seen: set[tuple[int, int]]) -> list[os.DirEntry[str]] | None:
    """What is in a folder, by name; None if the same folder, by whatever path, was seen before."""
    state = folder.stat()
    if state.st_dev in system.kernel_devices():
        raise OSError(EINVAL, "not a folder of a disk")
    identity = state.st_dev, state.st_ino
    if identity in seen:
        return None
    seen.add(identity)
    with os.scandir(folder) as scan:
        visible = [entry for entry in scan if entry.name[0] != "." and entry.name.lower() not in _CLUTTER]
    return sorted(visible, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder; of what may not be looked at, `_fault` says why."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _fault(entry: os.DirEntry[str]) -> str:
    """Why a file is not even opened; empty where it may be a photo."""
    suffix = Path(entry.name).suffix.lower()
    if suffix not in SUFFIXES:
        return f"{suffix} is not a kind of image read here" if suffix else "its name has no ending such as .jpg"
    if suffix in RAW_SUFFIXES and not can_read_raw():
        return CURE
    try:
        state = entry.stat()
    except OSError as error:
        return "a broken link" if entry.is_symlink() else reason_of(error)
    if not system.is_file(state):
        return "not a regular file"
    return "" if state.st_size else "the file is empty"
