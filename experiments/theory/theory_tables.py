"""What the studies found, as tables for `results/render.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from convergence import convergence_table
from counting import needed_table
from guarantee import guarantee_table
from separability import separability_table
from solvability import conditions_table, minimisers_table, solvability_table
from stability import stability_table
from study import Table, markdown

from medi.core.files import read_journal

TABLES: Mapping[str, tuple[Callable[..., Table], *tuple[str, ...]]] = MappingProxyType(
    {
        "convergence": (convergence_table, "convergence.jsonl"),
        "separability": (separability_table, "separability.jsonl"),
        "solvability": (solvability_table, "solvability.jsonl"),
        "conditions": (conditions_table, "solvability.jsonl"),
        "minimisers": (minimisers_table, "solvability.jsonl"),
        "stability": (stability_table, "stability.jsonl"),
        "guarantee": (guarantee_table, "guarantee.jsonl"),
        "tasks needed": (needed_table, "guarantee.jsonl", "stability.jsonl"),
    }
)
"""Every table by name, and the results it is made of."""


def markdown_tables(folder: Path) -> dict[str, str]:
    """Every table in Markdown, from the results in a folder."""
    return {
        name: markdown(table(*(read_journal(folder / journal) for journal in journals)))
        for name, (table, *journals) in TABLES.items()
    }
