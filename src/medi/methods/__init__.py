"""Methods: one file each, one line of the registry each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from medi.errors import unknown_name
from medi.methods.base import Assignment, Clustering, Learner, Method, Plan
from medi.methods.dtc import DTC
from medi.methods.kcl import KCL
from medi.methods.kmeans import KMeans
from medi.methods.mcl import MCL
from medi.methods.medi import Medi
from medi.methods.mm import MM
from medi.methods.mp import MP
from medi.methods.rs import RS

__all__ = ["METHODS", "Assignment", "Clustering", "Learner", "Method", "Plan", "method_of"]

METHODS: Mapping[str, type[Method]] = MappingProxyType(
    {
        "dtc": DTC,
        "kcl": KCL,
        "kmeans": KMeans,
        "mcl": MCL,
        "medi": Medi,
        "mm": MM,
        "mp": MP,
        "rs": RS,
    }
)


def method_of(name: str) -> type[Method]:
    """The method of a name; an unknown name is an error that suggests the nearest."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]
