"""What of the paper's theory can be computed: the overlap of classes and the generalisation bound.

Definitions and theorems are numbered as in Chi, Liu et al. 2022, "Meta Discovery: Learning to Discover Novel Classes
given Very Limited Data". Names are imported when they are first used, so that the command line starts without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medi.theory.bound import generalisation_bound, largest_useful_beta, tasks_needed
    from medi.theory.supports import Overlap, overlap

__all__ = ["Overlap", "generalisation_bound", "largest_useful_beta", "overlap", "tasks_needed"]

_HOMES = {
    "Overlap": "supports",
    "generalisation_bound": "bound",
    "largest_useful_beta": "bound",
    "overlap": "supports",
    "tasks_needed": "bound",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
