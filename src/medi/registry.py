"""The registry of methods, and other names that the command line lists without importing torch."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

from medi.core.extras import wanted

FILE_MARK = ".py:"
"""In the name of a method or a dataset: it is in a file of the user's own, `path/to/file.py:Name`."""

GROUPING_NAMES = ("posterior",)
"""Who groups points; or a file of the user's own."""

SAMPLER_NAMES = ("uniform", "cata")
"""How training tasks are drawn: from all known items alike, or each from one of CATA's views."""


class Listing(NamedTuple):
    """A line of the registry.

    Attributes:
        place: Module and class.
        title: The method's name in tables.
        compared: Whether the paper compares it, or it was published since: `medi bench paper` and the figures show it.
    """

    place: str
    title: str
    compared: bool = False


METHOD_LISTINGS: Mapping[str, Listing] = MappingProxyType(
    {
        "kmeans": Listing("medi.methods.kmeans:KMeans", "K-means", compared=True),
        "kcl": Listing("medi.methods.kcl:KCL", "KCL", compared=True),
        "mcl": Listing("medi.methods.mcl:MCL", "MCL", compared=True),
        "dtc": Listing("medi.methods.dtc:DTC", "DTC", compared=True),
        "rs": Listing("medi.methods.rs:RS", "RS", compared=True),
        "mm": Listing("medi.methods.mm:MM", "MM", compared=True),
        "mp": Listing("medi.methods.mp:MP", "MP", compared=True),
        "uno": Listing("medi.methods.uno:UNO", "UNO", compared=True),
        "simgcd": Listing("medi.methods.simgcd:SimGCD", "SimGCD", compared=True),
        "medi": Listing("medi.methods.medi:Medi", "medi"),
    }
)
"""Methods by their name on the command line, simple ones first: a method is added by adding a line."""

METHOD_NAMES = tuple(METHOD_LISTINGS)
COMPARED_METHODS = tuple(name for name, listing in METHOD_LISTINGS.items() if listing.compared)

PLAIN = "plain"
"""What takes the place of a method's name where nothing is to be learnt: features as they are, scaled or whitened."""


def title_of(method: str) -> str:
    """A method's name in tables; one from a file of the user's own goes by its class."""
    return METHOD_LISTINGS[method].title if method in METHOD_LISTINGS else method.rpartition(":")[2]


LEARNT_STEPS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("network", "pixels", "readout", "reference"), "medi.methods.teacher:unpack_step")
)
"""What reads a saved step of a representation back, by its kind."""


def load_listed(place: str, what: str) -> Any:
    """What `module:name` stands for, which may need torch; `what` needs it, in the user's words."""
    module, _, name = place.partition(":")
    with wanted("train", "torch", what):
        return getattr(import_module(module), name)
