"""Read the folder that `medi discover` wrote: what a review begins with."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from medi.discovery.output import CLUSTERS, DISCOVERY, MODEL
from medi.discovery.result import Kind
from medi.errors import InputError
from medi.runtime.files import input_errors
from medi.runtime.system import FILE_NAME_ERRORS, is_below

JOURNAL = "review.jsonl"
ACCEPTED = "accepted.json"
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
        return self.path / JOURNAL

    @property
    def model(self) -> Path:
        """The folder with the saved pool."""
        return self.path / MODEL

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
    facts = _facts(path)
    try:
        known, novel = (Path(facts["arguments"][name]) for name in ("known", "novel"))
    except (KeyError, TypeError) as error:
        raise InputError(f"{path / DISCOVERY} is damaged: discover again with --force.") from error
    start = read_clusters(path / CLUSTERS)
    if not len(start):
        raise InputError(f"{path} has no photos to review: discover again with photos in --novel.")
    return Folder(path, known, novel, start)


def read_clusters(path: Path) -> Start:
    """The lines of a `clusters.csv`."""
    with input_errors(path, "read"):
        if not path.is_file():
            raise InputError(f"{path} is missing: discover again with --force.")
        content = path.read_bytes()
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


def _facts(path: Path) -> dict[str, Any]:
    """What `discovery.json` holds."""
    file = path / DISCOVERY
    if not file.is_file():
        what = "is no folder" if not path.is_dir() else "holds no finished discovery"
        raise InputError(f"{path} {what}: give the folder that `medi discover` wrote.")
    with input_errors(file, "read"):
        content = file.read_bytes()
    try:
        facts = json.loads(content)
    except ValueError as error:
        raise InputError(f"{file} is damaged: discover again with --force.") from error
    return facts if isinstance(facts, dict) else {}
