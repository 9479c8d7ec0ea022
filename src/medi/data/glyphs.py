"""`glyphs`: letters in the typefaces that matplotlib ships, the set that is always at hand.

A class is the shape of a letter, so letters are scaled to one size and only one of several look-alikes is kept: of
c and C, of the o of four alphabets, of H and the Cyrillic н. With matplotlib 3.11.2 and Pillow 13.0.0 there are 350
known letters (Latin, Cyrillic) and 188 novel ones (Greek, Armenian, Georgian), of which 182 and 94 are kept.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from matplotlib import get_data_path
from matplotlib.ft2font import FT2Font
from PIL import Image, ImageFont
from scipy.ndimage import grey_dilation
from torch import Tensor

from medi.core.errors import InputError
from medi.data.facts import SIZE
from medi.data.imageset import ImageSet

KNOWN_SCRIPTS = ("Latin", "Cyrillic")
NOVEL_SCRIPTS = ("Greek", "Armenian", "Georgian")

FACES = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-BoldOblique",
    "DejaVuSans-Oblique",
    "DejaVuSansMono",
    "DejaVuSansMono-Bold",
    "DejaVuSansMono-BoldOblique",
    "DejaVuSansMono-Oblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "STIXGeneral",
    "STIXGeneralBol",
)
"""The text faces. True italics are left out, for their Cyrillic letters are other shapes (т is drawn as m, и as u);
so are the Display, Size and NonUni files, which hold symbols, and Computer Modern, which is not in Unicode order."""

IMAGES_PER_CLASS = 20
"""Five observations and fifteen queries."""

_UPRIGHT = tuple(FACES.index(face) for face in ("DejaVuSans", "DejaVuSansMono", "DejaVuSerif"))
_FEWEST_FACES = 10
_PHONETIC = range(0x250, 0x2B0)
_ODDITIES = range(0x1D00, 0x110000)  # superscripts, halves of letters, letters on their side

_FINE = 2 * SIZE  # letters are drawn at twice the size and reduced after they are rotated
_LETTER = round(0.81 * _FINE)  # the longer side of a letter; the rest is room to rotate

_TOLERANCE = 2  # pixels of SIZE by which strokes of the same letter differ, between c and C say
_LOOK_ALIKE = 0.035  # tuned by eye on sheets of pairs: U and u, Ҫ and Ϛ lie below; З and Э, F and P above

_ROTATION, _SCALES, _SHEAR = np.deg2rad(8), (0.85, 1.05), 0.1
_PIECE = 1024


def glyphs(seed: int = 0) -> tuple[ImageSet, ImageSet]:
    """Draw the known and the novel letters, 20 images of each, in at least ten typefaces each.

    The letters are found and compared once a process; each call draws new tensors, so they may be changed freely.

    Returns:
        (known, novel), labelled from 0 each. Images are (n, 1, 32, 32) uint8, ink bright; the attribute "face" is an
        index into `FACES`. The classes are the same for every seed.
    """
    letters, templates = distinct_letters()
    known = sum(_script(letter) in KNOWN_SCRIPTS for letter in letters)
    generator = np.random.default_rng(seed)
    return (
        _draw(letters[:known], templates[:known], generator),
        _draw(letters[known:], templates[known:], generator),
    )


def _draw(letters: tuple[str, ...], templates: npt.NDArray[np.uint8], generator: np.random.Generator) -> ImageSet:
    """Jitter templates (classes, faces, _FINE, _FINE), blank where a face lacks the letter, into a set of images."""
    missing = ~templates.any(axis=(2, 3))
    # The faces that have the letter in random order, around again until there are enough.
    order = np.argsort(generator.random(missing.shape) + missing, axis=1)
    turn = np.arange(IMAGES_PER_CLASS) % (~missing).sum(axis=1, keepdims=True)
    faces = np.take_along_axis(order, turn, axis=1).ravel()
    labels = np.repeat(np.arange(len(letters), dtype=np.int64), IMAGES_PER_CLASS)
    chosen = torch.from_numpy(templates[labels, faces])
    return ImageSet(
        F.avg_pool2d(moved(chosen[:, None], generator), _FINE // SIZE).round().to(torch.uint8),
        torch.from_numpy(labels),
        tuple(unicodedata.name(letter).capitalize() for letter in letters),
        {"face": torch.from_numpy(faces)},
    )


def moved(fine: Tensor, generator: np.random.Generator) -> Tensor:
    """Rotate, scale and shear (n, 1, _FINE, _FINE) at random."""
    angle = generator.uniform(-_ROTATION, _ROTATION, len(fine))
    scale = generator.uniform(*_SCALES, len(fine))
    shear = generator.uniform(-_SHEAR, _SHEAR, len(fine))
    cos, sin, still = np.cos(angle), np.sin(angle), np.zeros(len(fine))
    matrix = np.stack([cos, cos * shear - sin, still, sin, sin * shear + cos, still], axis=1) / scale[:, None]
    theta = torch.from_numpy(matrix).float().view(-1, 2, 3)
    images = []
    # In pieces, because the sampling grids take several times the memory of the images.
    for piece in torch.arange(len(fine)).chunk(-(-len(fine) // _PIECE)):
        grid = F.affine_grid(theta[piece], [len(piece), 1, _FINE, _FINE], align_corners=False)
        images.append(F.grid_sample(fine[piece].float(), grid, align_corners=False))
    return torch.cat(images)


@cache
def distinct_letters() -> tuple[tuple[str, ...], npt.NDArray[np.uint8]]:
    """The letters, known before novel, and their templates (letters, faces, _FINE, _FINE), which are read-only."""
    letters, templates = _letters()
    coarse = templates[:, _UPRIGHT].reshape(len(letters), len(_UPRIGHT), SIZE, 2, SIZE, 2).mean(axis=(3, 5)) / 255
    # Alike in one typeface is alike: I and l differ in serif faces only.
    difference = np.min([_difference(coarse[:, face]) for face in range(len(_UPRIGHT))], axis=0)
    kept: list[int] = []
    for letter in range(len(letters)):
        # First come, first kept: a novel letter gives way to a known one.
        if (difference[letter, kept] > _LOOK_ALIKE).all():
            kept.append(letter)
    templates = templates[kept]
    templates.flags.writeable = False
    return tuple(letters[letter] for letter in kept), templates


def _difference(ink: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How far letters differ: the share of one's ink that lies nowhere near ink of the other, either way round.

    From ink (n, SIZE, SIZE), at most 1, to (n, n): 0 where only the thickness differs, 1 without ink in common.
    """
    y, x = np.mgrid[-_TOLERANCE : _TOLERANCE + 1, -_TOLERANCE : _TOLERANCE + 1]
    disc = (x**2 + y**2 <= _TOLERANCE**2)[None]
    far = 1 - grey_dilation(ink, footprint=disc).reshape(len(ink), -1)
    ink = ink.reshape(len(ink), -1)
    lacking: npt.NDArray[np.float64] = (ink / ink.sum(axis=1, keepdims=True)) @ far.T
    return np.maximum(lacking, lacking.T)


