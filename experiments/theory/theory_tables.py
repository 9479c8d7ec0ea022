"""What the studies found, as tables for `results/render.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from convergence import convergence_table
from separability import separability_table
from solvability import conditions_table, solvability_table
from stability import stability_table
from study import Row, Table, markdown

from medi.runtime.files import read_journal

TABLES: Mapping[str, tuple[str, Callable[[Sequence[Row]], Table]]] = MappingProxyType(
    {
        "convergence": ("convergence.jsonl", convergence_table),
        "separability": ("separability.jsonl", separability_table),
        "solvability": ("solvability.jsonl", solvability_table),
        "conditions": ("solvability.jsonl", conditions_table),
        "stability": ("stability.jsonl", stability_table),
    }
)
"""Every table by name, and the results it is made of."""


def markdown_tables(folder: Path) -> dict[str, str]:
    """Every table in Markdown, from the results in a folder."""
    return {name: markdown(table(read_journal(folder / journal))) for name, (journal, table) in TABLES.items()}
