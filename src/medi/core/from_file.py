"""What a user's own Python file defines: `path/to/file.py:Name`."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
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
        digest = sha256(read_file(path)).hexdigest()[:12]
    try:
        module = _imported(path.absolute(), digest)
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


class _FromSource(SourceFileLoader):
    """Runs the text itself: kept bytecode is known by second and size, which an edit may leave as they were."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the file."""
        return self.source_to_code(self.get_data(self.path), self.path)


@cache
def _imported(path: Path, digest: str) -> ModuleType:
    name = f"medi_file_{digest}"
    loader = _FromSource(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    sys.path.insert(0, str(path.parent))
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module
