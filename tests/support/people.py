"""Folders of photos such as people have, and the program run on them."""

import csv
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

PALETTES = {"reds": (200, 40, 40), "greens": (40, 180, 40), "blues": (40, 40, 200), "greys": (128, 128, 128)}


@dataclass
class Result:
    code: int
    out: str
    err: str


def tinted(path: Path, colour, seed: int) -> Path:
    """A photo of a colour, in a texture of its own."""
    generator = np.random.default_rng(seed)
    pixels = generator.normal(0, 25, (6, 6, 3)) + np.array(colour)
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).resize((64, 48), Image.Resampling.BICUBIC)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
    return path


def discover(folders, *more, out="out"):
    return ("discover", "--known", folders / "known", "--novel", folders / "novel", "--out", folders / out, *more)


def program(words, folder):
    """The program, for a process of its own; what it prints goes into files."""
    from medi.cli.main import run

    rank = os.environ.get("RANK", "")
    sys.stdout = (folder / f"stdout{rank}").open("w")
    sys.stderr = (folder / f"stderr{rank}").open("w")
    sys.argv = ["medi", *map(str, words)]
    run()


def rows_of(path):
    with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        return list(csv.DictReader(file))


def facts_of(folders, out="out"):
    return json.loads((folders / out / "discovery.json").read_text())


def refused(result, *parts):
    """Exit code 2 and exactly one line on stderr that has the parts in it."""
    assert result.code == 2, result
    assert len(result.err.strip().splitlines()) == 1, result.err
    for part in parts:
        assert str(part) in result.err, result.err
