"""A discovery's `model/` folder: the recogniser, and the encoder of the features that it compares."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor

from medi.discovery.recogniser import Recogniser
from medi.errors import InputError
from medi.photos.encoders import Encoder, load_encoder
from medi.runtime.files import input_errors, make_folder, write_atomically

ENCODER = "encoder.json"
INNER = "encoder"
"""Subfolder with the saved model that served as encoder, if one did: a model needs nothing outside its folder."""


def save_model(folder: Path, recogniser: Recogniser, encoder: Encoder) -> None:
    """Write the folder; `encoder.json` comes last, and without it the folder is no model."""
    make_folder(folder)
    recogniser.save(folder)
    if encoder.folder is not None:
        with input_errors(folder, "write"):
            shutil.copytree(encoder.folder, folder / INNER, dirs_exist_ok=True)
    facts = {"name": encoder.name if encoder.folder is None else INNER, "identity": encoder.identity}
    write_atomically(folder / ENCODER, (json.dumps(facts, indent=1) + "\n").encode())


def load_model(folder: Path, device: torch.device) -> tuple[Recogniser, Encoder]:
    """Read a model; `folder` may also be the output folder that it lies in."""
    folder = _model_folder(folder)
    try:
        facts = json.loads((folder / ENCODER).read_text(encoding="utf-8"))
        name, identity = str(facts["name"]), str(facts["identity"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / ENCODER} is damaged: make the model again with `medi discover`.") from error
    encoder = choose_encoder(str(folder / INNER) if name == INNER else name, device)
    if encoder.identity != identity:
        raise InputError(
            f"{folder} was made with the encoder {identity}, but {name} is {encoder.identity} here: "
            "discover again, or install the versions that discovery.json names."
        )
    return Recogniser.load(folder), encoder


def choose_encoder(name: str, device: torch.device) -> Encoder:
    """The encoder of a name, or the representation that an earlier discovery saved in a folder."""
    folder = Path(name)
    if not folder.is_dir():
        return load_encoder(name, device)
    folder = _model_folder(folder)
    recogniser, inner = load_model(folder, device)
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
