"""A discovery's `model/` folder: the recogniser, and the encoder of the features that it compares."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medi.discovery.recogniser import Recogniser
from medi.errors import InputError
from medi.photos.encoders import Encoder, is_name, load_encoder
from medi.photos.features_file import Features
from medi.runtime.files import input_errors, make_folder, write_atomically

ENCODER = "encoder.json"
INNER = "encoder"
"""Subfolder with the saved model that served as encoder, if one did: a model needs nothing outside its folder."""
FEATURES = "features"
"""Where features were made elsewhere: the name in place of an encoder's, and the key of what is known of them."""


def save_model(folder: Path, recogniser: Recogniser, encoder: Encoder) -> None:
    """Write the folder; `encoder.json` comes last, and without it the folder is no model."""
    make_folder(folder)
    recogniser.save(folder)
    if encoder.folder is not None:
        with input_errors(folder, "write"):
            shutil.copytree(encoder.folder, folder / INNER, dirs_exist_ok=True)
    facts: dict[str, Any] = {"name": encoder.name if encoder.folder is None else INNER, "identity": encoder.identity}
    if isinstance(encoder, Features):
        facts |= {"name": FEATURES, FEATURES: encoder.facts()}
    write_atomically(folder / ENCODER, (json.dumps(facts, indent=1) + "\n").encode())


def load_model(folder: Path, device: torch.device) -> tuple[Recogniser, Encoder]:
    """Read a model; `folder` may also be the output folder that it lies in.

    Where its features were made elsewhere, the encoder is a `Features` without vectors.
    """
    folder = _model_folder(folder)
    try:
        facts = json.loads((folder / ENCODER).read_text(encoding="utf-8"))
        name, identity = str(facts["name"]), str(facts["identity"])
        elsewhere = Features.from_facts(facts[FEATURES]) if name == FEATURES else None
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise InputError(f"{folder / ENCODER} is damaged: make the model again with `medi discover`.") from error
    if elsewhere is not None:
        return Recogniser.load(folder), elsewhere
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


def choose_encoder(name: str, device: torch.device) -> Encoder:
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
    for key, tensor in sorted(representation.pack()[0].items()):
        digest.update(key.encode() + tensor.cpu().contiguous().numpy().tobytes())

    def encode(images: Tensor) -> Tensor:
        return representation(inner.encode(images)).float()

    blank = torch.zeros(1, 3, inner.cut.side, inner.cut.side, dtype=torch.uint8)
    return replace(
        inner,
        name=name,
        identity=f"saved-{digest.hexdigest()[:16]}",
        shape=tuple(encode(blank).shape[1:]),
        encode=encode,
        network=None,
        folder=folder,
    )


def _model_folder(folder: Path) -> Path:
    """The folder itself or the `model/` in it, whichever is a model."""
    for candidate in (folder, folder / "model"):
        if (candidate / ENCODER).is_file():
            return candidate
    raise InputError(f"{folder} is no model: give the folder model/ that `medi discover` wrote.")
