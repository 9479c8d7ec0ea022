"""Methods: one file each, one line of the registry each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from torch import Tensor

from medi.errors import unknown_name
from medi.methods.base import Assignment, Clustering, Learner, Method, Plan
from medi.methods.dtc import DTC
from medi.methods.embedding import PixelEmbedding
from medi.methods.from_file import method_from_file
from medi.methods.kcl import KCL
from medi.methods.kmeans import KMeans
from medi.methods.mcl import MCL
from medi.methods.medi import Medi
from medi.methods.mm import MM
from medi.methods.mm_learner import ReferenceEmbedding
from medi.methods.mp import MP
from medi.methods.readout import ReadoutEmbedding
from medi.methods.rs import RS
from medi.names import FILE_MARK
from medi.nets.embed import Embedding, NetworkEmbedding

__all__ = ["METHODS", "Assignment", "Clustering", "Learner", "Method", "Plan", "method_of", "unpack_embedding"]

METHODS: Mapping[str, type[Method]] = MappingProxyType(
    {method.name: method for method in (DTC, KCL, KMeans, MCL, Medi, MM, MP, RS)}
)

_EMBEDDINGS: Mapping[str, type[Embedding]] = MappingProxyType(
    {kind.kind: kind for kind in (NetworkEmbedding, PixelEmbedding, ReadoutEmbedding, ReferenceEmbedding)}
)


def method_of(name: str) -> type[Method]:
    """The method of a name, or of `path/to/file.py:Name`; an unknown name is an error that suggests the nearest."""
    if FILE_MARK in name:
        return method_from_file(name)
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


def unpack_embedding(kind: str, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Embedding:
    """The saved embedding of a kind; KeyError, TypeError, ValueError or RuntimeError where it is damaged."""
    return _EMBEDDINGS[kind].unpack(tensors, facts)
