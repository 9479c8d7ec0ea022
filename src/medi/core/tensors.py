"""Arrays and JSON-able facts in one file: safetensors, the facts in its header, written atomically.

One file, so that arrays and facts can never come from different moments. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from medi.core.errors import InputError
from medi.core.files import write_atomically
from medi.core.reading import input_errors, parse, read_file

Array = TypeVar("Array")

KEY = "medi"
"""Of the facts, in the header's metadata."""


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """Write arrays and JSON-able facts as one file that is whole or absent."""
    in_rows = {name: np.asarray(array, order="C") for name, array in arrays.items()}  # safetensors copies memory as is
    write_atomically(path, to_bytes(in_rows, metadata={KEY: json.dumps(facts)}))


def load_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read what `save_arrays` wrote; a file that is not one is refused by name."""
    with input_errors(path, "read"):
        content = read_file(path)
    try:
        return unpack_arrays(content)
    except ValueError as error:
        raise InputError(f"{path} is damaged, or no file of this program: delete it and make it again.") from error


def unpack_arrays(content: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """What the bytes of such a file hold; ValueError where they are damaged."""
    try:
        arrays = from_bytes(content)
        header = int.from_bytes(content[:8], "little")  # the format: its length, then the header as JSON, then tensors
        facts = parse(parse(content[8 : 8 + header])["__metadata__"][KEY])
    except (safetensors.SafetensorError, KeyError, TypeError) as error:
        raise ValueError("not a safetensors file of this program") from error
    if not isinstance(facts, dict):
        raise ValueError("the facts in it are no object")
    return arrays, facts


def with_prefix(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Name every array `prefix/name`."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def under_prefix(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays named `prefix/…`, without the prefix."""
    return {name[len(prefix) + 1 :]: array for name, array in arrays.items() if name.startswith(prefix + "/")}
