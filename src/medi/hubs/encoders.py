"""Encoders of other libraries: any image model of timm, open_clip or transformers, with its own preprocessing.

A library is imported when one of its models is asked for. Weights are safetensors files and nothing else, so nothing
that comes from a hub is unpickled, and no code that lies beside a model is run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from medi.core.errors import InputError, reason_of, unknown_name
from medi.hubs.downloads import card_licence, fetch, quiet, weights_file
from medi.hubs.towers import First, Pooled, Preprocessing, frozen, processing_of, side_of
from medi.nn.devices import choose_device
from medi.photos.decode import Cut
from medi.photos.encoders import Encoder
from medi.photos.own_encoder import LARGEST_SIDE


@dataclass(frozen=True)
class Origin:
    """Where a model comes from."""

    name: str  # as it is asked for on the command line
    library: str  # the prefix of that name
    model: str  # the rest of it, without a size or the folders before the last
    package: str  # the library's name on PyPI
    source: str  # address or folder of the weights
    licence: str  # of the weights, as their authors state it


def load_hub_encoder(name: str, device: str) -> Encoder:
    """The encoder of a name that begins with the name of a library and a colon."""
    library, _, model = name.partition(":")
    return _LOADERS[library](name, model, device)


def _timm(name: str, model: str, device: str) -> Encoder:
    """`timm:NAME` at the size that the weights were made for, or `timm:NAME@SIZE`."""
    timm = _imported("timm", name)
    model, size = _name_and_size(name, model)
    try:
        config = timm.models.get_pretrained_cfg(model, allow_unregistered=False)
    except RuntimeError as error:
        raise unknown_name("model of timm", model, timm.list_models(pretrained=True)) from error
    if not config.hf_hub_id:
        raise InputError(f"timm has no weights of {model}: choose one of `timm.list_models(pretrained=True)`.")
    weights = weights_file(name, config.hf_hub_id, config.hf_hub_filename or "pytorch_model.bin")
    with _faults(name, size):
        network = timm_network(model, size, pretrained=True, file=str(weights))
    source = f"https://huggingface.co/{config.hf_hub_id}"
    origin = Origin(name, "timm", model, "timm", source, config.license or card_licence(config.hf_hub_id))
    return timm_encoder(origin, network, size, device)


def timm_network(model: str, size: int | None, *, pretrained: bool, file: str | None = None) -> nn.Module:
    """A model of timm without its classifier; `file` has its weights."""
    import timm

    facts: dict[str, Any] = {"file": file, "custom_load": False}
    arguments: dict[str, Any] = {"pretrained": pretrained, "num_classes": 0, "pretrained_cfg_overlay": facts}
    if size is not None:
        try:
            return timm.create_model(model, img_size=size, **arguments)  # type: ignore[no-any-return]
        except TypeError as error:
            if "img_size" not in str(error):
                raise
    return timm.create_model(model, **arguments)  # type: ignore[no-any-return]  # a convolutional one takes any size


def timm_encoder(origin: Origin, network: nn.Module, size: int | None, device: str) -> Encoder:
    """A network of timm as an encoder."""
    from timm.data import resolve_model_data_config

    config: Any = network.pretrained_cfg
    wanted = None if size is None else {"input_size": (3, size, size)}
    data = resolve_model_data_config(network, wanted, use_test_size=(3, size, size) == config.get("test_input_size"))
    side = side_of(origin.name, data["input_size"][1:])
    patch = getattr(getattr(network, "patch_embed", None), "patch_size", None)
    if patch and side % patch[0]:  # timm would leave out the last pixels
        nearest = max(1, round(side / patch[0])) * patch[0]
        raise InputError(f"{origin.name} takes sizes that are multiples of {patch[0]}: use @{nearest}.")
    filter, fraction = Image.Resampling[data["interpolation"].upper()], side / math.floor(side / data["crop_pct"])
    cut = Cut(side, fraction, filter, squash=data["crop_mode"] == "squash")
    return _encoder(origin, network, Preprocessing.of_fractions(cut, data["mean"], data["std"]), device, size)


def _open_clip(name: str, model: str, device: str) -> Encoder:
    """`open_clip:NAME/PRETRAINED`."""
    open_clip = _imported("open_clip", name)
    architecture, _, tag = model.partition("/")
    config = open_clip.get_pretrained_cfg(architecture, tag)
    if not config:
        names = ("/".join(pair) for pair in open_clip.list_pretrained())
        raise unknown_name("model of open_clip (NAME/PRETRAINED)", model, names)
    hub, _, file = config["hf_hub"].rpartition("/")
    if not hub:
        raise InputError(f"the weights of {model} are not on a hub: choose one of `open_clip.list_pretrained()`.")
    weights = weights_file(name, hub, file or "open_clip_pytorch_model.bin")
    with _faults(name):
        network = open_clip.create_model(
            architecture,
            pretrained=str(weights),
            force_quick_gelu=config.get("quick_gelu", False),  # what these weights were trained with
            force_preprocess_cfg={key: value for key, value in config.items() if key != "size"},
        )
    licence = config.get("license") or card_licence(hub)
    origin = Origin(name, "open_clip", model, "open_clip_torch", f"https://huggingface.co/{hub}", licence)
    return open_clip_encoder(origin, network, device)


def open_clip_encoder(origin: Origin, network: Any, device: str) -> Encoder:
    """The image tower of a model of open_clip as an encoder; its features are those that are compared with text."""
    data = network.visual.preprocess_cfg
    size = data["size"]
    side = side_of(origin.name, (size, size) if isinstance(size, int) else size)
    filter = Image.Resampling[data["interpolation"].upper()]
    cut = Cut(side, filter=filter, squash=data.get("resize_mode") == "squash")
    return _encoder(origin, First(network.visual), Preprocessing.of_fractions(cut, data["mean"], data["std"]), device)


def _transformers(name: str, model: str, device: str) -> Encoder:
    """`transformers:NAME`, where NAME is one of the Hugging Face hub's, or a folder."""
    transformers = _imported("transformers", name)
    folder = Path(model).expanduser()
    local = folder.is_dir()
    place = str(folder) if local else model
    if not local:
        fetch(name, model, "config.json", "no config.json of transformers")
    with _faults(name), quiet("transformers"), quiet("huggingface_hub"):
        try:
            processor, network, report = _from_transformers(transformers, place, local_files_only=True)
        except OSError:  # not downloaded yet, or not completely
            processor, network, report = _from_transformers(transformers, place, local_files_only=local)
    source = str(folder.resolve()) if local else f"https://huggingface.co/{model}"
    licence = card_licence(folder if local else model)
    last = folder.resolve().name if local else model
    origin = Origin(name, "transformers", last, "transformers", source, licence)
    return transformers_encoder(origin, network, processor, report["missing_keys"], device)


