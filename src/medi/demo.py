"""The main job on letters that come with the program: folders are written, sorted by `medi discover`, and checked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from medi.core.arrays import Ints
from medi.core.errors import unknown_name
from medi.core.files import make_folder
from medi.core.progress import Reporter
from medi.core.reading import input_errors
from medi.discover.arguments import Arguments, Manner
from medi.discover.output import CLUSTERS, read_csv
from medi.discover.run import run_discover
from medi.grouping.engine import ALONE, known_label
from medi.grouping.lines import right_lines
from medi.photos.encoders import DEFAULT_ENCODER
from medi.registry import PLAIN
from medi.report.page import render

ENCODERS = {PLAIN: DEFAULT_ENCODER, "mp": "conv4"}
"""What letters are compared by: the default encoder, or a network that the paper's MP trains on the known ones."""
LETTERS, FOUND = "letters", "found"
"""Folders of the output: what is sorted, and what came out."""
TILE_SIDE, OF_KNOWN, OF_NOVEL = 48, 14, 5
"""Pixels of a tile, and tiles of a known and of an unseen letter in the sheet."""
HIDDEN, LETTERS_HIDDEN = 2, 10
"""Drawings of a known letter that are put into the pool, and how many letters have some there."""


class Drawing(NamedTuple):
    """One tile of the sheet: its letter as a label of the engine, and whether it goes into the pool."""

    name: str
    label: int
    in_pool: bool
    tile: Image.Image


class Demonstrated(NamedTuple):
    """What came out: the facts of `discovery.json`, where the results are, and how many of how many are right."""

    facts: Mapping[str, Any]
    found: Path
    right: int
    drawings: int


def run_demo(out: Path, method: str, reporter: Reporter) -> Demonstrated:
    """Write the folders, sort the pool and count what came out right; the whole work is done anew each time."""
    if method not in ENCODERS:
        raise unknown_name("value of --method", method, tuple(ENCODERS))
    letters, found = make_folder(out) / LETTERS, out / FOUND
    with input_errors(letters, "empty"):
        if letters.exists():
            shutil.rmtree(letters)
    truth = write_letters(letters)
    arguments = Arguments(letters / "known", letters / "novel", found, method=method, encoder=ENCODERS[method])
    facts = run_discover(arguments, render, reporter, Manner(force=True))
    assert facts is not None
    right = right_lines(np.array(list(truth.values())), _labels(found, list(truth)))
    return Demonstrated(facts, found, int(right.sum()), len(truth))


def write_letters(folder: Path) -> dict[str, int]:
    """Write known letters into class folders, and the pool in a random order; the truth of the pool by file."""
    drawings = list(_drawings())
    for number, drawing in enumerate(drawings):
        if not drawing.in_pool:
            drawing.tile.save(make_folder(folder / "known" / drawing.name) / f"{number:03}.png")
    pool = [drawing for drawing in drawings if drawing.in_pool]
    truth = {}
    for number, place in enumerate(np.random.default_rng(0).permutation(len(pool)).tolist()):
        pool[place].tile.save(make_folder(folder / "novel") / f"{number:02}.png")
        truth[f"{number:02}.png"] = pool[place].label
    return truth


def _drawings() -> Iterator[Drawing]:
    """The tiles of the sheet, row by row."""
    data = files("medi.data")
    names = json.loads((data / "letters.json").read_text(encoding="utf-8"))
    with (data / "letters.png").open("rb") as file:
        sheet = Image.open(file).convert("L")
    tiles = {"known": OF_KNOWN, "novel": OF_NOVEL, "alone": 1}
    rows = [(kind, number, name) for kind in tiles for number, name in enumerate(names[kind])]
    # Folders of known classes are sorted by name, and a label is a place in that order.
    order = {name: place for place, name in enumerate(sorted(names["known"]))}
    for row, (kind, number, name) in enumerate(rows):
        for column in range(tiles[kind]):
            box = (TILE_SIDE * column, TILE_SIDE * row, TILE_SIDE * (column + 1), TILE_SIDE * (row + 1))
            kept = kind == "known" and (number >= LETTERS_HIDDEN or column < OF_KNOWN - HIDDEN)
            label = {"known": known_label(order.get(name, 0)), "novel": number, "alone": ALONE}[kind]
            yield Drawing(name, label, not kept, sheet.crop(box))


def _labels(found: Path, names: list[str]) -> Ints:
    """What `clusters.csv` says of each file, as labels of the engine."""
    lines = {line["path"]: line for line in read_csv(found / CLUSTERS)}
    known = sorted(path.name for path in (found.parent / LETTERS / "known").iterdir())
    label_of = {"": ALONE} | {name: known_label(c) for c, name in enumerate(known)}
    return np.array([int(lines[name]["cluster"] or label_of[lines[name]["known"]]) for name in names])
