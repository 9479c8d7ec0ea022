"""Read the folder that `medi discover` wrote: what a review begins with."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import get_args

from medi.core.errors import InputError
from medi.core.reading import input_errors, parse, read_file
from medi.core.system import FILE_NAME_ERRORS, is_below
from medi.discover.output import CLUSTERS, DISCOVERY, MODEL, REVIEW, earlier_rounds
from medi.grouping.engine import Kind
from medi.schemas import fault, schema

_PLACE = schema("discovery")["properties"]["arguments"]["properties"]["novel"]
_COLUMNS = ("path", "kind", "cluster", "known", "confidence", "nearest_known")


@dataclass(frozen=True)
class Start:
    """The n photos of a pool as `clusters.csv` has them; an item is the number of its line.

    Attributes:
        paths: Relative to the folder of the pool.
        groups: Group of each item; -1 where it is in none.
        known: The known class of each item; empty where it is none.
        confidence: 0 to 1.
        nearest: The most similar known class.
        digest: Of the whole, by which a journal is known to belong to it.
    """

    paths: tuple[str, ...]
    groups: tuple[int, ...]
    known: tuple[str, ...]
    confidence: tuple[float, ...]
    nearest: tuple[str, ...]
    digest: str

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True)
class Folder:
    """A finished discovery: its folder, the folders it was made from, and its photos."""

    path: Path
    known: Path
    novel: Path
    start: Start

    @property
    def journal(self) -> Path:
        """The file with every action of its review."""
        return self.path / REVIEW

    @property
    def model(self) -> Path:
        """The folder with the saved pool."""
        return self.path / MODEL

    @property
    def closed(self) -> str:
        """Why nothing may be changed any more: it is an earlier round of another folder; else empty."""
        place = self.path.resolve()
        later = place.parents[1] if len(place.parents) > 1 else place
        if place not in earlier_rounds(later) or not (later / DISCOVERY).is_file():
            return ""
        return f"{self.path} is an earlier round and stays as it was: go on with {later}."

    def photo(self, item: int) -> Path:
        """Where a photo was when it was sorted."""
        return self.novel / self.start.paths[item]

    def present_photo(self, item: int) -> Path:
        """Where a photo is.

        Raises:
            InputError: It is gone.
        """
        if not self.photo(item).is_file():
            raise InputError(f"{self.photo(item)} is gone: put it back, or discover again without it.")
        return self.photo(item)

    def missing(self) -> list[str]:
        """Paths of photos that are no longer where they were."""
        return [path for item, path in enumerate(self.start.paths) if not self.photo(item).is_file()]

    @property
    def class_names(self) -> tuple[str, ...]:
        """Folders of known classes as they are now, by name."""
        try:
            return tuple(sorted(p.name for p in self.known.iterdir() if p.is_dir() and not p.name.startswith(".")))
        except OSError:
            return ()


def read_folder(path: Path) -> Folder:
    """The discovery in a folder.

    Raises:
        InputError: There is none, it is damaged, or it has no photos.
    """
    file = path / DISCOVERY
    if not file.is_file():
        what = "is no folder" if not path.is_dir() else "holds no finished discovery"
        raise InputError(f"{path} {what}: give the folder that `medi discover` wrote.")
    with input_errors(file, "read"):
        content = read_file(file)
    try:
        arguments = parse(content)["arguments"]
        known, novel = arguments["known"], arguments["novel"]
        if any(fault(_PLACE, place) is not None for place in (known, novel)):
            raise ValueError("no folders")
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is damaged: discover again with --force.") from error
    start = read_clusters(path / CLUSTERS)
    if not len(start):
        raise InputError(f"{path} has no photos to review: discover again with photos in --novel.")
    return Folder(path, Path(known), Path(novel), start)


def command_again(path: Path) -> str:
    """The command that made the discovery in a folder; empty where it was not kept."""
    try:
        return str(parse(read_file(path / DISCOVERY))["command"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def read_clusters(path: Path) -> Start:
    """The lines of a `clusters.csv`."""
    with input_errors(path, "read"):
        if not path.is_file():
            raise InputError(f"{path} is missing: discover again with --force.")
        content = read_file(path)
    text = io.StringIO(content.decode("utf-8", errors=FILE_NAME_ERRORS), newline="")
    reader = csv.reader(text)
    header = tuple(next(reader, ()))
    if header != _COLUMNS:
        raise InputError(f"{path} has the columns {','.join(header)}, not {','.join(_COLUMNS)}: discover again.")
    rows = []
    for number, row in enumerate(reader, 2):
        try:
            rows.append(_row(row))
        except ValueError as error:
            raise InputError(f"{path} line {number} is damaged ({error}): discover again with --force.") from error
    return Start(
        paths=tuple(row[0] for row in rows),
        groups=tuple(row[1] for row in rows),
        known=tuple(row[2] for row in rows),
        confidence=tuple(row[3] for row in rows),
        nearest=tuple(row[4] for row in rows),
        digest=sha256(content).hexdigest()[:16],
    )


def _row(row: list[str]) -> tuple[str, int, str, float, str]:
    if len(row) != len(_COLUMNS):
        raise ValueError(f"{len(row)} columns")
    path, kind, cluster, known, confidence, nearest = row
    if not is_below(path):
        raise ValueError("a path outside the pool")
    if kind not in get_args(Kind):
        raise ValueError(f"kind {kind}")
    if kind == "novel" and int(cluster) < 0:
        raise ValueError(f"cluster {cluster}")
    sure = round(float(confidence or 0), 4)
    if not 0 <= sure <= 1:
        raise ValueError(f"confidence {confidence}")
    return path, int(cluster) if kind == "novel" else -1, known if kind == "known" else "", sure, nearest
