"""MEDI: discover novel classes from a handful of unlabelled examples.

Importing this package is cheap: what a name needs is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medi.bench.score import evaluate
    from medi.estimator import MetaDiscovery

__all__ = ["MetaDiscovery", "__version__", "evaluate"]

__version__ = "0.2.0"

_HOMES = {"MetaDiscovery": "medi.estimator", "evaluate": "medi.bench.score"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
