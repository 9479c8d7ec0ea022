"""`rules`: framed objects that can be grouped by colour, by shape or by frame, to study samplers of tasks.

A class is one value under one rule: "colour: red" holds red things of any shape in any frame, "shape: star" stars of
any colour. A red star may be an item of either class, and nothing in the picture says which: what is to be discovered
depends on the rule that the classes of a task share, which is the point of the figure on clustering rules in Chi et
al. 2022, "Meta Discovery". A task whose classes come from different rules is ambiguous, on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageDraw

from medi.core.errors import InputError
from medi.data.facts import SIZE
from medi.data.imageset import ImageSet

Points = npt.NDArray[np.float64]  # (n, 2), x to the right and y down, within -1 to 1


class Frame(NamedTuple):
    """Strokes around the object and their width in pixels."""

    strokes: list[Points]
    width: float


def _arc(
    start: float, stop: float, *, n: int = 32, radius: float = 1.0, centre: tuple[float, float] = (0, 0)
) -> Points:
    """(n, 2) points on a circle, angles in turns."""
    angle = 2 * np.pi * np.linspace(start, stop, n)
    return np.array(centre) + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _heart() -> Points:
    """The usual parametric heart."""
    t = np.linspace(0, 2 * np.pi, 40)
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return np.stack([16 * np.sin(t) ** 3, -y - 2], axis=1) / 16


def _dashes(corners: Points, n: int, share: float) -> list[Points]:
    """Cut each side of a closed polygon (k, 2) into n dashes that take the given share of it."""
    starts = np.arange(n)[:, None] / n + (1 - share) / (2 * n)
    dashes = []
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        dashes += list(np.stack([a + (b - a) * starts, a + (b - a) * (starts + share / n)], axis=1))
    return dashes


def _closed(points: Points) -> Points:
    """The stroke around a polygon; it ends on the second point, so that the first corner is joined too."""
    return np.concatenate([points, points[:2]])


_SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
_CORNER = np.array([[-1.0, -0.5], [-1.0, -1.0], [-0.5, -1.0]])
_CROSS = np.array(
    [[-3, -1], [-1, -1], [-1, -3], [1, -3], [1, -1], [3, -1], [3, 1], [1, 1], [1, 3], [-1, 3], [-1, 1], [-3, 1]]
)
_ARROW = np.array([[-1.1, -0.3], [0.1, -0.3], [0.1, -0.9], [1.1, 0.0], [0.1, 0.9], [0.1, 0.3], [-1.1, 0.3]])

# In each of the three tables the first values are the known ones.
_COLOURS: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        "red": (225, 35, 35),
        "green": (35, 165, 60),
        "blue": (45, 75, 235),
        "yellow": (245, 225, 45),
        "magenta": (225, 55, 215),
        "orange": (250, 140, 20),
        "cyan": (60, 220, 225),
        "brown": (130, 75, 35),
        "pink": (255, 175, 195),
        "purple": (110, 50, 150),
    }
)
_SHAPES: Mapping[str, Points] = MappingProxyType(
    {
        "disc": _arc(0, 1),
        "square": 0.85 * _SQUARE,
        "triangle": _arc(-0.25, 5 / 12, n=3, radius=1.15, centre=(0, 0.2)),
        "star": _arc(-0.25, 0.65, n=10) * np.where(np.arange(10) % 2, 0.5, 1.2)[:, None],
        "cross": _CROSS / 3,
        "heart": _heart(),
        "ring": np.concatenate([_arc(0, 1), _arc(1, 0, radius=0.55)]),
        "arrow": _ARROW,
        "hourglass": 0.95 * _SQUARE[[0, 1, 3, 2]],
        "crescent": 1.1
        * np.concatenate([_arc(0.12, 0.88, centre=(0.15, 0)), _arc(0.80, 0.20, radius=0.72, centre=(0.65, 0))]),
    }
)
_FRAMES: Mapping[str, Frame] = MappingProxyType(
    {
        "line": Frame([_closed(_SQUARE)], 1.5),
        "circle": Frame([_closed(_arc(0, 1))], 1.5),
        "dashes": Frame(_dashes(_SQUARE, n=3, share=0.55), 1.5),
        "corners": Frame([_CORNER * flip for flip in np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])], 1.5),
        "rails": Frame([_SQUARE[:2], _SQUARE[2:]], 1.5),
        "thick": Frame([_closed(0.93 * _SQUARE)], 3.5),
        "diamond": Frame([_closed(_arc(0, 0.75, n=4, radius=1.1))], 1.5),
        "double": Frame([_closed(_SQUARE), _closed(0.76 * _SQUARE)], 1.0),
        "beads": Frame([_arc(a, a + 0.02, n=2) for a in np.arange(10) / 10], 2.5),
        "posts": Frame([_SQUARE[1:3], _SQUARE[[3, 0]]], 1.5),
    }
)

COLOURS = tuple(_COLOURS)
SHAPES = tuple(_SHAPES)
FRAMES = tuple(_FRAMES)

RULES: Mapping[str, tuple[str, ...]] = MappingProxyType({"colour": COLOURS, "shape": SHAPES, "frame": FRAMES})
"""The values of each rule; attributes of items are indices into them, and "rule" an index into the rules."""

_KNOWN_VALUES = 5  # of each rule; the others are novel
_FINE = 4  # images are drawn at four times the size and reduced, for smooth edges
_PAPER, _CHALK = (25, 25, 25), (215, 215, 215)  # background, frame
_OBJECT_RADIUS, _FRAME_RADIUS = 7.0, 13.0  # pixels of SIZE
_NOISE = 8.0


def rules(seed: int = 0, *, known_images: int = 100, novel_images: int = 40) -> tuple[ImageSet, ImageSet]:
    """Draw the known and the novel classes of all three rules.

    The two sets share no value: a novel item has a novel colour, shape and frame, whichever of them is its class.

    Returns:
        (known, novel), labelled from 0 each, rule by rule. Images are (n, 3, 32, 32) uint8; the attributes "colour",
        "shape", "frame" and "rule" are (n,) int64 indices into `COLOURS`, `SHAPES`, `FRAMES` and the keys of `RULES`.
    """
    for name, count in (("known_images", known_images), ("novel_images", novel_images)):
        if count < 1:
            raise InputError(f"{name} is {count}: a class needs at least one image.")
    for_known, for_novel = np.random.default_rng(seed).spawn(2)
    return (
        _items(range(_KNOWN_VALUES), known_images, for_known),
        _items(range(_KNOWN_VALUES, len(COLOURS)), novel_images, for_novel),
    )


def _items(values: range, images: int, generator: np.random.Generator) -> ImageSet:
    """Items of every class under every rule, all their attributes among the given values."""
    classes = [(rule, value) for rule in range(len(RULES)) for value in values]
    labels = np.repeat(np.arange(len(classes), dtype=np.int64), images)
    rule, value = np.array(classes, dtype=np.int64)[labels].T
    attributes = generator.integers(values.start, values.stop, (len(labels), len(RULES)))
    attributes[np.arange(len(labels)), rule] = value
    drawn = np.stack([_draw(colour, shape, frame, generator) for colour, shape, frame in attributes])
    noisy = drawn + generator.normal(0, _NOISE, drawn.shape)
    return ImageSet(
        torch.from_numpy(noisy.clip(0, 255).round().astype(np.uint8)).permute(0, 3, 1, 2).contiguous(),
        torch.from_numpy(labels),
        tuple(f"{name}: {RULES[name][value]}" for name in RULES for value in values),
        dict(zip((*RULES, "rule"), torch.from_numpy(np.column_stack([attributes, rule])).T.contiguous(), strict=True)),
    )


def _draw(colour: int, shape: int, frame: int, generator: np.random.Generator) -> npt.NDArray[np.uint8]:
    """One picture (SIZE, SIZE, 3), its parts moved, scaled and turned a little."""
    canvas = Image.new("RGB", (_FINE * SIZE, _FINE * SIZE), _PAPER)
    draw = ImageDraw.Draw(canvas)
    middle = SIZE / 2 + generator.uniform(-1, 1, 2)

    strokes, width = _FRAMES[FRAMES[frame]]
    turn = _turn(generator, degrees=4) * _FRAME_RADIUS * generator.uniform(0.92, 1.03)
    for stroke in strokes:
        draw.line(_path(stroke @ turn + middle), fill=_CHALK, width=round(_FINE * width), joint="curve")

    turn = _turn(generator, degrees=12) * _OBJECT_RADIUS * generator.uniform(0.85, 1.1)
    shade = generator.uniform(0.88, 1.0)
    fill = tuple(round(shade * channel) for channel in _COLOURS[COLOURS[colour]])
    draw.polygon(_path(_SHAPES[SHAPES[shape]] @ turn + middle + generator.uniform(-0.8, 0.8, 2)), fill=fill)
    return np.asarray(canvas.reduce(_FINE))


def _turn(generator: np.random.Generator, degrees: float) -> Points:
    """A random rotation (2, 2) by at most so many degrees."""
    angle = np.deg2rad(generator.uniform(-degrees, degrees))
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def _path(points: Points) -> list[tuple[float, float]]:
    """Points (n, 2) in pixels of SIZE as Pillow wants them, on the fine canvas."""
    return [(x, y) for x, y in (_FINE * points).tolist()]
