"""Draw the letters that `medi demo` sorts: `python experiments/letters.py` writes src/medi/data/letters.png.

A row of tiles is a letter, and its name is in `letters.json`: known letters first, then unseen ones, then one-offs.
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps

from medi.data.glyphs import distinct_letters, moved

KNOWN = "ABDEFGHKLMNPQRSWYZЖФ"
NOVEL = "ΔΞΨΩՁՖკჭ"
ONE_OFFS = "λԻღჰ"
KNOWN_TILES, NOVEL_TILES = 14, 5
SIDE = 48
GREYS = 16
HERE = Path(__file__).resolve().parents[1] / "src" / "medi" / "data"


def main() -> None:
    """Write both files."""
    letters, _ = distinct_letters()
    counts = [(KNOWN, KNOWN_TILES), (NOVEL, NOVEL_TILES), (ONE_OFFS, 1)]
    numbers = {letter: number for number, letter in enumerate(letters)}
    missing = [letter for some, _ in counts for letter in some if letter not in numbers]
    if missing:
        raise SystemExit(f"these letters look like others and were left out: {' '.join(missing)}")
    rows = [(letter, count) for some, count in counts for letter in some]
    sheet = Image.new("L", (SIDE * KNOWN_TILES, SIDE * len(rows)), 255)
    generator = np.random.default_rng(0)
    for row, (letter, count) in enumerate(rows):
        for column, tile in enumerate(drawings(numbers[letter], count, SIDE, generator)):
            sheet.paste(ImageOps.invert(Image.fromarray(tile)), (SIDE * column, SIDE * row))
    sheet.quantize(GREYS).save(HERE / "letters.png", optimize=True, bits=4)
    kinds = {"known": KNOWN, "novel": NOVEL, "alone": ONE_OFFS}
    names = {kind: [name_of(letter) for letter in some] for kind, some in kinds.items()}
    (HERE / "letters.json").write_text(json.dumps(names, indent=1) + "\n", encoding="utf-8")


def drawings(letter: int, count: int, side: int, generator: np.random.Generator) -> list[NDArray[np.uint8]]:
    """So many drawings (side, side) of the letter of a number, ink bright, each in another face as far as they go."""
    templates = distinct_letters()[1][letter]
    faces = generator.permutation(np.flatnonzero(templates.any(axis=(1, 2))))
    fine = torch.from_numpy(templates[np.resize(faces, count)])[:, None]
    large = [Image.fromarray(image[0]) for image in moved(fine, generator).round().to(torch.uint8).numpy()]
    return [np.asarray(image.resize((side, side), Image.Resampling.BICUBIC)) for image in large]


def name_of(letter: str) -> str:
    """A folder's name for a letter: `greek omega`."""
    script, _, rest = unicodedata.name(letter).lower().partition(" ")
    return f"{script} {rest.rpartition('letter ')[2]}"


if __name__ == "__main__":
    main()
