"""Make known classes of named groups: copy or move their photos, and list them so that the next round leaves them out.

`accepted.json` beside `clusters.csv` holds

    accepted    one object a photo: path (relative to the pool), sha256 of its content, name (of the class), group
                (null for a photo that was marked as a known class), file (where it is now), discovery
    groups      the name of each accepted group of this discovery, by number
    discovery   the digest of the clusters.csv that the numbers belong to
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from medi.errors import InputError
from medi.review.discovery_folder import ACCEPTED, Folder
from medi.review.state import History
from medi.runtime.files import input_errors, make_folder, write_atomically
from medi.runtime.system import name_fault, same_on_some_systems


class Copied(NamedTuple):
    """What became of one photo.

    Attributes:
        item: Its number.
        file: Where it is now.
        sha256: Of its content.
        made: Whether that file is new; otherwise the same photo was there already.
        moved: Whether the photo left the pool.
    """

    item: int
    file: str
    sha256: str
    made: bool
    moved: bool


@dataclass(frozen=True)
class Accepted:
    """What was accepted: files, and the class of each item."""

    files: tuple[Copied, ...]
    names: Mapping[int, str]


def folder_name(name: str) -> str:
    """A class name that can be a folder's.

    Raises:
        InputError: It cannot.
    """
    reason = ""
    if not name.strip():
        reason = "it is empty"
    elif "/" in name or "\\" in name:
        reason = "it holds a slash"
    elif name.startswith("."):
        reason = "it begins with a dot"
    elif any(ord(c) < 32 or ord(c) == 127 for c in name):
        reason = "it holds control characters"
    elif len(os.fsencode(name)) > 255:
        reason = "it is longer than 255 bytes"
    elif name != name.strip():
        reason = "it begins or ends with a space"
    else:
        reason = name_fault(name)
    if reason:
        shown = "".join(c if c.isprintable() else "?" for c in name[:60])
        raise InputError(f"“{shown}” cannot be the name of a folder, because {reason}: choose another name.")
    return name


def refuse_mixed_spellings(names: Iterable[str], there: Iterable[str] = ()) -> None:
    """Refuse names that some systems take for one folder: two classes would lie in it.

    Args:
        names: Of folders to be made or added to; one that is there in the same spelling is fine.
        there: Names of folders that exist.
    """
    exact = set(there)
    spelling = {same_on_some_systems(name): name for name in exact}
    for name in sorted(set(names) - exact):
        other = spelling.setdefault(same_on_some_systems(name), name)
        if other != name:
            raise InputError(
                f"“{name}” and “{other}” are one folder on macOS and Windows: write both alike, or rename one."
            )


def accept(folder: Folder, names: Mapping[int, str], into: Path, *, move: bool) -> Accepted:
    """Copy or move photos into a folder for each class; all faults are found before the first is touched.

    Args:
        folder: The discovery.
        names: The class of each item.
        into: The folder of known classes.
        move: Take photos out of the pool.
    """
    for name in sorted(set(names.values())):
        folder_name(name)
    with input_errors(into, "read"):
        refuse_mixed_spellings(names.values(), [entry.name for entry in into.iterdir()] if into.is_dir() else ())
    if into.resolve().is_relative_to(folder.novel.resolve()):
        raise InputError(f"--into {into} lies inside the pool {folder.novel}: choose a folder outside it.")
    sources = {item: folder.novel / folder.start.paths[item] for item in sorted(names)}
    for source in sources.values():
        if not source.is_file():
            raise InputError(f"{source} is gone: put it back, or discover again without it.")
    files = []
    for item, source in sources.items():
        with input_errors(source, "read"), source.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        target, made = _copy(source, make_folder(into / names[item]), digest)
        if move:
            _remove(source, target)
        files.append(Copied(item, str(target.absolute()), digest, made, move))
    return Accepted(tuple(files), dict(names))


def withdraw(folder: Folder, files: Iterable[Sequence[Any]]) -> None:
    """Take accepted photos back: moved ones return to the pool, copies are deleted; what was changed since stays."""
    for copied in (Copied(*file) for file in files):
        target, source = Path(copied.file), folder.novel / folder.start.paths[copied.item]
        if not _is(target, copied.sha256):
            continue
        if copied.moved and not source.exists():
            _copy(target, make_folder(source.parent), copied.sha256, name=source.name)
        if copied.made and _is(source, copied.sha256):
            with input_errors(target, "delete"):
                target.unlink()
                if not any(target.parent.iterdir()):
                    target.parent.rmdir()


def repeat(folder: Folder, files: Iterable[Sequence[Any]]) -> None:
    """Accept photos again that were taken back."""
    for copied in (Copied(*file) for file in files):
        target, source = Path(copied.file), folder.novel / folder.start.paths[copied.item]
        if not target.exists():
            if not source.is_file():
                raise InputError(f"{source} is gone: put it back, or discover again without it.")
            _copy(source, make_folder(target.parent), copied.sha256, name=target.name)
        if copied.moved:
            _remove(source, target)


def write_list(folder: Folder, history: History) -> None:
    """Write `accepted.json`: what is accepted now, and in earlier rounds."""
    path, own = folder.path / ACCEPTED, folder.start.digest
    earlier = [entry for entry in read_list(path)["accepted"] if entry.get("discovery") != own]
    now, groups = [], dict[str, str]()
    for line in history.done:
        if line["action"] != "accept":
            continue
        groups |= line["groups"]
        named = line["effect"].get("accepted", {})
        for item, file, digest, *_ in line["files"]:
            group = history.state.groups[item]
            now.append(
                {
                    "path": folder.start.paths[item],
                    "sha256": digest,
                    "name": named[str(item)],
                    "group": group if group >= 0 else None,
                    "file": file,
                    "discovery": own,
                }
            )
    if now or earlier or path.exists():
        facts = {"accepted": [*earlier, *now], "groups": groups, "discovery": own}
        write_atomically(path, (json.dumps(facts, indent=1) + "\n").encode())


def read_list(path: Path) -> dict[str, Any]:
    """What an `accepted.json` holds; empty where there is none."""
    empty: dict[str, Any] = {"accepted": [], "groups": {}, "discovery": ""}
    if not path.exists():
        return empty
    with input_errors(path, "read"):
        content = path.read_bytes()
    try:
        facts = json.loads(content)
        if not isinstance(facts["accepted"], list) or not isinstance(facts["groups"], dict):
            raise TypeError
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: delete it, and accept again.") from error
    return {**empty, **facts}


def _copy(source: Path, folder: Path, digest: str, name: str = "") -> tuple[Path, bool]:
    """Copy a file into a folder under its own name, or with a number where that is taken; never over another.

    Returns:
        Where it is, and whether it is new: the same content under that name is taken as it is.
    """
    wanted = Path(name or source.name)
    for number in count(1):
        target = folder / (wanted.name if number == 1 else f"{wanted.stem[:200]}-{number}{wanted.suffix}")
        if _is(target, digest):
            return target, False
        with input_errors(target.parent, "write"), source.open("rb") as file:
            try:
                handle = target.open("xb")
            except FileExistsError:
                continue
            with handle:
                shutil.copyfileobj(file, handle)
                handle.flush()
                os.fsync(handle.fileno())
        if not _is(target, digest):
            target.unlink()
            raise InputError(f"{source} changed while it was copied: try again.")
        return target, True
    raise AssertionError


def _remove(source: Path, target: Path) -> None:
    """Delete what was moved, unless it lies where it was moved to."""
    with input_errors(source, "delete"):
        if source.exists() and not source.samefile(target):
            source.unlink()


def _is(path: Path, digest: str) -> bool:
    """Whether a file has some content."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest() == digest
