"""Checkpoints: the tensors and JSON-able facts of a training in one file, as `medi.core.tensors` writes arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medi.core.errors import InputError
from medi.core.tensors import save_arrays, unpack_arrays


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and JSON-able facts as one file that is whole or absent."""
    save_arrays(path, {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}, facts)


def unpack_checkpoint(content: bytes, path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What the bytes of a checkpoint hold; the path is for the message alone."""
    try:
        arrays, facts = unpack_arrays(content)
    except ValueError as error:
        raise InputError(f"{path} is not a checkpoint of this program: delete it and train again.") from error
    return {name: torch.from_numpy(array) for name, array in arrays.items()}, facts


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
