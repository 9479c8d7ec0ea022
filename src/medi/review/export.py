"""`medi export`: the reviewed groups as other programs read them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from medi.discovery.output import write_csv
from medi.errors import InputError
from medi.review.accept import folder_name, refuse_mixed_spellings
from medi.review.discovery_folder import Folder, read_folder
from medi.review.session import read_history
from medi.review.state import State
from medi.runtime.files import input_errors, make_folder, write_atomically
from medi.runtime.system import rename

UNSORTED = "unsorted"
"""The folder of photos that are in no group and of no known class."""


@dataclass(frozen=True)
class Labelled:
    """One photo with its label.

    Attributes:
        item: Its number.
        path: Relative to the pool.
        source: Where it is.
        kind: novel, known or alone.
        group: Its group; None where it is in none.
        label: The group's name, or `group-N` where it has none; the known class; empty for a photo alone.
        confidence: 0 to 1.
        reviewed: Whether a person named its group or settled its place.
    """

    item: int
    path: str
    source: Path
    kind: str
    group: int | None
    label: str
    confidence: float
    reviewed: bool

    @property
    def file(self) -> str:
        """A file name that is safe everywhere: its number and its ending."""
        return f"{self.item:06}{PurePosixPath(self.path).suffix.lower()}"


def run_export(path: Path, form: str, out: Path) -> str:
    """Write one format, and say what was written."""
    folder = read_folder(path)
    photos = labelled(folder, read_history(folder).state)
    _WRITERS[form](photos, out)
    labels = {photo.label for photo in photos if photo.label}
    return f"{len(photos)} photos with {len(labels)} labels, in {out}"


def labelled(folder: Folder, state: State) -> list[Labelled]:
    """Every photo of a pool with its label."""
    photos = []
    for item, path in enumerate(folder.start.paths):
        group = state.groups[item]
        named = group in state.names
        label = (state.names[group] if named else f"group-{group}") if group >= 0 else state.known[item]
        photos.append(
            Labelled(
                item,
                path,
                folder.novel / path,
                state.kind(item),
                group if group >= 0 else None,
                label,
                state.confidence[item],
                named or item in state.held,
            )
        )
    return photos


def write_table(photos: list[Labelled], out: Path) -> None:
    """A CSV file: path, kind, group, label, confidence, reviewed."""
    with input_errors(out, "write"):
        if out.exists():
            raise InputError(f"--out {out} exists: choose another name, or delete it.")
    make_folder(out.parent)
    rows = (
        (
            p.path,
            p.kind,
            "" if p.group is None else p.group,
            p.label,
            f"{p.confidence:.4f}",
            "yes" if p.reviewed else "no",
        )
        for p in photos
    )
    write_csv(out, ("path", "kind", "group", "label", "confidence", "reviewed"), rows)


def write_folders(photos: list[Labelled], out: Path) -> None:
    """A folder for each label, with copies; subfolders of the pool are kept, so that no two get one name."""
    labels = {photo.label for photo in photos if photo.label}
    for label in sorted(labels):
        folder_name(label)
    refuse_mixed_spellings(labels)
    with _made(out) as folder:
        for photo in photos:
            _copy(photo, folder / (photo.label or UNSORTED) / photo.path)


def write_huggingface(photos: list[Labelled], out: Path) -> None:
    """An imagefolder with metadata.jsonl: `load_dataset("imagefolder", data_dir=OUT)`."""
    with _made(out) as folder:
        lines = []
        for photo in photos:
            _copy(photo, folder / "train" / photo.file)
            facts = {
                "file_name": photo.file,
                "label": photo.label or None,
                "kind": photo.kind,
                "group": photo.group,
                "confidence": photo.confidence,
                "reviewed": photo.reviewed,
                "path": _text(photo.path),
            }
            lines.append(json.dumps(facts) + "\n")
        write_atomically(folder / "train" / "metadata.jsonl", "".join(lines).encode())


def write_labelstudio(photos: list[Labelled], out: Path) -> None:
    """Tasks with annotations (reviewed) or predictions, the labelling configuration, and copies of the photos."""
    with _made(out) as folder:
        tasks = []
        for photo in photos:
            _copy(photo, folder / "photos" / photo.file)
            task: dict[str, object] = {
                "data": {
                    "image": f"/data/local-files/?d={quote(f'photos/{photo.file}')}",
                    "path": _text(photo.path),
                }
            }
            if photo.label:
                value = {"choices": [_text(photo.label)]}
                result = [{"from_name": "label", "to_name": "image", "type": "choices", "value": value}]
                if photo.reviewed:
                    task["annotations"] = [{"result": result}]
                else:
                    task["predictions"] = [{"model_version": "medi", "score": photo.confidence, "result": result}]
            tasks.append(task)
        write_atomically(folder / "tasks.json", (json.dumps(tasks, indent=1) + "\n").encode())
        labels = sorted({_text(photo.label) for photo in photos if photo.label})
        choices = "".join(f"    <Choice value={quoteattr(label)}/>\n" for label in labels)
        config = (
            '<View>\n  <Image name="image" value="$image"/>\n'
            f'  <Choices name="label" toName="image" choice="single">\n{choices}  </Choices>\n</View>\n'
        )
        write_atomically(folder / "config.xml", config.encode())


def write_fiftyone(photos: list[Labelled], out: Path) -> None:
    """A FiftyOneImageClassificationDataset: data/ and labels.json; photos alone have no label."""
    with _made(out) as folder:
        for photo in photos:
            _copy(photo, folder / "data" / photo.file)
        facts = {
            "classes": None,
            "labels": {
                Path(photo.file).stem: {
                    "label": _text(photo.label),
                    "confidence": photo.confidence,
                    "attributes": {"kind": photo.kind, "reviewed": photo.reviewed, "path": _text(photo.path)},
                }
                if photo.label
                else None
                for photo in photos
            },
        }
        write_atomically(folder / "labels.json", (json.dumps(facts, indent=1) + "\n").encode())


@contextmanager
def _made(out: Path) -> Iterator[Path]:
    """A folder that takes its name when it is complete."""
    with input_errors(out, "write"):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError(f"--out {out} exists: choose another name, or delete it.")
    partial = make_folder(out.absolute().parent) / f".{out.name}.{os.getpid()}.tmp"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        yield make_folder(partial)
        with input_errors(out, "write"):
            if out.exists():
                out.rmdir()
            rename(partial, out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _copy(photo: Labelled, target: Path) -> None:
    make_folder(target.parent)
    if not photo.source.is_file():
        raise InputError(f"{photo.source} is gone: put it back, or discover again without it.")
    with input_errors(target, "write"):
        shutil.copyfile(photo.source, target)


def _text(path: str) -> str:
    """Text that every reader of JSON takes: bytes of a name that are no UTF-8 become question marks."""
    return path.encode(errors="replace").decode()


_WRITERS: dict[str, Callable[[list[Labelled], Path], None]] = {
    "folders": write_folders,
    "csv": write_table,
    "huggingface": write_huggingface,
    "labelstudio": write_labelstudio,
    "fiftyone": write_fiftyone,
}
