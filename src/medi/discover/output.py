"""The folder that `medi discover` writes: when it may be used, and its files.

A run works in the subfolder `unfinished/`. Its results move to their places when all of them are complete, so an
earlier discovery stays whole until then, whatever stops the program.

    unfinished/arguments.json   what was asked for: the same arguments continue the run
    unfinished/training/        checkpoints
    unfinished/results/         the new files; `discovery.json` is written last and says that they are complete
    unfinished/replaced/        the earlier model

A process that is killed while results move leaves `unfinished/results/discovery.json`: the next run moves the others
before it does anything else; so does a review.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medi.core.errors import InputError
from medi.core.files import make_folder, write_atomically, written_atomically
from medi.core.reading import input_errors, open_file, parse, read_file
from medi.core.system import FILE_NAME_ERRORS, is_below, rename
from medi.core.terminal import strict_json
from medi.discover.result import Discovery

CLUSTERS, DISCOVERY, REPORT, REVIEW = "clusters.csv", "discovery.json", "report.html", "review.jsonl"
MODEL, GROUPS = "model", "groups"
ROUNDS = "rounds"
"""Of earlier discoveries that were reviewed, from 1: clusters.csv, discovery.json and review.jsonl."""
UNFINISHED = "unfinished"
ARGUMENTS, TRAINING, FINISHED, REPLACED = "arguments.json", "training", "results", "replaced"


def claim(out: Path, arguments: Mapping[str, Any], *, force: bool) -> None:
    """Make the output folder ours, or say why not.

    New and empty folders are taken, unfinished ones with the same arguments continued. Replacing a finished discovery
    or writing beside other files needs `force`, which leaves those other files alone.
    """
    make_folder(out)
    wanted = json.loads(json.dumps(arguments))
    was_moving = move_results(out)
    unfinished = out / UNFINISHED
    with input_errors(out, "read"):
        there = {path.name for path in out.iterdir() if not path.name.startswith(".")}
        begun = {path.name for path in unfinished.iterdir()} & {TRAINING, FINISHED} if UNFINISHED in there else set()
    finished = DISCOVERY in there
    if _read(unfinished / ARGUMENTS) == wanted and (force or was_moving or not finished):
        return
    if not force:
        if finished:
            raise InputError(f"{out} holds a finished discovery: choose another --out, or replace it with --force.")
        if begun or there - {UNFINISHED}:
            holds = "an unfinished discovery with other arguments" if begun else "other files"
            raise InputError(f"{out} holds {holds}: choose another --out, or use --force to write there all the same.")
    with input_errors(unfinished, "empty"):
        if unfinished.exists():
            shutil.rmtree(unfinished)
    write_atomically(make_folder(unfinished) / ARGUMENTS, _json(wanted))


def results_folder(out: Path) -> Path:
    """An empty folder for the new results."""
    folder = out / UNFINISHED / FINISHED
    with input_errors(folder, "empty"):
        if folder.exists():
            shutil.rmtree(folder)
    return make_folder(folder)


def finish(out: Path, facts: Mapping[str, Any]) -> None:
    """Write `discovery.json` to complete the results, and put them into the place of earlier ones."""
    write_atomically(out / UNFINISHED / FINISHED / DISCOVERY, _json(facts))
    move_results(out)
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)


def earlier_rounds(out: Path) -> list[Path]:
    """The folders of earlier discoveries, the first one first."""
    try:
        names = [path.name for path in (out / ROUNDS).iterdir() if path.name.isdecimal()]
    except OSError:
        return []
    return [out / ROUNDS / name for name in sorted(names, key=int)]


def keep_round(out: Path) -> None:
    """Copy the discovery that was reviewed to `rounds/` of the new results, before those take its place."""
    number = max((int(path.name) for path in earlier_rounds(out)), default=0) + 1
    folder = make_folder(out / UNFINISHED / FINISHED / ROUNDS / str(number))
    for name in (CLUSTERS, REVIEW, DISCOVERY):
        with input_errors(out / name, "copy"):
            shutil.copyfile(out / name, folder / name)


def write_clusters(path: Path, paths: Sequence[str], discovery: Discovery) -> None:
    """One row a photo of the pool: path, kind, cluster, known, confidence, nearest_known."""
    clusters = ("" if label < 0 else str(label) for label in discovery.labels)
    sure = (f"{value:.4f}" for value in discovery.confidence)
    rows = zip(paths, discovery.kinds, clusters, discovery.known, sure, discovery.nearest_known, strict=True)
    write_csv(path, ("path", "kind", "cluster", "known", "confidence", "nearest_known"), rows)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]], *, mark: bool = False) -> None:
    """A table, atomically and as the rows come; names that are not unicode come out as the bytes they are on disk.

    With a byte order `mark` spreadsheets know that it is Unicode.
    """
    with written_atomically(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig" if mark else "utf-8", errors=FILE_NAME_ERRORS, newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        text.detach()  # flushes, and leaves the file open


def read_csv(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a table that `write_csv` wrote, one at a time."""
    with input_errors(path, "read"), open_file(path) as file:
        yield from csv.DictReader(io.TextIOWrapper(file, encoding="utf-8", errors=FILE_NAME_ERRORS, newline=""))


