"""A discovery's `model/` folder: the recogniser, and the encoder of the features that it compares."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.core.errors import InputError
from medi.core.files import make_folder, write_atomically
from medi.core.reading import input_errors, parse, read_file
from medi.grouping.recogniser import Recogniser
from medi.photos.encoders import Encoder, is_name, load_encoder
from medi.photos.features_file import Features
from medi.photos.own_encoder import kept_encoder
from medi.schemas import fault, schema

ENCODER = "encoder.json"
INNER = "encoder"
"""Subfolder with the saved model that served as encoder, if one did: a model needs nothing outside its folder."""
ENCODER_FILE = "encoder.py"
"""The user's own file that defines the encoder, if one does."""
ELSEWHERE = "features"
"""Where features were made elsewhere: the name in place of an encoder's, and the key of what is known of them."""

_TEXT, _FEATURES = {"type": "string"}, schema("discovery")["properties"]["features"]
_FACTS = {"required": ["name", "identity"], "properties": {"name": _TEXT, "identity": _TEXT, ELSEWHERE: _FEATURES}}


def save_model(folder: Path, recogniser: Recogniser, encoder: Encoder) -> None:
    """Write the folder; `encoder.json` comes last, and without it the folder is no model."""
    make_folder(folder)
    recogniser.save(folder)
    if encoder.folder is not None:
        with input_errors(folder, "write"):
            shutil.copytree(encoder.folder, folder / INNER, dirs_exist_ok=True)
    if encoder.program is not None:
        write_atomically(folder / ENCODER_FILE, encoder.program)
    facts: dict[str, Any] = {"name": encoder.name if encoder.folder is None else INNER, "identity": encoder.identity}
    if isinstance(encoder, Features):
        facts |= {"name": ELSEWHERE, ELSEWHERE: encoder.facts()}
    write_atomically(folder / ENCODER, (json.dumps(facts, indent=1) + "\n").encode())


def load_model(folder: Path, device: str) -> tuple[Recogniser, Encoder]:
    """Read a model; `folder` may also be the output folder that it lies in.

    Where its features were made elsewhere, the encoder is a `Features` without vectors.
    """
    folder = _model_folder(folder)
    try:
        facts = parse(read_file(folder / ENCODER))
        if (place := fault(_FACTS, facts)) is not None:
            raise ValueError(place)
        name, identity = facts["name"], facts["identity"]
        elsewhere = Features.from_facts(facts[ELSEWHERE]) if name == ELSEWHERE else None
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise InputError(f"{folder / ENCODER} is damaged: make the model again with `medi discover`.") from error
    if elsewhere is not None:
        return Recogniser.load(folder), elsewhere
    if (folder / ENCODER_FILE).is_file():
        encoder = kept_encoder(name, folder / ENCODER_FILE)
    else:
        encoder = choose_encoder(str(folder / INNER) if name == INNER else name, device)
    if encoder.identity != identity:
        raise InputError(
            f"{folder} was made with the encoder {identity}, but {name} is {encoder.identity} here: "
            "discover again, or install the versions that discovery.json names."
        )
    return Recogniser.load(folder), encoder


def with_features(model: Path, encoder: Encoder, features: Features | None) -> Encoder:
    """What gives features of new photos to a model: its encoder, or the features given where it needs some."""
    if not isinstance(encoder, Features):
        if features is not None:
            raise InputError(f"--model {model} was made with the encoder {encoder.name}: leave out --features.")
        return encoder
    if features is None:
        needed = "give those of the new photos, made in the same way, with --features."
        raise InputError(f"the features of --model {model} were {encoder.describe()}: {needed}")
    if features.shape != encoder.shape:
        raise InputError(
            f"--features {features.name} has {features.shape[0]} numbers a photo, but those of --model {model} were "
            f"{encoder.describe()}: make them in the same way."
        )
    return features


def choose_encoder(name: str, device: str) -> Encoder:
    """The encoder of a name, or the representation that an earlier discovery saved in a folder (`./conv4` is one)."""
    folder = Path(name)
    if is_name(name) or not folder.is_dir():
        return load_encoder(name, device)
    folder = _model_folder(folder)
    recogniser, inner = load_model(folder, device)
    if isinstance(inner, Features):
        raise InputError(f"--encoder {name} cannot encode photos, its features were {inner.describe()}: name another.")
    representation = recogniser.representation
    digest = sha256(inner.identity.encode())
    for key, array in sorted(representation.pack()[0].items()):
        digest.update(key.encode() + np.ascontiguousarray(array).tobytes())

    def encode(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        return representation(inner.encode(images)).astype(np.float32)

    blank = np.zeros((1, 3, inner.cut.side, inner.cut.side), np.uint8)
    return replace(
        inner,
        name=name,
        identity=f"saved-{digest.hexdigest()[:16]}",
        shape=tuple(encode(blank).shape[1:]),
        encode=encode,
        network=None,
        folder=folder,
        program=None,
    )


def _model_folder(folder: Path) -> Path:
    """The folder itself or the `model/` in it, whichever is a model."""
    for candidate in (folder, folder / "model"):
        if (candidate / ENCODER).is_file():
            return candidate
    raise InputError(f"{folder} is no model: give the folder model/ that `medi discover` wrote.")
