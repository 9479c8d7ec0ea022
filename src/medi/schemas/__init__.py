"""JSON Schemas (2020-12) of what MEDI writes and prints for programs, one file each.

They are the contract: tests hold what commands really write against them, unknown keys are refused. The number at the
end of an `$id` rises when a field goes or changes its meaning.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from medi.errors import unknown_name

_ENDING = ".schema.json"


def names() -> list[str]:
    """The schemas there are."""
    found = (file.name for file in files(__name__).iterdir())
    return sorted(name.removesuffix(_ENDING) for name in found if name.endswith(_ENDING))


def text(name: str) -> str:
    """A schema as it is written; an unknown name is an error that suggests the nearest."""
    if name not in names():
        raise unknown_name("schema", name, names())
    return files(__name__).joinpath(name + _ENDING).read_text(encoding="utf-8")


def schema(name: str) -> dict[str, Any]:
    """A schema as a dictionary."""
    found: dict[str, Any] = json.loads(text(name))
    return found