def export(out: Path, source: Path, paths: Sequence[str], labels: Sequence[int]) -> list[str]:
    """Copy photos in groups into `groups/<cluster>/` of the new results; where they will be in the output folder.

    Subfolders are kept: no two get one name. A file that a person has put in the place of a copy stays, and that photo
    is not copied.
    """
    earlier, made = _exported(out), []
    for path, label in zip(paths, labels, strict=True):
        copy = (Path(GROUPS) / str(label) / path).as_posix()
        if label < 0 or ((out / copy).exists() and copy not in earlier):
            continue
        target = out / UNFINISHED / FINISHED / copy
        make_folder(target.parent)
        with input_errors(source / path, "read"):
            photo = open_file(source / path)
        with photo, input_errors(target, "write"), target.open("wb") as file:
            shutil.copyfileobj(photo, file)
        made.append(copy)
    return made


def move_results(out: Path) -> bool:
    """Move results that are complete to their places, where an earlier call was stopped too; whether there were any.

    `discovery.json` moves last: it says what is left to do.
    """
    unfinished = out / UNFINISHED
    results = unfinished / FINISHED
    if not (results / DISCOVERY).is_file():
        return False
    with input_errors(out, "replace the results in"):
        _move_copies(out, results)
        for kept in earlier_rounds(results):
            rename(kept, make_folder(out / ROUNDS) / kept.name)
        if (results / MODEL).exists():
            if (out / MODEL).exists():
                shutil.rmtree(unfinished / REPLACED, ignore_errors=True)
                rename(out / MODEL, unfinished / REPLACED)
            rename(results / MODEL, out / MODEL)
        for name in (CLUSTERS, REVIEW, REPORT, DISCOVERY):
            if (results / name).exists():
                rename(results / name, out / name)
    return True


def _move_copies(out: Path, results: Path) -> None:
    """Move the new copies of photos to `groups/` and remove earlier ones; what a person has moved or added stays."""
    new = _exported(results)
    for copy in new:
        if (results / copy).exists():
            make_folder((out / copy).parent)
            rename(results / copy, out / copy)
    groups = (out / GROUPS).resolve()
    for copy in sorted(_exported(out) - new):
        if not (out / copy).parent.resolve().is_relative_to(groups):
            continue
        if (out / copy).is_file():
            (out / copy).unlink()
        for folder in Path(copy).parents[:-1]:
            if (out / folder).is_dir() and not any((out / folder).iterdir()):
                (out / folder).rmdir()


def _exported(folder: Path) -> set[str]:
    """The copies of photos that the `discovery.json` in a folder lists."""
    facts = _read(folder / DISCOVERY)
    copies = facts.get("exported", []) if isinstance(facts, dict) else []
    return {copy for copy in copies if isinstance(copy, str) and is_below(copy)} if isinstance(copies, list) else set()


def _read(path: Path) -> Any:
    """What a JSON file holds; None where it is absent or damaged."""
    try:
        return parse(read_file(path))
    except (OSError, ValueError):
        return None


def _json(facts: object) -> bytes:
    return (strict_json(facts) + "\n").encode()
