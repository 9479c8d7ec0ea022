"""Tiny sets written in the official formats, for readers to read back."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.io import savemat

from medi.data.facts import BENCHMARKS, Facts

CIFAR10, CIFAR100, SVHN, OMNIGLOT = (BENCHMARKS[name] for name in ("cifar10", "cifar100", "svhn", "omniglot"))


def random_images(n: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (n, 3, 32, 32), dtype=np.uint8)


def write_cifar(path: Path, images: NDArray[np.uint8], labels: Iterable[int], coarse: bool = False) -> None:
    columns = [np.array(list(labels), np.uint8)[:, None], images.reshape(len(images), -1)]
    if coarse:
        columns.insert(0, np.full((len(images), 1), 7, np.uint8))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.concatenate(columns, axis=1).tofile(path)


def write_svhn(path: Path, images: NDArray[np.uint8], digits: Iterable[int], compress: bool = True) -> None:
    labels = np.array([digit or 10 for digit in digits], np.uint8)[:, None]
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {"X": images.transpose(2, 3, 1, 0), "y": labels}, do_compression=compress)


def png(ink: NDArray[np.bool_]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(~ink).save(buffer, "PNG")
    return buffer.getvalue()


def write_omniglot(path: Path, drawings: Iterable[tuple[str, NDArray[np.bool_]]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{path.stem}/", b"")  # the official zips list their folders too
        for name, ink in drawings:
            archive.writestr(f"{path.stem}/{name}", png(ink))


def write_tiny(folder: Path, facts: Facts) -> None:
    """Twenty images a file, two of each of ten classes (five of them novel where both kinds can be there)."""
    images = random_images(20)
    for file in facts.records:
        path = folder / facts.folder / file
        if facts is CIFAR10:
            write_cifar(path, images, np.arange(20) % 10)
        elif facts is CIFAR100:
            write_cifar(path, images, 75 + np.arange(20) % 10, coarse=True)
        elif facts is SVHN:
            write_svhn(path, images, np.arange(20) % 10)
        else:
            blank = np.zeros((105, 105), bool)
            write_omniglot(path, [(f"Greek/character{i % 10:02d}/{i}.png", blank) for i in range(20)])
