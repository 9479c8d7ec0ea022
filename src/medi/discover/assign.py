"""`medi assign`: recognise discovered groups and known classes in new photos."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from medi.data.cache import FeatureCache
from medi.data.folders import Skipped, find_photos
from medi.data.reading import read_photos
from medi.discover.output import write_csv
from medi.discover.saved import load_model
from medi.errors import InputError
from medi.files import input_errors, make_folder
from medi.progress import Reporter
from medi.train.devices import choose_device


@dataclass(frozen=True)
class Assigned:
    """How many photos are of each kind, and what could not be read."""

    kinds: Counter[str]
    skipped: Sequence[Skipped]


def run_assign(model: Path, images: Path, out: Path, reporter: Reporter, *, force: bool = False) -> Assigned:
    """Write one row a photo: path, kind (`novel`, `known` or `none`), label, confidence."""
    found = find_photos(images, "--images")
    if not found.paths:
        raise InputError(f"--images {images} has no photos: give a folder that has some.")
    with input_errors(out, "write"):
        if out.is_dir():
            raise InputError(f"--out {out} is a folder: give the name of a CSV file.")
        if out.exists() and not force:
            raise InputError(f"--out {out} exists: choose another name, or replace it with --force.")
    make_folder(out.parent)
    recogniser, encoder = load_model(model, choose_device("auto"))
    cache = FeatureCache(encoder.identity, reporter)
    try:
        reading = read_photos(images, found.paths, encoder, cache, reporter)
    finally:
        cache.close()
    skipped = [*found.skipped, *reading.skipped]
    if not reading.paths:
        raise InputError(
            f"none of the {len(skipped)} files in --images {images} can be read "
            f"({reading.skipped[0].path}: {reading.skipped[0].reason}): replace them."
        )
    answers = recogniser.recognise(reading.arrays)
    rows = [
        (path, answer.kind, answer.label, f"{answer.confidence:.4f}")
        for path, answer in zip(reading.paths, answers, strict=True)
    ]
    write_csv(out, ("path", "kind", "label", "confidence"), rows)
    return Assigned(Counter(answer.kind for answer in answers), skipped)
