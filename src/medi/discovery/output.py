"""The folder that `medi discover` writes: when it may be used, and its files.

`discovery.json` is written last: a folder that has it is finished. Until then `unfinished.json` says what is being
done there, and `work/` holds what a killed run had reached.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from medi.discovery.result import Discovery
from medi.errors import InputError
from medi.runtime.files import input_errors, make_folder, remove_leftovers, write_atomically, written_atomically

CLUSTERS, DISCOVERY, REPORT = "clusters.csv", "discovery.json", "report.html"
MODEL, GROUPS, WORK = "model", "groups", "work"
UNFINISHED = "unfinished.json"


def claim(out: Path, arguments: Mapping[str, Any], *, force: bool) -> None:
    """Make the output folder ours, or say why not.

    New and empty folders are taken, unfinished ones with the same arguments continued. Anything else needs `force`,
    which replaces what an earlier run wrote and leaves other files alone.
    """
    make_folder(out)
    wanted = json.loads(json.dumps(arguments))
    with input_errors(out, "read"):
        there = {path.name for path in out.iterdir() if not path.name.startswith(".")}
    if DISCOVERY in there and not force:
        raise InputError(f"{out} holds a finished discovery: choose another --out, or replace it with --force.")
    if DISCOVERY not in there and UNFINISHED in there and _read(out / UNFINISHED) == wanted:
        return
    if there - {UNFINISHED} and not force:
        holds = "an unfinished discovery with other arguments" if UNFINISHED in there else "other files"
        raise InputError(f"{out} holds {holds}: choose another --out, or use --force to write there all the same.")
    with input_errors(out, "empty"):
        _clear(out)
    write_atomically(out / UNFINISHED, _json(wanted))


def finish(out: Path, facts: Mapping[str, Any]) -> None:
    """Write `discovery.json`, by which the folder is finished, and tidy up."""
    write_atomically(out / DISCOVERY, _json(facts))
    with input_errors(out, "tidy up"):
        (out / UNFINISHED).unlink(missing_ok=True)
        shutil.rmtree(out / WORK, ignore_errors=True)
    for folder in (out, out / MODEL):
        remove_leftovers(folder, "*")


def write_clusters(path: Path, paths: Sequence[str], discovery: Discovery) -> None:
    """One row a novel photo: path, cluster, confidence, nearest_known."""
    columns = paths, discovery.labels, discovery.confidence, discovery.nearest_known
    rows = ((name, label, f"{sure:.4f}", known) for name, label, sure, known in zip(*columns, strict=True))
    write_csv(path, ("path", "cluster", "confidence", "nearest_known"), rows)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table, atomically and as the rows come; names that are not unicode come out as the bytes they are on disk."""
    with written_atomically(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="surrogateescape", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        text.detach()  # flushes, and leaves the file open


def export(out: Path, source: Path, paths: Sequence[str], labels: Sequence[int]) -> list[str]:
    """Copy photos into `groups/<cluster>/`, subfolders kept so that no two get one name; returns the copies' paths."""
    made = []
    for path, label in zip(paths, labels, strict=True):
        copy = Path(GROUPS) / str(label) / path
        make_folder((out / copy).parent)
        with input_errors(source / path, "read"):
            handle = (source / path).open("rb")
        with handle:
            _copy(handle, out / copy)
        made.append(copy.as_posix())
    return made


def _copy(source: Any, target: Path) -> None:
    """Copy an open file so that its name appears only when all of it is there."""
    temporary = target.with_name(f".{os.getpid()}.tmp")
    with input_errors(target, "write"):
        try:
            with temporary.open("wb") as file:
                shutil.copyfileobj(source, file)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def _clear(out: Path) -> None:
    """Remove what an earlier run wrote. Of the exported groups only its own copies: a person may have sorted there."""
    earlier = _read(out / DISCOVERY)
    (out / DISCOVERY).unlink(missing_ok=True)  # first: from here on the folder no longer passes for finished
    groups = (out / GROUPS).resolve()
    for copy in earlier.get("exported", []) if isinstance(earlier, dict) else []:
        path = out / str(copy)
        if path.parent.resolve().is_relative_to(groups):
            path.unlink(missing_ok=True)
    for folder in (*sorted(groups.rglob("*"), reverse=True), groups):
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()
    for name in (CLUSTERS, REPORT, UNFINISHED):
        (out / name).unlink(missing_ok=True)
    for name in (MODEL, WORK):
        if (out / name).is_dir():
            shutil.rmtree(out / name)


def _read(path: Path) -> Any:
    """What a JSON file holds; None where it is absent or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _json(facts: object) -> bytes:
    """As JSON, in ASCII because names may hold what UTF-8 cannot; numbers that JSON lacks become null."""
    return (json.dumps(plain(facts), indent=1, allow_nan=False) + "\n").encode()


def plain(value: Any) -> Any:
    """The same with NaN and infinities as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
