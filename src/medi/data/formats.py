"""Readers of the official archives as they extract, to plain arrays; no pickle is ever loaded.

A reader takes any number of whole records, so part of a set can be used. Whatever else is wrong with a file makes it
damaged, and it is refused by name.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.io import loadmat

from medi.core.errors import InputError
from medi.core.reading import open_file, read_file
from medi.data.facts import SIZE, Facts


@dataclass(frozen=True)
class Records:
    """What one file holds."""

    images: NDArray[np.uint8]  # (n, channels, SIZE, SIZE) uint8, often a view with the memory layout of the file
    labels: NDArray[np.int64]  # (n,) int64 class numbers: the known classes come first, the novel classes follow
    class_names: Mapping[int, str]  # the name of each class number

    def __len__(self) -> int:
        return len(self.labels)


Reader = Callable[[Facts, Path], Records]


class DamagedFile(InputError):
    """A file that cannot be read as what it should be; `why` says what is wrong with it."""

    def __init__(self, facts: Facts, path: Path, why: str) -> None:
        super().__init__(f"{path} is damaged: {why}; run `medi data fetch {facts.name}` to replace it.")
        self.why = why


@contextmanager
def _opened(facts: Facts, path: Path) -> Iterator[BinaryIO]:
    """The open file; whatever goes wrong while it is read becomes an error that names the file and the cure."""
    try:
        file = open_file(path)
    except FileNotFoundError:
        raise InputError(
            f"{path} is missing: run `medi data fetch {facts.name}`, "
            f"or set MEDI_DATA to the folder that holds {facts.folder}/."
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; it must be a file that you may read.") from error
    with file:
        try:
            yield file
        except Exception as error:  # damaged bytes make scipy, zipfile and Pillow raise almost anything
            raise DamagedFile(facts, path, str(error) or type(error).__name__) from error


def read_cifar(facts: Facts, path: Path, label_bytes: int, names_file: str) -> Records:
    """Records of label bytes, of which the last counts (CIFAR-100 has a coarse one too), and 3 x 32 x 32 pixels."""
    record = label_bytes + facts.channels * SIZE * SIZE
    with _opened(facts, path) as file:
        content = np.fromfile(file, dtype=np.uint8)
        if left_over := len(content) % record:
            raise ValueError(f"{left_over} byte{'s' * (left_over > 1)} after the last whole record")
        table = content.reshape(-1, record)
        labels = table[:, label_bytes - 1].astype(np.int64)
        _check_labels(labels, facts.known + facts.novel)
    names = _class_names(path.with_name(names_file), facts.known + facts.novel)
    return Records(table[:, label_bytes:].reshape(-1, facts.channels, SIZE, SIZE), labels, names)


def _check_labels(labels: NDArray[np.int64], n_classes: int) -> None:
    if not len(labels):
        raise ValueError("it is empty")
    if labels.max() >= n_classes:
        raise ValueError(f"label {labels.max()} in a set of {n_classes} classes")


def _class_names(path: Path, n_classes: int) -> dict[int, str]:
    """Names from a file with one a line, in the order of the classes; their numbers where it does not tell."""
    lines = read_file(path).decode(errors="replace").split() if path.is_file() else []
    # The list of a partial set may leave out classes, and then its line numbers say nothing.
    return dict(enumerate(lines if len(lines) == n_classes else map(str, range(n_classes))))


def read_svhn(facts: Facts, path: Path) -> Records:
    """A MATLAB file with X (32, 32, 3, n) and y (n, 1), in which label 10 means the digit 0."""
    with _opened(facts, path) as file:
        content: dict[str, NDArray[np.uint8]] = loadmat(file, variable_names=("X", "y"))  # type: ignore[arg-type]
        if missing := {"X", "y"} - content.keys():
            raise ValueError(f"there is no variable {' or '.join(sorted(missing))} in it")
        images, labels = content["X"], content["y"].ravel().astype(np.int64)
        if images.dtype != np.uint8 or images.shape != (SIZE, SIZE, facts.channels, len(labels)):
            raise ValueError(f"X is {images.dtype} of shape {images.shape} for {len(labels)} labels")
        _check_labels(labels, n_classes=11)
    digits = facts.known + facts.novel
    return Records(images.transpose(3, 2, 0, 1), labels % 10, {digit: str(digit) for digit in range(digits)})


def read_omniglot(facts: Facts, path: Path) -> Records:
    """A zip of folders alphabet/character of drawings, read in place; classes are numbered in sorted order."""
    is_novel = path.name in facts.splits["test"]
    first, n_classes = (facts.known, facts.novel) if is_novel else (0, facts.known)
    with _opened(facts, path) as file, ZipFile(file) as archive:
        drawings = sorted(_drawings(archive))
        characters = sorted({character for character, _ in drawings})
        number = {character: first + i for i, character in enumerate(characters)}
        labels = np.array([number[character] for character, _ in drawings], dtype=np.int64)
        _check_labels(labels, first + n_classes)
        images = np.stack([_ink(entry, archive.read(entry)) for _, entry in drawings])
    names = {label: f"{alphabet}/{character}" for (alphabet, character), label in number.items()}
    return Records(images[:, None], labels, names)


def _drawings(archive: ZipFile) -> Iterator[tuple[tuple[str, ...], str]]:
    """The (alphabet, character) of each drawing and the entry that holds it."""
    for entry in archive.namelist():
        parts = PurePosixPath(entry).parts
        # macOS adds files of its own under __MACOSX, with the names of the real ones.
        if len(parts) >= 3 and entry.endswith(".png") and parts[0] != "__MACOSX":
            yield parts[-3:-1], entry


def _ink(entry: str, png: bytes) -> NDArray[np.uint8]:
    """A drawing, dark ink in a 105 x 105 PNG, as (SIZE, SIZE) bright ink; a pixel is the mean of those it covers."""
    try:
        image = Image.open(io.BytesIO(png), formats=("PNG",)).convert("L")
    except Exception as error:  # Pillow's own words name a buffer in memory, not the entry
        raise ValueError(f"{entry} in it is not a readable PNG") from error
    return 255 - np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BOX))


READERS: Mapping[str, Reader] = {
    "cifar10": partial(read_cifar, label_bytes=1, names_file="batches.meta.txt"),
    "cifar100": partial(read_cifar, label_bytes=2, names_file="fine_label_names.txt"),
    "svhn": read_svhn,
    "omniglot": read_omniglot,
}
