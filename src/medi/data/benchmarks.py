"""`load`: a benchmark by name, its known and its novel classes as images on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Self

import numpy as np
import torch

from medi.core.errors import InputError
from medi.data.facts import Augmentation, Facts, facts_of
from medi.data.formats import READERS, Records
from medi.data.imageset import ImageSet
from medi.data.store import data_folder, path_of


@dataclass(frozen=True)
class Benchmark:
    """A benchmark in memory; each set's images are (n, channels, 32, 32) uint8.

    Attributes:
        facts: Its row of the table, with the classes that are really there counted.
        known: The training split's known classes.
        novel: The test split's novel classes, numbered from 0.
        novel_train: The novel classes of the training split, numbered from 0; None where it has none.
    """

    facts: Facts
    known: ImageSet
    novel: ImageSet
    novel_train: ImageSet | None = None

    @classmethod
    def of(cls, name: str, known: ImageSet, novel: ImageSet, *, way: int, augmentation: Augmentation) -> Self:
        """A benchmark of one's own: images of known and of novel classes.

        Args:
            name: For messages and tables.
            known: To learn from.
            novel: To discover.
            way: Novel classes in a task.
            augmentation: Which random changes leave the class of an image alone.
        """
        facts = Facts(name, name, known.images.shape[1], known.n_classes, novel.n_classes, way, augmentation)
        return cls(facts, known, novel)

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        train = self.novel_train.to(device) if self.novel_train else None
        return replace(self, known=self.known.to(device), novel=self.novel.to(device), novel_train=train)


def load(name: str, device: torch.device | str = "cpu") -> Benchmark:
    """Read (or generate) a benchmark.

    Classes without images, as a partial set may have, are left out and the others numbered without gaps.
    """
    facts = facts_of(name)
    if facts.generated:
        module, _, function = facts.generator.partition(":")
        sets = getattr(import_module(module), function)()  # drawing needs matplotlib, which nothing else here does
    else:
        sets = _read(facts)
    return Benchmark(replace(facts, known=sets[0].n_classes, novel=sets[1].n_classes), *sets).to(device)


def _read(facts: Facts) -> tuple[ImageSet, ImageSet, ImageSet | None]:
    train, test = _read_split(facts, "train"), _read_split(facts, "test")
    known_classes = range(facts.known)
    novel_classes = range(facts.known, facts.known + facts.novel)
    known, novel = _of_classes(train, known_classes), _of_classes(test, novel_classes)
    if known is None:
        raise _no_image_of(facts, "known", "train")
    if novel is None:
        raise _no_image_of(facts, "novel", "test")
    return known, novel, _of_classes(train, novel_classes)


def _no_image_of(facts: Facts, kind: str, split: str) -> InputError:
    files = ", ".join(facts.splits[split])
    return InputError(
        f"there is no image of a {kind} class in {files} of {data_folder() / facts.folder}: "
        f"delete that folder and run `medi data fetch {facts.name}` for the whole set."
    )


def _read_split(facts: Facts, split: str) -> list[Records]:
    return [READERS[facts.name](facts, path_of(facts, file)) for file in facts.splits[split]]


def _of_classes(files: Sequence[Records], classes: range) -> ImageSet | None:
    """The items of the classes that are not empty, numbered 0, 1, …; None if all are empty."""
    keep = [(file.labels >= classes.start) & (file.labels < classes.stop) for file in files]
    labels = np.concatenate([file.labels[kept] for file, kept in zip(files, keep, strict=True)])
    if not len(labels):
        return None
    images = np.concatenate([file.images[kept] for file, kept in zip(files, keep, strict=True)])
    present, dense = np.unique(labels, return_inverse=True)
    return ImageSet(
        images=torch.from_numpy(np.ascontiguousarray(images)),
        labels=torch.from_numpy(dense),
        class_names=tuple(files[0].class_names[number] for number in present),
    )
