"""Methods: one file each, one line each of the registry in `medi.names`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from torch import Tensor

from medi.errors import InputError, unknown_name
from medi.methods.base import Assignment, Clustering, Learner, Method, Plan
from medi.methods.embedding import EmbeddingMethod, PixelEmbedding
from medi.methods.mm_learner import ReferenceEmbedding
from medi.methods.readout import ReadoutEmbedding
from medi.names import FILE_MARK, METHOD_LISTINGS, Listing
from medi.nets.embed import Embedding, NetworkEmbedding
from medi.runtime.from_file import from_file

__all__ = [
    "METHODS",
    "Assignment",
    "Clustering",
    "EmbeddingMethod",
    "Learner",
    "Method",
    "Plan",
    "method_of",
    "unpack_embedding",
]


def _listed(listing: Listing) -> type[Method]:
    module, _, name = listing.place.partition(":")
    method: type[Method] = getattr(import_module(module), name)
    return method


METHODS: Mapping[str, type[Method]] = MappingProxyType(
    {name: _listed(listing) for name, listing in METHOD_LISTINGS.items()}
)

_EMBEDDINGS: Mapping[str, type[Embedding]] = MappingProxyType(
    {kind.kind: kind for kind in (NetworkEmbedding, PixelEmbedding, ReadoutEmbedding, ReferenceEmbedding)}
)


def method_of(name: str) -> type[Method]:
    """The method of a name, or of `path/to/file.py:Name`; an unknown name is an error that suggests the nearest."""
    if FILE_MARK in name:
        return _method_from_file(name)
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


def _method_from_file(text: str) -> type[Method]:
    """A user's own method; what it trains is kept apart from all that another state of the file trains."""
    method, digest = from_file(text, "--method")
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise InputError(f"--method {text}: that is no subclass of medi.methods.Method; name one.")
    method.version = digest
    return method


def unpack_embedding(kind: str, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Embedding:
    """The saved embedding of a kind; KeyError, TypeError, ValueError or RuntimeError where it is damaged."""
    return _EMBEDDINGS[kind].unpack(tensors, facts)
