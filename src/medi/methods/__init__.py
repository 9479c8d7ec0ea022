"""Methods: one file each, one line each of the registry in `medi.registry`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from medi.core.errors import InputError, refuse_unknown
from medi.core.from_file import from_file
from medi.methods.base import Assignment, Clustering, Learner, Method, Plan
from medi.methods.embedding import EmbeddingMethod
from medi.registry import FILE_MARK, METHOD_LISTINGS, load_listed

__all__ = [
    "METHODS",
    "Assignment",
    "Clustering",
    "EmbeddingMethod",
    "Learner",
    "Method",
    "Plan",
    "method_of",
]


METHODS: Mapping[str, type[Method]] = MappingProxyType(
    {name: load_listed(listing.place, f"--method {name}") for name, listing in METHOD_LISTINGS.items()}
)


def method_of(name: str) -> type[Method]:
    """The method of a name, or of `path/to/file.py:Name`; an unknown name is an error that suggests the nearest."""
    if FILE_MARK in name:
        return _method_from_file(name)
    refuse_unknown("method", name, METHODS)
    return METHODS[name]


def _method_from_file(text: str) -> type[Method]:
    """A user's own method; what it trains is kept apart from all that another state of the file trains."""
    method, digest = from_file(text, "--method")
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise InputError(f"--method {text}: that is no subclass of medi.methods.Method; name one.")
    method.version = digest
    return method
