"""An encoder of the user's own: `--encoder path/to/file.py:Name`.

`Name` is a function from images uint8 (n, 3, side, side) to features (n, d), or a class whose instances, made without
arguments, are such functions. An attribute `side` (224 where there is none) says how many pixels it wants.

The file stands alone: it is run without its path, so that its text is all that a saved model has to keep. A model may
come from somebody else, and its text is a program. So it is run only where it was named on the command line before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from medi.core.errors import InputError
from medi.core.files import make_folder
from medi.core.from_file import run_program
from medi.core.reading import input_errors, read_file
from medi.photos.cache import cache_folder
from medi.photos.decode import Cut
from medi.photos.encoders import Encoder

USUAL_SIDE, LARGEST_SIDE = 224, 2048
_TRUSTED = "own-encoders"
"""Folder in the cache folder with an empty file for each program that was named here, called by its digest."""


def load_own_encoder(text: str) -> Encoder:
    """The encoder that `path/to/file.py:Name` defines; from now on, models that keep this file may run it here."""
    place, _, name = text.rpartition(":")
    path = Path(place).expanduser()
    if not path.is_file():
        raise InputError(f"--encoder {text}: there is no file {path}; give path/to/file.py:Name.")
    with input_errors(path, "read"):
        program = read_file(path)
    encoder = _encoder(f"{path.absolute()}:{name}", program, path)
    mark = _mark(program)
    with input_errors(mark, "write"):
        make_folder(mark.parent)
        mark.touch()
    return encoder


def kept_encoder(name: str, path: Path) -> Encoder:
    """The encoder whose text a model keeps in a file, by the name `path/to/file.py:Name` that it once had."""
    with input_errors(path, "read"):
        program = read_file(path)
    mark = _mark(program)
    if not mark.is_file():
        raise InputError(
            f"this model's encoder is the program {path}, which nobody has allowed on this machine: read it, and if "
            f"it may run, create the empty file {mark}."
        )
    return _encoder(name, program, path)


def _mark(program: bytes) -> Path:
    return cache_folder() / _TRUSTED / sha256(program).hexdigest()


def _encoder(text: str, program: bytes, path: Path) -> Encoder:
    """Run a program, and try what it defines on a black and a white picture."""
    name, digest = text.rpartition(":")[2], sha256(program).hexdigest()[:12]
    with _alone(path):
        with _faults(text):
            found = getattr(run_program(program, path, f"medi_encoder_{digest}"), name)
            function = found() if isinstance(found, type) else found
            side = int(getattr(function, "side", USUAL_SIDE))
            if not 1 <= side <= LARGEST_SIDE:
                raise ValueError(f"side is {side}, not 1 to {LARGEST_SIDE}")

        def encode(images: NDArray[np.uint8]) -> NDArray[np.float32]:
            with _faults(text), np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
                features = np.asarray(function(images), np.float32)
                if features.ndim != 2 or len(features) != len(images) or not features.size:
                    raise ValueError(f"an array of shape {features.shape} for {len(images)} images")
                if not np.isfinite(features).all():
                    raise ValueError("numbers that are not finite")
            return features

        black_and_white = np.repeat(np.array([0, 255], np.uint8), 3 * side**2).reshape(2, 3, side, side)
        shape = encode(black_and_white).shape[1:]
    return Encoder(text, f"own-{name}-{digest}", Cut(side), shape, encode, program=program, engine="its own file")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Inside, modules beside a file are not found, wherever the program was started."""
    before, folder = sys.path.copy(), path.parent.resolve()
    sys.path[:] = [place for place in before if Path(place).resolve() != folder]
    try:
        yield
    finally:
        sys.path[:] = before


@contextmanager
def _faults(text: str) -> Iterator[None]:
    """Turn what a user's program raises into one line."""
    try:
        yield
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(
            f"--encoder {text} cannot be used ({reason}): the file must stand alone, without modules or files beside "
            "it, and what it defines must make n rows of numbers of n images."
        ) from error
