"""Draws of known classes and pools from sets whose truth is known, for `discover.py` and `glance.py`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from script import Parser, positive, some_of
from torch import Tensor
from torch.nn.functional import avg_pool2d

from medi.core.progress import Reporter
from medi.data.benchmarks import load
from medi.data.items import Items
from medi.photos.cache import PhotoCache
from medi.photos.encode_folder import read_photos
from medi.photos.encoders import DEFAULT_ENCODER, Encoder, load_encoder
from medi.photos.folders import class_of, find_photos

KNOWN_CLASSES, KNOWN_ITEMS, FURTHER, ONE_OFFS = 20, 20, 10, 10
"""Known classes and the most items of each; further items of a novel class to be recognised; most one-offs."""
NOVEL_ITEMS = 5
"""Items of a novel class; 1 to twice as many where sizes are unequal."""
CLASSES_READ = 150
"""Classes of Omniglot that are encoded, of each part."""


@dataclass(frozen=True)
class Source:
    """Vectors with classes: what known classes are drawn from, and what novel ones are; often the same."""

    known: NDArray[np.float32]
    known_labels: NDArray[np.int64]
    novel: NDArray[np.float32]
    novel_labels: NDArray[np.int64]
    shared: bool


Sources = dict[str, Callable[[], Source]]
"""How each set is read."""


@dataclass(frozen=True)
class Draw:
    """One problem.

    Attributes:
        known: Labelled items.
        pool: (n, d) the pool: novel items, in a mixed pool also items of known classes and one-offs.
        truth: (n,) classes from 0 on, -2 - c for known class c; one-offs have numbers of their own.
        one_off: (n,) which items are the only ones of their class.
        further: Other items of the novel classes, and their classes.
        strangers: Items of classes that are nowhere in the draw.
    """

    known: Items
    pool: NDArray[np.float32]
    truth: NDArray[np.int64]
    one_off: NDArray[np.bool_]
    further: tuple[NDArray[np.float32], NDArray[np.int64]]
    strangers: NDArray[np.float32]


def draw(source: Source, seed: int, groups: int, *, unequal: bool, mixed: bool, largest: int | None = None) -> Draw:
    """A draw; the novel classes and their items are the same in pure and mixed pools of one seed.

    Args:
        source: What to draw from.
        seed: Of the draw.
        groups: Number of novel classes.
        unequal: Whether their sizes differ.
        mixed: Whether the pool also holds items of known classes, about as many as novel ones, and one-offs.
        largest: The most items of a class where sizes are unequal, `NOVEL_ITEMS` at most. The known classes that are
            in a mixed pool then are as many as the novel ones and of such sizes too. None: twice `NOVEL_ITEMS`, and
            items of all known classes.
    """
    generator = np.random.default_rng(seed)
    classes = generator.permutation(np.unique(source.known_labels))
    known_classes = min(KNOWN_CLASSES, len(classes) // 2 if source.shared else len(classes))
    old, rest = classes[:known_classes], classes[known_classes:]
    if not source.shared:
        rest = generator.permutation(np.unique(source.novel_labels))
    new, spare = rest[:groups], rest[groups:]
    most = largest or 2 * NOVEL_ITEMS
    sizes = generator.integers(1, most + 1, groups) if unequal else np.full(groups, NOVEL_ITEMS)

    def items(values: NDArray[np.float32], labels: NDArray[np.int64], c: int) -> NDArray[np.float32]:
        return generator.permutation(values[labels == c])

    novel = [items(source.novel, source.novel_labels, c) for c in new]
    others = [items(source.novel, source.novel_labels, c) for c in spare[: 2 * ONE_OFFS]]
    mine = [items(source.known, source.known_labels, c) for c in old]
    pool, truth = (
        [some[:size] for some, size in zip(novel, sizes, strict=True)],
        [np.full(min(size, len(some)), number) for number, (some, size) in enumerate(zip(novel, sizes, strict=True))],
    )
    each = min(KNOWN_ITEMS, min(map(len, mine)) - NOVEL_ITEMS - 1)
    one_off = [np.zeros(len(part), bool) for part in pool]
    if mixed:
        present = np.full(known_classes, sum(map(len, pool)) // known_classes)
        present[: sum(map(len, pool)) % known_classes] += 1
        if largest:
            present = generator.integers(1, largest + 1, known_classes) * (np.arange(known_classes) < groups)
        for number, (some, size) in enumerate(zip(mine, np.minimum(present, NOVEL_ITEMS + 1), strict=True)):
            pool.append(some[each : each + size])
            truth.append(np.full(len(pool[-1]), -2 - number))
            one_off.append(np.zeros(len(pool[-1]), bool))
        for number, some in enumerate(others[:ONE_OFFS]):
            pool.append(some[:1])
            truth.append(np.array([groups + number]))
            one_off.append(np.array([True]))
    order = generator.permutation(sum(map(len, pool)))
    labels = np.repeat(np.arange(known_classes), each)
    names = tuple(f"known {c}" for c in range(known_classes))
    further = [some[size : size + FURTHER] for some, size in zip(novel, sizes, strict=True)]
    strange = [some[1:2] for some in others[ONE_OFFS:]] or [some[1:2] for some in others]
    return Draw(
        Items(np.concatenate([some[:each] for some in mine]), labels, names),
        np.concatenate(pool)[order],
        np.concatenate(truth)[order],
        np.concatenate(one_off)[order],
        (
            np.concatenate(further),
            np.concatenate([np.full(len(part), number) for number, part in enumerate(further)]),
        ),
        np.concatenate(strange) if strange else source.novel[:0],
    )


def photo_folder(root: Path, reporter: Reporter) -> Source:
    """Photos in class folders, by the default encoder."""
    found, encoder = find_photos(root, "--photos"), load_encoder(DEFAULT_ENCODER, "cpu")
    read = read_photos(found, encoder, PhotoCache(encoder.identity, reporter), reporter)
    names = [class_of(path) or "" for path in read.paths]
    labels = np.unique(names, return_inverse=True)[1].astype(np.int64)
    return _shared(read.arrays, labels)


def encoded(name: str, known_each: int, novel_each: int, reporter: Reporter) -> Source:
    """A benchmark's images, enlarged for the default encoder."""
    benchmark, encoder = load(name), load_encoder(DEFAULT_ENCODER, "cpu")
    parts = []
    for images, each in ((benchmark.known, known_each), (benchmark.novel, novel_each)):
        classes = np.random.default_rng(0).permutation(images.n_classes)[:CLASSES_READ].tolist()
        index = torch.cat([(images.labels == c).nonzero().squeeze(1)[:each] for c in classes])
        parts += [_encode(images.images[index], encoder, reporter), images.labels[index].numpy()]
    return Source(parts[0], parts[1], parts[2], parts[3], shared=False)


