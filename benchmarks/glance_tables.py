"""The tables of what `glance.py` measured."""

from typing import Any


def cases_table(rows: list[dict[str, Any]]) -> str:
    """Every case."""
    return f"{len(rows)} rows\n"
