"""MEDI: discover novel classes from a handful of unlabelled examples.

Importing this package is cheap: torch is loaded by the first thing that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medi.bench.score import evaluate
    from medi.estimator import MetaDiscovery

__all__ = ["MetaDiscovery", "__version__", "evaluate"]

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name == "MetaDiscovery":
        from medi.estimator import MetaDiscovery

        return MetaDiscovery
    if name == "evaluate":
        from medi.bench.score import evaluate

        return evaluate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
