"""Checkpoints: tensors in safetensors, everything else as JSON in the same file's header, written atomically.

One file, so that tensors and settings can never come from different moments. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

from medi.errors import InputError
from medi.runtime.files import input_errors, write_atomically

_KEY = "medi"


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and JSON-able facts as one file that is whole or absent."""
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, to_bytes(on_cpu, metadata={_KEY: json.dumps(facts)}))


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_checkpoint` wrote; a file that is not one is refused by name."""
    with input_errors(path, "read"):
        return unpack_checkpoint(path.read_bytes(), path)


def unpack_checkpoint(content: bytes, path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What the bytes of a checkpoint hold; the path is for the message alone."""
    try:
        tensors = from_bytes(content)
        header = int.from_bytes(content[:8], "little")  # the format: its length, then the header as JSON, then tensors
        return tensors, json.loads(json.loads(content[8 : 8 + header])["__metadata__"][_KEY])
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is not a checkpoint of this program: delete it and train again.") from error


def pack_optimiser(optimiser: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimiser's state as tensors named `index.key` and its groups as JSON."""
    state = optimiser.state_dict()
    tensors = {
        f"{i}.{key}": torch.as_tensor(value) for i, slot in state["state"].items() for key, value in slot.items()
    }
    return tensors, {"groups": state["param_groups"]}


def unpack_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Give an optimiser back the state that `pack_optimiser` took."""
    slots: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split(".", 1)
        slots.setdefault(int(index), {})[key] = tensor
    optimiser.load_state_dict({"state": slots, "param_groups": facts["groups"]})
    for parameter, state in optimiser.state.items():  # fused optimisers want the parameter's memory layout, too
        for key, value in state.items():
            if value.shape == parameter.shape:
                state[key] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Name every tensor `prefix/name`."""
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def under_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors named `prefix/…`, without the prefix."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(prefix + "/")}
