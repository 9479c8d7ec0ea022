"""`medi export`: the reviewed groups as other programs read them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from medi.core.errors import InputError
from medi.core.files import make_folder, only_process, write_atomically
from medi.core.reading import input_errors
from medi.core.system import rename
from medi.discover.output import write_csv
from medi.review.accept import folder_name, refuse_mixed_spellings
from medi.review.labelled import Labelled, free_label, labelled

UNSORTED = "unsorted"
"""The folder of photos that are in no group and of no known class."""
COLUMNS = ("path", "kind", "group", "label", "by", "confidence", "reviewed", "round", "copy_of")


class Layout(NamedTuple):
    """What a folder of some format holds: photos, each with the place of its copy, and texts of files, by place."""

    copies: Sequence[tuple[Labelled, str]]
    texts: Mapping[str, str]


def run_export(path: Path, form: str, out: Path) -> str:
    """Write one format, and say what was written."""
    inside = out.resolve().is_relative_to(path.resolve())
    with only_process(path, "medi export") if inside else nullcontext():
        photos = labelled(path)
        newest, gone = max((photo.round for photo in photos), default=0), 0
        if form == "csv":
            write_table(photos, out)
        else:
            there = [photo for photo in photos if photo.source is not None or photo.round == newest]
            photos, gone = there, len(photos) - len(there)
            write_layout(_LAYOUTS[form](photos), out)
    left = f"; {gone} of earlier rounds are gone" if gone else ""
    return f"{len(photos)} photos with {len(_labels(photos))} labels, in {out}{left}"


def write_table(photos: Sequence[Labelled], out: Path) -> None:
    """A CSV file with a byte order mark, by which Excel knows that it is Unicode."""
    with input_errors(out, "write"):
        if out.exists():
            raise InputError(f"--out {out} exists: choose another name, or delete it.")
    make_folder(out.parent)
    write_csv(out, COLUMNS, (tuple(_facts(photo).values()) for photo in photos), mark=True)


def write_layout(layout: Layout, out: Path) -> None:
    """Write a folder that takes its name when it is complete."""
    with input_errors(out, "write"):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError(f"--out {out} exists: choose another name, or delete it.")
    partial = make_folder(out.absolute().parent) / f".{out.name}.{os.getpid()}.tmp"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        make_folder(partial)
        for photo, place in layout.copies:
            if photo.source is None:
                raise InputError(f"{photo.path} is gone from the pool: put it back, or discover again without it.")
            make_folder((partial / place).parent)
            with input_errors(partial / place, "write"):
                shutil.copyfile(photo.source, partial / place)
        for place, text in layout.texts.items():
            make_folder((partial / place).parent)
            write_atomically(partial / place, text.encode())
        with input_errors(out, "write"):
            if out.exists():
                out.rmdir()
            rename(partial, out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def as_folders(photos: Sequence[Labelled]) -> Layout:
    """A folder for each label; subfolders of the pool are kept, so that no two get one name."""
    labels = _labels(photos)
    for label in labels:
        folder_name(label)
    refuse_mixed_spellings(labels)
    unsorted = free_label(UNSORTED, labels)
    return Layout([(photo, f"{photo.label or unsorted}/{photo.path}") for photo in photos], {})


def as_xmp(photos: Sequence[Labelled]) -> Layout:
    """A sidecar beside the place of each photo that has a label, which is a keyword there."""
    texts = {}
    for photo in photos:
        facts = "".join(
            f"\n      medi:{key}={quoteattr(_visible(str(value)))}"
            for key, value in _facts(photo).items()
            if key in ("kind", "by", "confidence", "reviewed")
        )
        if photo.label:
            texts[f"{photo.path}.xmp"] = _XMP.format(facts=facts, label=escape(_visible(photo.label)))
    return Layout([], texts)


def as_huggingface(photos: Sequence[Labelled]) -> Layout:
    """An imagefolder with metadata.jsonl: `load_dataset("imagefolder", data_dir=OUT)`."""
    lines = []
    for photo in photos:
        facts = {
            "file_name": photo.file,
            "label": photo.label or None,
            "kind": photo.kind,
            "group": photo.group,
            "by": photo.by,
            "confidence": photo.confidence,
            "reviewed": photo.reviewed,
            "path": _text(photo.path),
            "copy_of": _text(photo.copy_of) or None,
        }
        lines.append(json.dumps(facts) + "\n")
    return Layout([(photo, f"train/{photo.file}") for photo in photos], {"train/metadata.jsonl": "".join(lines)})


def as_labelstudio(photos: Sequence[Labelled]) -> Layout:
    """Tasks with annotations (reviewed) or predictions, the labelling configuration, and copies of the photos."""
    copies, tasks = [(photo, f"photos/{photo.file}") for photo in photos], []
    for photo, place in copies:
        image = f"/data/local-files/?d={quote(place)}"
        task: dict[str, object] = {
            "data": {"image": image, "path": _text(photo.path), "by": photo.by, "confidence": photo.confidence}
        }
        if photo.label:
            value = {"choices": [_text(photo.label)]}
            result = [{"from_name": "label", "to_name": "image", "type": "choices", "value": value}]
            if photo.reviewed:
                task["annotations"] = [{"result": result}]
            else:
                task["predictions"] = [{"model_version": "medi", "score": photo.confidence, "result": result}]
        tasks.append(task)
    labels = sorted({_text(label) for label in _labels(photos)})
    choices = "".join(f"    <Choice value={quoteattr(label)}/>\n" for label in labels)
    config = (
        '<View>\n  <Image name="image" value="$image"/>\n'
        f'  <Choices name="label" toName="image" choice="single">\n{choices}  </Choices>\n</View>\n'
    )
    return Layout(copies, {"tasks.json": _json(tasks), "config.xml": config})


def as_fiftyone(photos: Sequence[Labelled]) -> Layout:
    """A FiftyOneImageClassificationDataset: data/ and labels.json; photos alone have no label."""
    labels: dict[str, object] = {}
    for photo in photos:
        about = {"kind": photo.kind, "by": photo.by, "reviewed": photo.reviewed, "path": _text(photo.path)}
        label = {"label": _text(photo.label), "confidence": photo.confidence, "attributes": about}
        labels[Path(photo.file).stem] = label if photo.label else None
    return Layout(
        [(photo, f"data/{photo.file}") for photo in photos], {"labels.json": _json({"classes": None, "labels": labels})}
    )


def _facts(photo: Labelled) -> dict[str, object]:
    """What tables say of a photo, by column."""
    about = (photo.path, photo.kind, "" if photo.group is None else photo.group, photo.label, photo.by)
    sure = f"{photo.confidence:.4f}", "yes" if photo.reviewed else "no", photo.round, photo.copy_of
    return dict(zip(COLUMNS, (*about, *sure), strict=True))


def _labels(photos: Sequence[Labelled]) -> list[str]:
    return sorted({photo.label for photo in photos if photo.label})


def _json(document: object) -> str:
    return json.dumps(document, indent=1) + "\n"


def _text(path: str) -> str:
    """Text that every reader of JSON takes: bytes of a name that are no UTF-8 become question marks."""
    return path.encode(errors="replace").decode()


def _visible(text: str) -> str:
    """Text that XML can hold."""
    return "".join(c if c.isprintable() else "?" for c in _text(text))


_XMP = """\
<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
  <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
    <rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"
      xmlns:medi="urn:medi:label"{facts}>
      <dc:subject><rdf:Bag><rdf:li>{label}</rdf:li></rdf:Bag></dc:subject>
    </rdf:Description>
  </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
"""
_LAYOUTS: dict[str, Callable[[Sequence[Labelled]], Layout]] = {
    "folders": as_folders,
    "xmp": as_xmp,
    "huggingface": as_huggingface,
    "labelstudio": as_labelstudio,
    "fiftyone": as_fiftyone,
}
