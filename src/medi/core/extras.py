"""Parts of the program that need packages which a plain installation does not bring: `pip install "medi[train]"`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from medi.core.errors import InputError


def has(package: str) -> bool:
    """Whether a package can be imported; it is not imported for that."""
    try:
        return find_spec(package) is not None
    except ValueError:  # it is there, put in place by other means than an import
        return True


def missing(extra: str, package: str, what: str) -> InputError:
    """The one line about a package that is not there."""
    return InputError(f'{what} needs {package}: pip install "medi[{extra}]"')


def needs(extra: str, package: str, what: str) -> None:
    """Refuse to go on without a package that an extra of ours brings; `what` needs it, such as `--method mp`."""
    if not has(package):
        raise missing(extra, package, what)


def imported(extra: str, module: str, what: str) -> Any:
    """A module of a package that an extra brings, imported now."""
    with wanted(extra, module.partition(".")[0], what):
        return import_module(module)


@contextmanager
def wanted(extra: str, package: str, what: str) -> Iterator[None]:
    """Inside, our own modules that import a package may be imported; where it is missing, one line says so."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise missing(extra, package, what) from error
