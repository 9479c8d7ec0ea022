"""Every photo that was ever sorted in an output folder, with its label, who said it, and how sure it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from medi.core.system import same_on_some_systems
from medi.discover.accepted import ACCEPTED, read_accepted
from medi.discover.output import earlier_rounds
from medi.discover.transfer import digest_of
from medi.review.discovery_folder import Folder, read_folder
from medi.review.history import History

PERSON, PROGRAM = "person", "program"


@dataclass(frozen=True)
class Labelled:
    """One photo with its label.

    Attributes:
        number: From 0.
        path: Relative to the pool.
        kind: novel, known or alone.
        group: Its group; None where it is in none.
        label: The group's name, or `group-N` where it has none; the known class; empty for a photo alone.
        by: Who said so: a person who confirmed it, or the program.
        confidence: 0 to 1.
        round: The discovery in this folder that sorted it last, from 1.
        source: Where it is now; None where it is gone.
        copy_of: The path of an earlier photo with the same content; empty where there is none.
    """

    number: int
    path: str
    kind: str
    group: int | None
    label: str
    by: str
    confidence: float
    round: int
    source: Path | None
    copy_of: str = ""

    @property
    def reviewed(self) -> bool:
        """Whether a person confirmed it."""
        return self.by == PERSON

    @property
    def file(self) -> str:
        """A file name that is safe everywhere: its number and its ending."""
        return f"{self.number:06}{PurePosixPath(self.path).suffix.lower()}"


def labelled(path: Path) -> list[Labelled]:
    """Every photo with its label: those of the present discovery, then those that only earlier ones had."""
    present = read_folder(path)
    folders = [*map(read_folder, earlier_rounds(path)), present]
    accepted = {entry["path"]: entry for entry in read_accepted(path / ACCEPTED)["accepted"]}
    found = dict[Path, Labelled]()
    for number, folder in sorted(enumerate(folders, 1), reverse=True):
        for photo in _of_round(folder, number, accepted):
            found.setdefault(folder.novel / photo.path, photo)
    for place, entry in accepted.items():  # of rounds that an earlier version of the program did not keep
        source, facts = _source(present.novel / place, entry), (place, "known", None, entry["name"], PERSON, 1.0)
        found.setdefault(present.novel / place, Labelled(0, *facts, len(folders), source))
    numbered = [replace(photo, number=number) for number, photo in enumerate(found.values())]
    return _with_copies(_with_labels(numbered, len(folders)))


def free_label(label: str, taken: Iterable[str]) -> str:
    """A label that no person or folder uses: itself, or with a number."""
    spelled = set(map(same_on_some_systems, taken))
    spellings = (label if number == 1 else f"{label}-{number}" for number in count(1))
    return next(one for one in spellings if same_on_some_systems(one) not in spelled)


def _of_round(folder: Folder, number: int, accepted: Mapping[str, Mapping[str, Any]]) -> Iterator[Labelled]:
    """The photos of one discovery; groups without a name have no label yet."""
    state = History(folder).state
    confirmed = state.held | state.accepted.keys()
    for item, path in enumerate(folder.start.paths):
        group = state.groups[item] if state.groups[item] >= 0 else None
        label = state.known[item] if group is None else state.names.get(group, "")
        by, sure = (PERSON, 1.0) if item in confirmed else (PROGRAM, state.confidence[item])
        source = _source(folder.photo(item), accepted.get(path))
        yield Labelled(item, path, state.kind(item), group, label, by, sure, number, source)


def _source(photo: Path, accepted: Mapping[str, Any] | None) -> Path | None:
    """Where a photo is: in the pool, or where it was moved when it was accepted."""
    places = [photo, *([Path(accepted["file"])] if accepted else [])]
    return next((place for place in places if place.is_file()), None)


def _with_labels(photos: Sequence[Labelled], present: int) -> list[Labelled]:
    """Groups without a name get a label that nothing else has."""
    taken, made = {photo.label for photo in photos}, dict[tuple[int, int], str]()
    for photo in photos:
        if photo.group is not None and not photo.label and (photo.round, photo.group) not in made:
            of_round = "" if photo.round == present else f"round-{photo.round}-"
            label = free_label(f"{of_round}group-{photo.group}", taken)
            made[photo.round, photo.group] = label
            taken.add(label)
    return [
        photo if photo.group is None or photo.label else replace(photo, label=made[photo.round, photo.group])
        for photo in photos
    ]


def _with_copies(photos: Sequence[Labelled]) -> list[Labelled]:
    """Photos with the content of an earlier one name it."""
    first = copies_of([photo.source for photo in photos])
    return [
        replace(photo, copy_of=photos[first[photo.number]].path) if photo.number in first else photo for photo in photos
    ]


def copies_of(files: Sequence[Path | None]) -> dict[int, int]:
    """Of files with the content of an earlier one, which are numbered from 0, the number of the first such."""
    by_size, first, found = defaultdict[int, list[int]](list), dict[str, int](), dict[int, int]()
    for number, file in enumerate(files):
        if file is not None and file.is_file():
            by_size[file.stat().st_size].append(number)
    for number in (number for alike in by_size.values() if len(alike) > 1 for number in alike):
        file = files[number]
        assert file is not None
        if (same := first.setdefault(digest_of(file), number)) != number:
            found[number] = same
    return found