def _from_transformers(transformers: Any, place: str, *, local_files_only: bool) -> tuple[Any, Any, dict[str, Any]]:
    """Image processor, model, and what was found amiss with its weights."""
    safe: dict[str, Any] = {"trust_remote_code": False, "local_files_only": local_files_only}
    processor = transformers.AutoImageProcessor.from_pretrained(place, **safe)
    model = transformers.AutoModel.from_pretrained(place, use_safetensors=True, output_loading_info=True, **safe)
    return processor, *model


def transformers_encoder(origin: Origin, network: Any, processor: Any, missing: Sequence[str], device: str) -> Encoder:
    """The image tower of an `AutoModel` of transformers; weights are missing that the file did not have."""
    tower = getattr(network, "vision_model", network)
    prefix = "" if tower is network else "vision_model."
    absent = {key.removeprefix(prefix) for key in missing if key.startswith(prefix)}
    if any(key.startswith("pooler.") for key in absent):  # classifiers are published without it
        tower.pooler = None
        absent = {key for key in absent if not key.startswith("pooler.")}
    if absent:
        raise InputError(f"{origin.name} lacks weights ({min(absent)}, …): choose another model.")
    looks = processing_of(origin.name, processor)
    patch = getattr(tower.config, "patch_size", None)
    patches = (looks.cut.side // patch) ** 2 if isinstance(patch, int) else None
    return _encoder(origin, Pooled(tower, patches), looks, device)


def _encoder(origin: Origin, body: nn.Module, looks: Preprocessing, device: str, size: int | None = None) -> Encoder:
    """A network as an encoder; `size` is the one that was asked for."""
    cut = looks.cut
    body = body.float()
    identity = _identity(origin, body, looks)
    chosen = choose_device(device)
    encode = frozen(body, chosen, looks)
    with _faults(origin.name, size):
        shape = tuple(encode(np.zeros((1, 3, cut.side, cut.side), np.uint8)).shape[1:])
    if len(shape) != 1:
        raise InputError(f"{origin.name} makes no vector of a photo: choose another model.")
    return Encoder(
        name=origin.name,
        identity=identity,
        cut=cut,
        shape=shape,
        encode=encode,
        engine="torch",
        in_threads=chosen.type == "cpu",
        licence=origin.licence,
        source=origin.source,
        package=origin.package,
    )


def _identity(origin: Origin, body: nn.Module, looks: Preprocessing) -> str:
    """Library, model, digest (of weights, preprocessing and the library's version) and size."""
    digest = sha256(f"{version(origin.package)} {origin.model} {looks}".encode())
    for key, tensor in sorted(body.state_dict().items()):
        digest.update(key.encode())
        digest.update(tensor.cpu().contiguous().view(-1).view(torch.uint8).numpy())
    model = re.sub(r"[^A-Za-z0-9._-]+", "_", origin.model)[:100]
    return f"{origin.library}-{model}-{digest.hexdigest()[:12]}-{looks.cut.side}"


def _imported(library: str, name: str) -> Any:
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        raise InputError(f"--encoder {name} needs {error.name}: pip install 'medi[{library}]'.") from error
    except Exception as error:  # torchvision of another build than torch's raises RuntimeError
        raise InputError(
            f"{library} cannot be imported ({reason_of(error)}): install torch and torchvision of one build."
        ) from error


def _name_and_size(name: str, text: str) -> tuple[str, int | None]:
    model, at, size = text.partition("@")
    if not at:
        return model, None
    if not (size.isascii() and size.isdigit() and len(size) < 6 and 1 <= int(size) <= LARGEST_SIDE):
        raise InputError(f"--encoder {name}: after @ comes a number of pixels up to {LARGEST_SIDE}, such as 224.")
    return model, int(size)


@contextmanager
def _faults(name: str, size: int | None = None) -> Iterator[None]:
    """Turn what a library raises about a model, or about a size, into one line."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = reason_of(error)
        if size is not None:
            raise InputError(f"{name} cannot take images of {size} pixels ({reason}): use another size.") from error
        if "safetensors" in reason:
            reason = "it has no weights as safetensors, and no others are read"
        first = "check the network, or " if isinstance(error, OSError) else ""
        raise InputError(f"{name} cannot be used ({reason}): {first}choose another model.") from error


_LOADERS: dict[str, Callable[[str, str, str], Encoder]] = {
    "timm": _timm,
    "open_clip": _open_clip,
    "transformers": _transformers,
}
