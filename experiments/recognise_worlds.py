"""Sets of vectors for `recognise.py`: which classes are known, which are novel, and which nobody has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from common import all_classes, half_size_pixels
from PIL import Image
from sklearn.datasets import load_digits
from torch import Tensor

from medi.data.benchmarks import load
from medi.data.imageset import ImageSet
from medi.discovery.recogniser import Recognised
from medi.photos.cache import PhotoCache
from medi.photos.encode_folder import read_photos
from medi.photos.encoders import DEFAULT, load_encoder
from medi.runtime.progress import Silent


@dataclass(frozen=True)
class World:
    """Vectors of many classes, and how many of them play which part.

    Attributes:
        items: Vectors of all classes.
        known: Number of known classes, and of items of each to learn from.
        novel: Number of classes to be discovered.
        neither: Number of classes that nobody has seen.
        new: Further items of every class, which are to be recognised.
    """

    items: ImageSet
    known: tuple[int, int]
    novel: int
    neither: int
    new: int

    def part_of(self, label: int) -> str:
        """What a class plays, by its number in a draw."""
        return "known" if label < self.known[0] else "novel" if label < self.known[0] + self.novel else "neither"


def worlds() -> dict[str, World]:
    """The sets measured on."""
    return {
        "digits": World(digits(), (6, 40), 2, 2, 40),
        "letters": World(letters(), (20, 12), 5, 10, 8),
        "CIFAR-10": World(photos("cifar10", 10, 80), (6, 40), 2, 2, 35),
        "CIFAR-100": World(photos("cifar100", 40, 40), (20, 25), 5, 15, 15),
    }


def digits() -> ImageSet:
    """scikit-learn's handwritten digits, 8 x 8 pixels."""
    data = load_digits()
    names = tuple(map(str, range(10)))
    return ImageSet(torch.from_numpy(data.data).float(), torch.from_numpy(data.target).long(), names)


def letters() -> ImageSet:
    """Generated letters, 16 x 16 pixels."""
    glyphs = all_classes(load("glyphs"))
    return replace(glyphs, images=half_size_pixels(glyphs.images))


def photos(name: str, classes: int, each: int) -> ImageSet:
    """Features of the default encoder of the first photos of some classes, drawn once, read as `medi` reads files."""
    images = all_classes(load(name))
    drawn = torch.randperm(images.n_classes, generator=torch.Generator().manual_seed(0))[:classes]
    images = images.of_classes(drawn.tolist())
    encoder = load_encoder(DEFAULT, torch.device("cpu"))
    paths, labels = [], []
    with TemporaryDirectory() as folder:
        for label in range(classes):
            for index in (images.labels == label).nonzero().squeeze(1)[:each].tolist():
                paths.append(f"{index}.png")
                labels.append(label)
                Image.fromarray(images.images[index].permute(1, 2, 0).numpy()).save(Path(folder) / paths[-1])
        cache = PhotoCache(encoder.identity, Silent())
        read = read_photos(Path(folder), paths, encoder, cache, Silent(), title="")
    return ImageSet(read.arrays, torch.tensor(labels), images.class_names)


def draw(world: World, observations: int, seed: int) -> tuple[ImageSet, ImageSet, ImageSet]:
    """Known items, observations of novel classes, and new items of all classes; no item is in two of them.

    Classes are numbered anew in a random order: the first are known, the next novel, the last neither.
    """
    g = torch.Generator().manual_seed(seed)
    count = world.known[0] + world.novel + world.neither
    items = world.items.of_classes(torch.randperm(world.items.n_classes, generator=g)[:count].tolist())
    parts: dict[str, list[Tensor]] = {"known": [], "novel": [], "new": []}
    for label in range(count):
        members = (items.labels == label).nonzero().squeeze(1)
        members = members[torch.randperm(len(members), generator=g)]
        parts["new"].append(members[: world.new])
        part = world.part_of(label)
        if part != "neither":
            parts[part].append(members[world.new :][: world.known[1] if part == "known" else observations])
    known, novel, new = (
        ImageSet(items.images[index], items.labels[index], items.class_names)
        for index in map(torch.cat, parts.values())
    )
    return replace(known, class_names=items.class_names[: world.known[0]]), novel, new


def among_known(world: World, seed: int) -> World:
    """The known classes of a draw as a world of their own: some of them play novel, some neither."""
    known, _, _ = draw(world, 1, seed)
    if world.known[0] < 10:
        return World(known, (4, 25), 1, 1, 15)
    learnt_from = world.known[1] * 6 // 10
    return World(known, (12, learnt_from), 4, 4, world.known[1] - learnt_from)


def score(
    world: World, answers: Sequence[Recognised], truth: Sequence[int], names: Sequence[str], groups: Sequence[int]
) -> dict[str, float | None]:
    """Fractions of the new items: called none, by what they are, and right among those answered.

    Args:
        world: Which classes play which part.
        answers: What was said of each new item.
        truth: The class of each.
        names: Of the known classes.
        groups: The class that each group stands for.
    """
    none: dict[str, list[bool]] = {"known": [], "novel": [], "neither": []}
    right = []
    for answer, label in zip(answers, truth, strict=True):
        part = world.part_of(label)
        none[part].append(answer.kind == "none")
        if part != "neither" and answer.kind != "none":
            said = groups[int(answer.label)] if answer.kind == "novel" else names.index(answer.label)
            right.append(said == label)
    return {f"none of {part}": sum(values) / len(values) for part, values in none.items()} | {
        "right of answered": sum(right) / len(right) if right else None
    }
