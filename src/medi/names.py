"""The registry of methods, and other names that the command line lists without importing torch."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

FILE_MARK = ".py:"
"""In the name of a method or a dataset: it is in a file of the user's own, `path/to/file.py:Name`."""

SAMPLER_NAMES = ("uniform", "cata")
"""How training tasks are drawn: from all known items alike, or each from one of CATA's views."""


class Listing(NamedTuple):
    """A line of the registry.

    Attributes:
        place: Module and class.
        title: The method's name in tables.
        in_paper: Whether the paper compares it, so that `medi bench paper` and the figures show it.
        later: Whether it was published after those, and is compared beside them.
    """

    place: str
    title: str
    in_paper: bool = False
    later: bool = False


METHOD_LISTINGS: Mapping[str, Listing] = MappingProxyType(
    {
        "kmeans": Listing("medi.methods.kmeans:KMeans", "K-means", in_paper=True),
        "kcl": Listing("medi.methods.kcl:KCL", "KCL", in_paper=True),
        "mcl": Listing("medi.methods.mcl:MCL", "MCL", in_paper=True),
        "dtc": Listing("medi.methods.dtc:DTC", "DTC", in_paper=True),
        "rs": Listing("medi.methods.rs:RS", "RS", in_paper=True),
        "mm": Listing("medi.methods.mm:MM", "MM", in_paper=True),
        "mp": Listing("medi.methods.mp:MP", "MP", in_paper=True),
        "uno": Listing("medi.methods.uno:UNO", "UNO", later=True),
        "simgcd": Listing("medi.methods.simgcd:SimGCD", "SimGCD", later=True),
        "medi": Listing("medi.methods.medi:Medi", "medi"),
    }
)
"""Methods by their name on the command line, simple ones first: a method is added by adding a line."""

METHOD_NAMES = tuple(METHOD_LISTINGS)


def title_of(method: str) -> str:
    """A method's name in tables; one from a file of the user's own goes by its class."""
    return METHOD_LISTINGS[method].title if method in METHOD_LISTINGS else method.rpartition(":")[2]
