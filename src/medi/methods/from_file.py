"""A method from a file of the user's own: `--method path/to/file.py:Name`."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

from medi.errors import InputError
from medi.methods.base import Method
from medi.runtime.files import input_errors


@cache
def method_from_file(text: str) -> type[Method]:
    """The class `Name` of `path/to/file.py:Name`; what it trains is kept apart from all that another file trains."""
    place, _, name = text.rpartition(":")
    path = Path(place)
    if not path.is_file():
        raise InputError(f"--method {text}: there is no file {path}; give path/to/file.py:Name.")
    with input_errors(path, "read"):
        digest = sha256(path.read_bytes()).hexdigest()[:12]
    module_name = f"medi_method_{digest}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"--method {text}: {path} cannot be imported ({type(error).__name__}: {error}).") from error
    found: dict[str, type[Method]] = {
        key: value for key, value in vars(module).items() if _is_method(value, module_name)
    }
    if name not in found:
        there = f"it has {', '.join(sorted(found))}" if found else "it has no subclass of medi.methods.Method"
        raise InputError(f"--method {text}: {path} has no method {name}; {there}.")
    method = found[name]
    method.name, method.version = f"{path.stem}-{name}", digest
    return method


def _is_method(value: object, module: str) -> bool:
    return isinstance(value, type) and issubclass(value, Method) and value.__module__ == module
