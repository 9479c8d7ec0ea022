"""What `complexity.py` measured, in Markdown: a heading, how it was measured, and three tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common import markdown

from medi.core.errors import InputError

PAPER = {("MM", "tasks"): "1", ("MP", "tasks"): "1", ("MM", ""): "0", ("MP", ""): "0", ("CATA", ""): "0"}
"""Exponents by the paper's formulas, F E D / B T and, for CATA, E D / B T: F counts tasks, T is a constant."""


def section(facts: Mapping[str, Any]) -> str:
    """The Markdown of what `complexity.py` wrote; a table without a row is left out."""
    try:
        rows = facts["methods"]
        tables = (
            [_training(row["method"], stage) for row in rows for stage in row["training"]],
            [_discovery(row["method"], row["discovery"]) for row in rows if row["discovery"]],
            [_growth(row["method"], axis, found) for row in rows for axis, found in row["growth"].items()],
        )
        return "\n".join(["", *_heading(facts), *(_table(table) for table in tables if table)])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"these are no figures of complexity.py ({error!r}): give a file that --out wrote.") from error


def digits(number: float) -> str:
    """Three digits, and never a power of ten."""
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    return markdown([list(rows[0]), *(list(row.values()) for row in rows)])


def _heading(facts: Mapping[str, Any]) -> list[str]:
    rows, device = facts["methods"], facts["device"]
    cpu = device.startswith("cpu")
    loads = [row["load"] for row in rows]
    busy = f", a load of {min(loads)} to {max(loads)}" if cpu else ""
    minutes, seconds = divmod(round(sum(row["took"] for row in rows)), 60)
    return [
        f"## One {'CPU core' if cpu else device}\n",
        f"{facts['network'].capitalize()}, configs for a {'CPU' if facts['shape']['small'] else 'GPU'}. "
        f"Tables at {_size(facts['shape'])};",
        f"growth from {_size(facts['growth starts at'])}.",
        f"{device}, {facts['processor']} with {facts['cores']} cores{busy}, torch {facts['torch']}, "
        f"Python {facts['python']};",
        f"n repeats of each piece, {minutes} min {seconds} s in all.\n",
    ]


def _size(shape: Mapping[str, Any]) -> str:
    tasks = f"{shape['tasks']} task{'s' * (shape['tasks'] > 1)}"
    of_a_class = f"{shape['observations']} observations and {shape['queries']} queries of a class"
    return f"{tasks}, {shape['way']}-way, {of_a_class}, {shape['inner']} inner steps"


def _costs(figures: Mapping[str, Any]) -> dict[str, str]:
    fastest, middle, slowest = (digits(1000 * figures[name]) for name in ("fastest", "seconds", "slowest"))
    return {
        "GFLOPs": digits(figures["flops"] / 1e9),
        "ms (fastest to slowest; n)": f"{middle} ({fastest} to {slowest}; {figures['repeats']})",
        "peak MiB": digits(figures["peak bytes"] / 2**20),
    }


def _training(method: str, stage: Mapping[str, Any]) -> dict[str, str]:
    return {
        "a training step of": f"{method}: {stage['stage']}",
        "images": str(stage["images"]),
        **_costs(stage),
        "MFLOPs an image": digits(stage["flops"] / stage["images"] / 1e6),
        "steps in the config": f"{stage['steps']:,}",
        "all steps, TFLOPs": digits(stage["flops"] * stage["steps"] / 1e12),
    }


def _discovery(method: str, figures: Mapping[str, Any]) -> dict[str, str]:
    return {"a discovery by": method, "steps on the bag": str(figures["steps"]), **_costs(figures)}


def _growth(method: str, axis: str, found: Mapping[str, Any]) -> dict[str, str]:
    paper = PAPER.get((method, axis)) or PAPER.get((method, ""), "not given")
    cells = {"growth of": method, "with": axis, "paper, training": paper}
    for what in ("training", "discovery"):
        for cost, name in (("flops", "FLOPs"), ("seconds", "s"), ("peak bytes", "memory")):
            slope = found.get(what, {}).get(cost, {}).get("exponent")
            cells[f"{what}, {name}"] = "" if slope is None else f"{slope:.2f}"
    return cells
