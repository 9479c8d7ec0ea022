"""The user's two folders: the photos in them as arrays, and warnings about what looks like a mistake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from medi.core.errors import InputError
from medi.core.progress import Reporter, Silent
from medi.data.items import Items
from medi.photos.cache import THUMBNAILS, PhotoCache
from medi.photos.encode_folder import EncodedPhotos, read_photos
from medi.photos.encoders import Encoder
from medi.photos.features_file import Features
from medi.photos.folders import Found, Skipped, class_of, find_photos


@dataclass(frozen=True)
class Folders:
    """The photos in the two folders, none of them opened yet; `known` has only those that lie in a class."""

    known: Found
    novel: Found


@dataclass(frozen=True)
class Inputs:
    """Photos as arrays.

    Attributes:
        known: Of the known classes, in alphabetical order.
        novel: The unlabelled photos.
        skipped: Files that could not be used, with their paths as the user gave them.
        warnings: Plain sentences about what looks like a mistake.
        computed: How many photos had to be encoded, because the cache did not have them.
        thumbnails: Where thumbnails of the novel photos are kept.
        already_known: The class of each novel photo that was accepted as a known one, by path; they are left out.
    """

    known: Items
    novel: EncodedPhotos
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...]
    computed: int
    thumbnails: PhotoCache
    already_known: Mapping[str, str]


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
    return Folders(Found(known, in_class, photos.skipped + beside, photos.subfolders), unlabelled)


def read_inputs(
    folders: Folders, encoder: Encoder, reporter: Reporter, accepted: frozenset[bytes] = frozenset()
) -> Inputs:
    """Encode the photos; files that cannot be read are skipped, and a folder without any readable one is an error.

    Novel photos that were `accepted`, by the digests of their contents, and are in known now are left out.
    """
    thumbnails = PhotoCache(THUMBNAILS, Silent())  # where it cannot be used, the other cache has said so
    found, unlabelled = folders.known, folders.novel
    known, novel = _read_both(found, unlabelled, encoder, thumbnails, reporter)
    for photos, root, flag in ((known, found.root, "--known"), (novel, unlabelled.root, "--novel")):
        if not photos.paths:
            first = photos.skipped[0]
            raise InputError(
                f"none of the {len(photos.skipped)} photos in {flag} {root} can be read "
                f"({first.path}: {first.reason}): replace them."
            )
    classes = [class_of(path) or "" for path in known.paths]
    names = sorted(set(classes))
    number = {name: index for index, name in enumerate(names)}
    labels = np.array([number[name] for name in classes], np.int64)
    skipped = [
        Skipped(str(folder.root / item.path), item.reason)
        for folder, photos in ((found, known), (unlabelled, novel))
        for item in (*folder.skipped, *photos.skipped)
    ]
    computed = known.computed + novel.computed
    novel, already_known = _leave_out(novel, known, classes, accepted, unlabelled.root)
    warnings = (*_class_warnings(found, classes), *_same_photos(known, classes, novel))
    if already_known:
        warnings = (f"{len(already_known)} novel photos were accepted as known ones: left out.", *warnings)
    known_set = Items(known.arrays, labels, tuple(names))
    return Inputs(known_set, novel, tuple(skipped), warnings, computed, thumbnails, already_known)


def _leave_out(
    novel: EncodedPhotos, known: EncodedPhotos, classes: Sequence[str], accepted: frozenset[bytes], root: Path
) -> tuple[EncodedPhotos, dict[str, str]]:
    """The novel photos that were not accepted, and the class of each of the others."""
    pairs = zip(known.digests, classes, strict=True)
    class_of_digest = {digest: name for digest, name in pairs if digest in accepted}
    photos = list(zip(novel.paths, novel.digests, strict=True))
    left_out = {path: class_of_digest[digest] for path, digest in photos if digest in class_of_digest}
    if not left_out:
        return novel, {}
    kept = [place for place, (path, _) in enumerate(photos) if path not in left_out]
    if not kept:
        raise InputError(f"every photo in --novel {root} was accepted as a known one: there is nothing left to sort.")
    paths, digests = [novel.paths[i] for i in kept], [novel.digests[i] for i in kept]
    return replace(novel, arrays=novel.arrays[kept], paths=paths, digests=digests), left_out


def _read_both(
    found: Found, unlabelled: Found, encoder: Encoder, thumbnails: PhotoCache, reporter: Reporter
) -> tuple[EncodedPhotos, EncodedPhotos]:
    """The known photos and the novel ones."""
    titles = "reading known photos", "reading novel photos"
    if isinstance(encoder, Features):
        known = encoder.read(found, reporter, title=titles[0])
        return known, encoder.read(unlabelled, reporter, title=titles[1])
    cache = PhotoCache(encoder.identity, reporter)
    known = read_photos(found, encoder, cache, reporter, title=titles[0])
    novel = read_photos(unlabelled, encoder, cache, reporter, title=titles[1], thumbnails=thumbnails)
    return known, novel


def _class_warnings(found: Found, classes: Sequence[str]) -> Iterator[str]:
    """Classes without a photo, without a readable one, and with a single one; `classes` is that of each photo read."""
    with_photos = {class_of(path) or "" for path in found.paths}
    explained = {item.path for item in found.skipped}  # links to folders that were searched already
    if empty := sorted(set(found.subfolders) - with_photos - explained):
        yield f"no photo in the folder of {_some(empty, 10)}: left out."
    if unreadable := sorted(with_photos - set(classes)):
        yield f"no photo of {_some(unreadable, 10)} can be read: left out."
    if single := sorted(name for name, count in Counter(classes).items() if count == 1):
        yield f"only one photo of {_some(single, 10)}: it teaches little about how photos of a class differ."


def _same_photos(known: EncodedPhotos, classes: Sequence[str], novel: EncodedPhotos) -> Iterator[str]:
    """The same file content in two places where it should be in one."""
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
    if both:
        yield f"the same photo is in known and in novel: {_some(both)}; take it out of one of them."
    if twice:
        yield f"the same photo is in two known classes: {_some(twice)}; take it out of one of them."
    first: dict[bytes, str] = {}
    pairs = [(path, first.setdefault(digest, path)) for path, digest in zip(novel.paths, novel.digests, strict=True)]
    if again := [f"{path} (of {other})" for path, other in pairs if path != other]:
        yield f"{len(again)} of the novel photos are copies of others: {_some(again)}."


def _some(names: Sequence[str], shown: int = 3) -> str:
    """The first few of a list, and how many more there are."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