def glyphs() -> Source:
    """Letters as 16 x 16 pixels."""
    benchmark = load("glyphs")
    known, novel = ((images.images, images.labels.numpy()) for images in (benchmark.known, benchmark.novel))

    def pixels(images: Tensor) -> NDArray[np.float32]:
        return (avg_pool2d(images.float() / 255, 2)).flatten(1).numpy()

    return Source(pixels(known[0]), known[1], pixels(novel[0]), novel[1], shared=False)


def digits() -> Source:
    """scikit-learn's digits as 64 pixels."""
    from sklearn.datasets import load_digits

    values, labels = load_digits(return_X_y=True)
    return _shared(values.astype(np.float32), labels.astype(np.int64))


def sources(photos: Path | None, reporter: Reporter) -> Sources:
    """How each set is read."""
    found: Sources = {}
    if photos is not None:
        found[photos.name] = lambda: photo_folder(photos, reporter)
    return found | {
        "cifar100": lambda: encoded("cifar100", 40, 60, reporter),
        "omniglot": lambda: encoded("omniglot", 20, 20, reporter),
        "glyphs": glyphs,
        "digits": digits,
    }


def add_arguments(parser: Parser, draws: int, first: int) -> Parser:
    """What is drawn from, and how often."""
    parser.add_argument("--photos", type=Path, help="folder of photos, one subfolder a class")
    parser.add_argument("--sets", help="names of sets, with commas; all unless given")
    parser.add_argument("--draws", type=positive, default=draws, help="draws of each case")
    parser.add_argument("--first", type=int, default=first, help="number of the first draw")
    return parser


def read_sets(sources: Callable[[Path | None, Reporter], Sources], options: Namespace) -> dict[str, Source]:
    """The sets that are asked for."""
    available = sources(options.photos, Reporter())
    names = some_of(list(available))(options.sets) if options.sets else list(available)
    return {name: available[name]() for name in names}


def _shared(values: NDArray[np.float32], labels: NDArray[np.int64]) -> Source:
    return Source(values, labels, values, labels, shared=True)


def _encode(images: Tensor, encoder: Encoder, reporter: Reporter) -> NDArray[np.float32]:
    features = []
    with reporter.track("encoding", len(images)) as tick:
        for start in range(0, len(images), 32):
            enlarged = np.stack([_enlarged(image, encoder.cut.side) for image in images[start : start + 32]])
            features.append(encoder.encode(enlarged))
            tick(start)
    return np.concatenate(features)


def _enlarged(image: Tensor, side: int) -> NDArray[np.uint8]:
    """A square colour image (3, side, side) of a small one; ink is dark on white."""
    pixels = image.permute(1, 2, 0).numpy()
    if pixels.shape[2] == 1:
        pixels = 255 - np.repeat(pixels, 3, 2)
    large = Image.fromarray(pixels).resize((side, side), Image.Resampling.BICUBIC)
    return np.asarray(large).transpose(2, 0, 1)
