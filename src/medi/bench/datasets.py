"""What `--dataset` may name: a benchmark of the table, `folder:PATH`, or `path/to/file.py:function`.

A folder has one subfolder of photos for each class; sorted by name, the first half is known, the rest novel. A function
of a file returns a `Benchmark` (`Benchmark.of`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from medi.data.facts import PHOTO, Facts, facts_of
from medi.errors import InputError
from medi.names import FILE_MARK

if TYPE_CHECKING:
    import torch

    from medi.data.benchmarks import Benchmark
    from medi.photos.folders import Found
    from medi.runtime.progress import Reporter

FOLDER_MARK = "folder:"
FOLDER_WAY = 5
"""Novel classes in a task of a folder that has so many."""


def is_users_own(name: str) -> bool:
    """Whether a dataset may have changed since it was last used under the same name."""
    return name.startswith(FOLDER_MARK) or FILE_MARK in name


def facts_for(name: str) -> Facts:
    """What is known of a dataset before its images are read."""
    if name.startswith(FOLDER_MARK):
        return _facts_of_folder(name, _classes_of(name)[1])
    if FILE_MARK in name:
        return _from_file(name).facts
    return facts_of(name)


def load_dataset(name: str, device: torch.device | str = "cpu", reporter: Reporter | None = None) -> Benchmark:
    """Read, or generate, a dataset."""
    from medi.data.benchmarks import load

    if name.startswith(FOLDER_MARK):
        return _read_folder(name, reporter).to(device)
    if FILE_MARK in name:
        return _from_file(name).to(device)
    return load(name, device)


def _from_file(name: str) -> Benchmark:
    from medi.runtime.from_file import from_file

    return _made(name, from_file(name, "--dataset")[1])


@cache
def _made(name: str, digest: str) -> Benchmark:
    """What a function of a file of this digest returns; kept, because facts are asked for often."""
    from dataclasses import replace

    from medi.data.benchmarks import Benchmark
    from medi.runtime.from_file import from_file

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
    classes = sorted({one for path in found.paths if (one := class_of(path)) is not None})
    if empty := sorted(set(found.subfolders) - set(classes)):
        raise InputError(f"--dataset {name}: there is no photo in {', '.join(empty)}; add some or remove the folder.")
    if len(classes) < 4:
        raise InputError(f"--dataset {name}: {len(classes)} classes are too few; two known and two novel are needed.")
    return found, classes


def _facts_of_folder(name: str, classes: list[str]) -> Facts:
    known = (len(classes) + 1) // 2
    novel = len(classes) - known
    title = Path(name.removeprefix(FOLDER_MARK)).name
    return Facts(name, title, 3, known, novel, way=min(FOLDER_WAY, novel), augmentation=PHOTO)


def _read_folder(name: str, reporter: Reporter | None) -> Benchmark:
    """The middle square of every photo, as small as other benchmarks have images; one that cannot be read is named."""
    import numpy as np
    import torch

    from medi.data.benchmarks import Benchmark
    from medi.data.facts import SIZE
    from medi.data.imageset import ImageSet
    from medi.photos.decode import Cut, UnreadableError, decoding, read_photo
    from medi.photos.folders import class_of
    from medi.runtime.progress import Silent

    found, classes = _classes_of(name)
    facts = _facts_of_folder(name, classes)
    photos = [(path, classes.index(one)) for path in found.paths if (one := class_of(path)) is not None]
    pixels = np.empty((len(photos), 3, SIZE, SIZE), np.uint8)
    with (reporter or Silent()).track("reading photos", len(photos)) as tick, decoding():
        for number, (path, _) in enumerate(photos):
            try:
                with (found.root / path).open("rb") as file:
                    pixels[number] = read_photo(file, Cut(SIZE)).pixels
            except (OSError, UnreadableError) as error:
                raise InputError(f"--dataset {name}: {path} cannot be read ({error}); mend or remove it.") from error
            tick(number + 1)
    labels = torch.tensor([label for _, label in photos])
    everything = ImageSet(torch.from_numpy(pixels), labels, tuple(classes))
    known, novel = (everything.of_classes(range(*span)) for span in ((0, facts.known), (facts.known, len(classes))))
    return Benchmark(facts, known, novel)
