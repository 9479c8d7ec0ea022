"""What a discovery starts from: the user's two folders, read, with everything that was odd about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.photos.cache import FeatureCache
from medi.photos.encode_folder import Reading, read_photos
from medi.photos.encoders import Encoder
from medi.photos.folders import Found, Skipped, class_of, find_photos
from medi.runtime.progress import Reporter


@dataclass(frozen=True)
class Folders:
    """The photos in the two folders, none of them opened yet; `known` has only those that lie in a class."""

    known: Found
    novel: Found


@dataclass(frozen=True)
class Material:
    """Photos as arrays.

    Attributes:
        known: Of the known classes, in alphabetical order.
        novel: Its rows are the unlabelled photos.
        skipped: Files that could not be used, with their paths as the user gave them.
        warnings: Plain sentences about what looks like a mistake.
        encoded: How many photos had to be encoded, because their arrays were not kept.
    """

    known: ImageSet
    novel: Reading
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...]
    encoded: int


def find_folders(known: Path, novel: Path) -> Folders:
    """Look for photos; too few of them, or folders inside one another, are errors."""
    photos, unlabelled = find_photos(known, "--known"), find_photos(novel, "--novel")
    if novel.resolve() == known.resolve():
        raise InputError(f"--known and --novel are both {known}: give two folders.")
    for inner, outer, flag, other in ((novel, known, "--novel", "--known"), (known, novel, "--known", "--novel")):
        if inner.resolve().is_relative_to(outer.resolve()):
            raise InputError(f"{flag} {inner} lies inside {other} {outer}: its photos would count twice; move it out.")
    in_class = [path for path in photos.paths if class_of(path) is not None]
    beside = [Skipped(path, "not in the folder of a class") for path in photos.paths if class_of(path) is None]
    if not in_class:
        reason = f"{len(beside)} photos, but none in a folder" if beside else "no photos"
        raise InputError(f"--known {known} has {reason} of its own class: put them into {known}/<class name>/.")
    if not unlabelled.paths:
        raise InputError(f"--novel {novel} has no photos: put the pictures to be grouped there.")
    return Folders(Found(known, in_class, photos.skipped + beside), unlabelled)


def read_material(folders: Folders, encoder: Encoder, reporter: Reporter) -> Material:
    """Read the photos; what cannot be read is skipped, and too little left is an error."""
    cache = FeatureCache(encoder.identity, reporter)
    known = read_photos(folders.known.root, folders.known.paths, encoder, cache, reporter, title="reading known photos")
    novel = read_photos(folders.novel.root, folders.novel.paths, encoder, cache, reporter, title="reading novel photos")
    for reading, root, flag in ((known, folders.known.root, "--known"), (novel, folders.novel.root, "--novel")):
        if not reading.paths:
            first = reading.skipped[0]
            raise InputError(
                f"none of the {len(reading.skipped)} photos in {flag} {root} can be read "
                f"({first.path}: {first.reason}): replace them."
            )
    classes = [class_of(path) or "" for path in known.paths]
    names = sorted(set(classes))
    number = {name: index for index, name in enumerate(names)}
    labels = torch.tensor([number[name] for name in classes])
    skipped = [
        Skipped(str(found.root / item.path), item.reason)
        for found, reading in ((folders.known, known), (folders.novel, novel))
        for item in (*found.skipped, *reading.skipped)
    ]
    warnings = (
        *_lost_classes(folders.known.paths, names),
        *_small_classes(classes),
        *_same_photos(known, classes, novel),
    )
    known_set = ImageSet(known.arrays, labels, tuple(names))
    return Material(known_set, novel, tuple(skipped), warnings, known.encoded + novel.encoded)


def _lost_classes(paths: Sequence[str], names: Sequence[str]) -> list[str]:
    lost = sorted({class_of(path) or "" for path in paths} - set(names))
    return [f"no photo of {_some(lost)} can be read: left out."] if lost else []


def _small_classes(classes: Sequence[str]) -> list[str]:
    single = sorted(name for name, count in Counter(classes).items() if count == 1)
    return (
        [f"only one photo of {_some(single)}: it teaches little about how photos of a class differ."] if single else []
    )


def _same_photos(known: Reading, classes: Sequence[str], novel: Reading) -> list[str]:
    """The same file content in two places where it should be in one."""
    warnings = []
    class_of_digest: dict[bytes, str] = {}
    twice = []
    for path, digest, name in zip(known.paths, known.digests, classes, strict=True):
        if class_of_digest.setdefault(digest, name) != name:
            twice.append(f"{path} ({class_of_digest[digest]})")
    both = [
        f"{path} ({class_of_digest[digest]})"
        for path, digest in zip(novel.paths, novel.digests, strict=True)
        if digest in class_of_digest
    ]
    again = sum(count - 1 for count in Counter(novel.digests).values())
    if both:
        warnings.append(f"the same photo is in known and in novel: {_some(both)}; take it out of one of them.")
    if twice:
        warnings.append(f"the same photo is in two known classes: {_some(twice)}; take it out of one of them.")
    if again:
        warnings.append(f"{again} of the novel photos are copies of others: groups look surer than they are.")
    return warnings


def _some(names: Sequence[str], shown: int = 3) -> str:
    """The first few of a list, and how many more there are."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