def _letters() -> tuple[list[str], npt.NDArray[np.uint8]]:
    """Letters that enough faces have, known before novel, and their templates (letters, faces, _FINE, _FINE)."""
    # What a face really has, not an empty box in its place.
    characters = [set(map(chr, FT2Font(_path(face)).get_charmap())) for face in FACES]
    scripts = KNOWN_SCRIPTS + NOVEL_SCRIPTS
    letters = sorted(filter(_is_letter, set().union(*characters)), key=lambda c: (scripts.index(_script(c)), c))
    templates = np.zeros((len(letters), len(FACES), _FINE, _FINE), dtype=np.uint8)
    for face, name in enumerate(FACES):
        font = ImageFont.truetype(_path(name), _FINE, layout_engine=ImageFont.Layout.BASIC)
        for letter, character in enumerate(letters):
            if character in characters[face]:
                templates[letter, face] = _render(character, font)
    found = templates.max(axis=(2, 3)) > 0
    enough = (found.sum(axis=1) >= _FEWEST_FACES) & found[:, _UPRIGHT].all(axis=1)
    return [letters[i] for i in np.flatnonzero(enough)], templates[enough]


def _render(character: str, font: ImageFont.FreeTypeFont) -> npt.NDArray[np.uint8]:
    """A letter in the middle of (_FINE, _FINE), its longer side _LETTER; blank if the face has no ink for it."""
    canvas = Image.new("L", (_FINE, _FINE))
    mask = font.getmask(character, mode="L")
    drawn = Image.frombytes("L", mask.size, bytes(mask))
    box = drawn.getbbox()
    if box is not None:
        drawn = drawn.crop(box)
        ratio = _LETTER / max(drawn.size)
        drawn = drawn.resize((max(1, round(drawn.width * ratio)), max(1, round(drawn.height * ratio))))
        canvas.paste(drawn, ((_FINE - drawn.width) // 2, (_FINE - drawn.height) // 2))
    return np.asarray(canvas)


def _path(face: str) -> str:
    """The file of a face."""
    path = Path(get_data_path()) / "fonts" / "ttf" / f"{face}.ttf"
    if not path.is_file():
        raise InputError(f"typeface '{path}' is missing: it comes with matplotlib; reinstall matplotlib with pip.")
    return str(path)


def _script(character: str) -> str:
    """The first word of its Unicode name, such as "Greek"; empty for a character without a name."""
    return unicodedata.name(character, "").partition(" ")[0].capitalize()


def _is_letter(character: str) -> bool:
    """Whether it is a letter of our scripts, and not one with an accent added or a variant of another."""
    code = ord(character)
    # A phonetic letter with a leg or a hook added is the plain one again (ʈ and t) once it is scaled to the same size.
    lengthened = code in _PHONETIC and " WITH " in unicodedata.name(character)
    return (
        code not in _ODDITIES
        and not lengthened
        and unicodedata.category(character) in ("Lu", "Ll")
        and not unicodedata.decomposition(character)
        and _script(character) in KNOWN_SCRIPTS + NOVEL_SCRIPTS
    )
