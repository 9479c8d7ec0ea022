"""What `--dataset` may name: a benchmark, `folder:PATH`, `features:FILE`, or `path/to/file.py:function`.

A folder has one subfolder of photos for each class; sorted by name, the first half is known, the rest novel. A file of
features names the photos of such a folder. A function of a file returns a `Benchmark` (`Benchmark.of`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medi.core.errors import InputError
from medi.core.reading import open_file
from medi.data.facts import PHOTO, Facts, facts_of
from medi.registry import FILE_MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from medi.core.progress import Reporter
    from medi.data.benchmarks import Benchmark
    from medi.photos.folders import Found

FOLDER_MARK, FEATURES_MARK = "folder:", "features:"
FOLDER_WAY = 5
"""Novel classes in a task of a folder that has so many."""


def is_users_own(name: str) -> bool:
    """Whether a dataset may have changed since it was last used under the same name."""
    return name.startswith((FOLDER_MARK, FEATURES_MARK)) or FILE_MARK in name


def facts_for(name: str) -> Facts:
    """What is known of a dataset before its images are read."""
    if name.startswith(FOLDER_MARK):
        return _facts_of_classes(name, _classes_of(name)[1])
    if name.startswith(FEATURES_MARK):
        return _facts_of_classes(name, _classes_among(name, _table(name)[0]))
    if FILE_MARK in name:
        return _from_file(name).facts
    return facts_of(name)


def load_dataset(
    name: str, as_people_do: bool = False, device: torch.device | str = "cpu", reporter: Reporter | None = None
) -> Benchmark:
    """Read, or generate, what `--dataset` names.

    As people do: photos of a folder are compared by what the default encoder makes of them, as in `medi discover`.
    """
    from medi.data.benchmarks import load

    if name.startswith(FOLDER_MARK):
        return (_encode_folder if as_people_do else _read_folder)(name, reporter).to(device)
    if name.startswith(FEATURES_MARK):
        return _split(name, *_table(name)).to(device)
    if FILE_MARK in name:
        return _from_file(name).to(device)
    return load(name, device)


def _from_file(name: str) -> Benchmark:
    from medi.core.from_file import from_file

    return _made(name, from_file(name, "--dataset")[1])


@cache
def _made(name: str, digest: str) -> Benchmark:
    """What a function of a file of this digest returns; kept, because facts are asked for often."""
    from dataclasses import replace

    from medi.core.from_file import from_file
    from medi.data.benchmarks import Benchmark

    make, _ = from_file(name, "--dataset")
    try:
        made = make() if callable(make) else make
    except Exception as error:
        raise InputError(f"--dataset {name} cannot be made ({type(error).__name__}: {error}).") from error
    if not isinstance(made, Benchmark):
        raise InputError(f"--dataset {name}: name a function without arguments that returns a Benchmark.")
    return replace(made, facts=replace(made.facts, name=name))


def _classes_of(name: str) -> tuple[Found, list[str]]:
    """The photos of a folder and its classes, sorted by name."""
    from medi.photos.folders import class_of, find_photos

    root = Path(name.removeprefix(FOLDER_MARK))
    found = find_photos(root, "--dataset folder:")
    photos = {class_of(path) for path in found.paths}
    if empty := sorted(set(found.subfolders) - photos):
        raise InputError(f"--dataset {name}: there is no photo in {', '.join(empty)}; add some or remove the folder.")
    return found, _classes_among(name, found.paths)


def _classes_among(name: str, paths: Sequence[str]) -> list[str]:
    """The classes that paths name by their folders, sorted."""
    from medi.photos.folders import class_of

    classes = sorted({one for path in paths if (one := class_of(path)) is not None})
    if len(classes) < 4:
        raise InputError(f"--dataset {name}: {len(classes)} classes are too few; two known and two novel are needed.")
    return classes


@cache
def _table(name: str) -> tuple[list[str], NDArray[np.float32]]:
    """Paths and vectors of a file of features."""
    from medi.photos.features_file import read_features

    found = read_features([Path(name.removeprefix(FEATURES_MARK))])
    return list(found.rows), found.vectors[list(found.rows.values())]


def _facts_of_classes(name: str, classes: Sequence[str]) -> Facts:
    known = (len(classes) + 1) // 2
    novel = len(classes) - known
    title = Path(name.partition(":")[2]).name
    return Facts(name, title, 3, known, novel, way=min(FOLDER_WAY, novel), augmentation=PHOTO)


def _encode_folder(name: str, reporter: Reporter | None) -> Benchmark:
    """What the default encoder makes of every photo."""
    from medi.core.progress import Silent
    from medi.photos.cache import PhotoCache
    from medi.photos.encode_folder import read_photos
    from medi.photos.encoders import DEFAULT_ENCODER, load_encoder

    found, reporter = _classes_of(name)[0], reporter or Silent()
    encoder = load_encoder(DEFAULT_ENCODER, "cpu")
    read = read_photos(found, encoder, PhotoCache(encoder.identity, reporter), reporter)
    for skipped in read.skipped:
        raise InputError(f"--dataset {name}: {skipped.path} cannot be read ({skipped.reason}); mend or remove it.")
    return _split(name, read.paths, read.arrays)


def _read_folder(name: str, reporter: Reporter | None) -> Benchmark:
    """The middle square of every photo, as small as other benchmarks have images; one that cannot be read is named."""
    from medi.core.progress import Silent
    from medi.data.facts import SIZE
    from medi.photos.decode import Cut, UnreadableError, decoding, read_photo

    found, _ = _classes_of(name)
    pixels = np.empty((len(found.paths), 3, SIZE, SIZE), np.uint8)
    with (reporter or Silent()).track("reading photos", len(pixels)) as tick, decoding():
        for number, path in enumerate(found.paths):
            try:
                with open_file(found.root / path) as file:
                    pixels[number] = read_photo(file, Cut(SIZE)).pixels
            except (OSError, UnreadableError) as error:
                raise InputError(f"--dataset {name}: {path} cannot be read ({error}); mend or remove it.") from error
            tick(number + 1)
    return _split(name, found.paths, pixels)


def _split(name: str, paths: Sequence[str], items: NDArray[Any]) -> Benchmark:
    """The items (n, …) of paths, the first half of their classes known; those in no folder of a class are left out."""
    import torch

    from medi.data.benchmarks import Benchmark
    from medi.data.imageset import ImageSet
    from medi.photos.folders import class_of

    classes = _classes_among(name, paths)
    facts = _facts_of_classes(name, classes)
    labelled = [(place, classes.index(one)) for place, path in enumerate(paths) if (one := class_of(path)) is not None]
    places, labels = map(list, zip(*labelled, strict=True))
    everything = ImageSet(torch.from_numpy(items[places]), torch.tensor(labels), tuple(classes))
    known, novel = (everything.of_classes(range(*span)) for span in ((0, facts.known), (facts.known, len(classes))))
    return Benchmark(facts, known, novel)
