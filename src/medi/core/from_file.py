"""What a user's own Python file defines: `path/to/file.py:Name`."""

from __future__ import annotations

import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from medi.core.errors import InputError, refuse_unknown
from medi.core.reading import input_errors, read_file


def from_file(text: str, option: str) -> tuple[Any, str]:
    """What `path/to/file.py:Name` defines, and a digest of the file; modules beside it can be imported."""
    place, _, name = text.rpartition(":")
    path = Path(place)
    if not path.is_file():
        raise InputError(f"{option} {text}: there is no file {path}; give path/to/file.py:Name.")
    with input_errors(path, "read"):
        program = read_file(path)
    digest = sha256(program).hexdigest()[:12]
    try:
        module = _imported(program, path.absolute(), f"medi_file_{digest}")
    except Exception as error:
        raise InputError(f"{option} {text}: {path} cannot be imported ({type(error).__name__}: {error}).") from error
    own = [key for key, value in vars(module).items() if not key.startswith("_") and _is_own(value, module)]
    refuse_unknown(f"name in {path}", name, own)
    return getattr(module, name), digest


def _is_own(value: Any, module: ModuleType) -> bool:
    """Whether a value was made in a module, not imported into it."""
    if isinstance(value, type | FunctionType):
        return value.__module__ == module.__name__
    return not isinstance(value, ModuleType)


@cache
def _imported(program: bytes, path: Path, name: str) -> ModuleType:
    sys.path.insert(0, str(path.parent))
    try:
        return run_program(program, path, name, __file__=str(path))
    finally:
        sys.path.remove(str(path.parent))


def run_program(program: bytes, path: Path, name: str, **own: Any) -> ModuleType:
    """The module of a name that a program from a path makes; `own` are names that it finds defined.

    The text itself is run: kept bytecode is known by second and size, which an edit may leave as they were.
    """
    module = sys.modules[name] = ModuleType(name)  # dataclasses look their module up
    vars(module).update(own)
    try:
        exec(compile(program, str(path), "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module
