"""Make known classes of named groups: which photos go where, and how that is taken back.

What is decided here is done by `medi.discover.transfer`, all or nothing.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from medi.core.errors import InputError
from medi.core.reading import input_errors
from medi.core.system import name_fault, same_on_some_systems
from medi.discover.accepted import ACCEPTED, read_accepted, write_accepted
from medi.discover.output import earlier_rounds
from medi.discover.transfer import Copy, Transfer, digest_of, holds, missing_folders
from medi.review.discovery_folder import Folder, read_folder
from medi.review.history import History
from medi.review.state import ReviewState


class Copied(NamedTuple):
    """What becomes of one photo.

    Attributes:
        item: Its number.
        file: Where it will be.
        sha256: Of its content.
        made: Whether that file is new; otherwise the same photo is there already.
        moved: Whether the photo leaves the pool.
    """

    item: int
    file: str
    sha256: str
    made: bool
    moved: bool


def folder_name(name: str) -> str:
    """A class name that can be a folder's.

    Raises:
        InputError: It cannot.
    """
    faults = {
        "it is empty": not name.strip(),
        "it holds a slash": "/" in name or "\\" in name,
        "it begins with a dot": name.startswith("."),
        "it holds control characters": any(ord(c) < 32 or ord(c) == 127 for c in name),
        "it is longer than 255 bytes": len(os.fsencode(name)) > 255,
        "it begins or ends with a space": name != name.strip(),
    }
    reason = next((fault for fault, there in faults.items() if there), "") or name_fault(name)
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


def places(
    folder: Folder, history: History, names: Mapping[int, str], into: Path, *, move: bool
) -> tuple[list[Copied], dict[int, Path]]:
    """Where accepted photos go; all faults are found here, and nothing is touched.

    Args:
        folder: The discovery.
        history: Of its review.
        names: The class of each item.
        into: The folder of known classes.
        move: Take photos out of the pool.

    Returns:
        What becomes of each, but for items of which the same photo is in another known class; and where that is.
    """
    for name in sorted(set(names.values())):
        folder_name(name)
    with input_errors(into, "read"):
        refuse_mixed_spellings(names.values(), [entry.name for entry in into.iterdir()] if into.is_dir() else ())
    if into.resolve().is_relative_to(folder.novel.resolve()):
        raise InputError(f"--into {into} lies inside the pool {folder.novel}: choose a folder outside it.")
    files, elsewhere, placed, taken = list[Copied](), dict[int, Path](), dict[str, Path](), set[Path]()
    there, before = _by_size(into.absolute()), _in_force(history.done)
    for item, source in _present(folder, history, sorted(names)).items():
        home, digest, own = into.absolute() / names[item], digest_of(source), before.get(item)
        same = [path for path in there[source.stat().st_size] if holds(path, digest)]
        same += [placed[digest]] if digest in placed else []
        twin = next((path for path in same if path.is_relative_to(home)), None)
        others = [path for path in same if own is None or path != Path(own.file)]
        if twin is None and others:
            elsewhere[item] = others[0]
            continue
        spellings = _spellings(home, folder.photo(item))
        target = twin or next(path for path in spellings if path not in taken and not path.exists())
        placed[digest] = target
        taken.add(target)
        leaves = move and source == folder.photo(item).absolute()
        files.append(Copied(item, str(target), digest, twin is None, leaves))
    return files, elsewhere


def given_up(history: History, files: Sequence[Copied]) -> list[Copied]:
    """Copies of the same photos that were accepted under other names before; no photo is twice among known ones."""
    before, now = _in_force(history.done), {to.item for to in files}
    kept = {old.file for item, old in before.items() if item not in now} | {to.file for to in files}
    earlier = (before[to.item] for to in files if to.item in before)
    return [old for old in earlier if old.made and old.file not in kept]


def acceptance(folder: Folder, history: History, line: Mapping[str, Any]) -> Transfer:
    """The transfer of photos that goes with a line that accepts them."""
    files, earlier = [Copied(*file) for file in line["files"]], [Copied(*file) for file in line.get("gave_up", ())]
    for to in files:
        if Path(to.file).exists() and not holds(Path(to.file), to.sha256):
            raise InputError(f"{to.file} is in the way: move it away, and try again.")
    sources = {item: str(path) for item, path in _present(folder, history, [to.item for to in files]).items()}
    targets = {to.item: to.file for to in files}
    copies = {to.file: Copy(sources[to.item], to.file, to.sha256) for to in files if not Path(to.file).exists()}
    drops = [Copy(sources[to.item], to.file, to.sha256) for to in files if to.moved]
    drops += [Copy(old.file, targets[old.item], old.sha256) for old in earlier]
    makes = missing_folders(Path(file).parent for file in copies)
    ours = [made for done in history.done for made in done.get("made", ())]
    leaves = sorted({str(Path(old.file).parent) for old in earlier}.intersection(ours), reverse=True)
    listed = _listed(folder, history, [*history.done, line])
    return Transfer(history.seq + 1, folder.start.digest, list(copies.values()), drops, makes, leaves, listed)


def withdrawal(folder: Folder, history: History, line: Mapping[str, Any]) -> Transfer:
    """The transfer that takes accepted photos back: each returns to its own path, and copies are deleted.

    A photo that was changed since, or whose place another one has, stays where it is.
    """
    earlier = {item: [file] for item, file, *_ in line.get("gave_up", ())}
    before, copies, drops = _in_force(history.done[:-1]), dict[str, Copy](), []
    for to in (Copied(*file) for file in line["files"]):
        pool = folder.photo(to.item).absolute()
        back = [str(pool)] * to.moved + earlier.get(to.item, [])
        source = next((path for path in (to.file, str(pool)) if holds(Path(path), to.sha256)), None)
        copies |= {place: Copy(source, place, to.sha256) for place in back if source and not Path(place).exists()}
        if to.made:
            elsewhere = to.moved or pool.exists() or to.item not in before
            drops.append(Copy(to.file, str(pool) if elsewhere else before[to.item].file, to.sha256))
    makes, leaves = missing_folders(Path(place).parent for place in copies), line.get("made", [])[::-1]
    listed = _listed(folder, history, history.done[:-1])
    return Transfer(history.seq + 1, folder.start.digest, list(copies.values()), drops, makes, leaves, listed)


def _in_force(lines: Sequence[Mapping[str, Any]]) -> dict[int, Copied]:
    """Where each accepted photo was put last by lines in force."""
    return {file[0]: Copied(*file) for line in _accepting(lines) for file in line["files"]}


def _present(folder: Folder, history: History, items: Iterable[int]) -> dict[int, Path]:
    """Where photos are: in the pool, or where they were moved when they were accepted."""
    moved = {item: Path(to.file) for item, to in _in_force(history.done).items()}
    there = {item: folder.photo(item).absolute() for item in items}
    return {
        item: moved[item] if not path.is_file() and item in moved else folder.present_photo(item).absolute()
        for item, path in there.items()
    }


def check_list(folder: Folder, history: History) -> None:
    """Refuse a damaged `accepted.json`; where somebody deleted it, write it anew from the journals of all rounds."""
    path = folder.path / ACCEPTED
    if path.exists():
        read_accepted(path)
        return
    earlier = [read_folder(kept) for kept in earlier_rounds(folder.path)]
    rounds = [_entries(kept, (now := History(kept)).state, now.done) for kept in earlier]
    facts = _listed(folder, history, history.done)
    facts["accepted"] = [entry for entries in rounds for entry in entries] + facts["accepted"]
    write_accepted(path, facts)


def _listed(folder: Folder, history: History, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What `accepted.json` holds where some lines are in force: theirs, and what the journal knows nothing of."""
    own, paths = folder.start.digest, folder.start.paths
    journal = _accepting([*history.done, *history.undone, *lines])
    known = {paths[item] for line in journal for item, *_ in line["files"]}
    now = [
        entry
        for entry in read_accepted(folder.path / ACCEPTED)["accepted"]
        if entry["discovery"] != own or entry["path"] not in known
    ]
    kept = (entry for entry in now if entry["discovery"] == own and entry["group"] is not None)
    groups = {str(entry["group"]): entry["name"] for entry in kept}
    for line in _accepting(lines):
        groups |= line["groups"]
    return {"accepted": [*now, *_entries(folder, history.state, lines)], "groups": groups, "discovery": own}


def _entries(folder: Folder, state: ReviewState, lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What `accepted.json` says of the photos that lines in force accept."""
    ours = dict[int, dict[str, Any]]()
    for line in _accepting(lines):
        named = line["effect"].get("accepted", {})
        for item, file, digest, *_ in line["files"]:
            ours[item] = {
                "path": folder.start.paths[item],
                "sha256": digest,
                "name": named[str(item)],
                "group": state.groups[item] if state.groups[item] >= 0 else None,
                "file": file,
                "discovery": folder.start.digest,
            }
    return list(ours.values())


def _accepting(lines: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (line for line in lines if "files" in line)


def _by_size(folder: Path) -> Mapping[int, list[Path]]:
    """The files below a folder, by their size."""
    found = defaultdict[int, list[Path]](list)
    with input_errors(folder, "read"):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found[path.stat().st_size].append(path)
    return found


def _spellings(folder: Path, photo: Path) -> Iterator[Path]:
    """Where a photo may lie in the folder of a class: under its own name, or with a number."""
    yield folder / photo.name
    for number in count(2):
        yield folder / f"{photo.stem[:200]}-{number}{photo.suffix}"
