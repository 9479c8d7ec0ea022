"""What `complexity.py` wrote, as a part of docs/complexity.md: a heading, how it was measured, and three tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from medi.errors import InputError

PAPER = {("MM", "tasks"): "1", ("MP", "tasks"): "1", ("MM", ""): "0", ("MP", ""): "0", ("CATA", ""): "0"}
"""Exponents by the paper's formulas, F E D / B T and, for CATA, E D / B T: F counts tasks, T has none of the rest."""


def section(facts: Mapping[str, Any], name: str = "") -> str:
    """The Markdown of what `main` wrote; with the name that its file has under results/complexity, a link to that."""
    try:
        return "\n".join(["", *_heading(facts, name), *(markdown(part) for part in parts(facts) if part)])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"these are no figures of complexity.py ({error!r}): give a file that --out wrote.") from error


def parts(facts: Mapping[str, Any]) -> tuple[list[dict[str, str]], ...]:
    """Rows of the tables of training, of discovery and of growth; what was not measured is in none."""
    rows = facts["methods"]
    return (
        [_training(row["method"], stage) for row in rows for stage in row["training"]],
        [_discovery(row["method"], row["discovery"]) for row in rows if row["discovery"]],
        [_growth(row["method"], axis, found) for row in rows for axis, found in row["growth"].items()],
    )


def markdown(rows: list[dict[str, str]]) -> str:
    """A Markdown table of rows that share their columns."""
    head = "| " + " | ".join(rows[0]) + " |\n|" + " --- |" * len(rows[0]) + "\n"
    return head + "".join("| " + " | ".join(row.values()) + " |\n" for row in rows)


def digits(number: float) -> str:
    """Three digits, and never a power of ten."""
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def _heading(facts: Mapping[str, Any], name: str) -> list[str]:
    rows, device = facts["methods"], facts["device"]
    cpu = device.startswith("cpu")
    loads = [row["load"] for row in rows]
    busy = f", a load of {min(loads)} to {max(loads)}" if cpu else ""
    link = f" ([{name}.json](../results/complexity/{name}.json))" if name else ""
    minutes, seconds = divmod(round(sum(row["took"] for row in rows)), 60)
    return [
        f"## One {'CPU core' if cpu else device}\n",
        f"{facts['network'].capitalize()}, configs for a {'CPU' if facts['shape']['small'] else 'GPU'}. "
        f"Tables at {_size(facts['shape'])};",
        f"growth from {_size(facts['growth starts at'])}.",
        f"{device}, {facts['processor']} with {facts['cores']} cores{busy}, torch {facts['torch']}, "
        f"Python {facts['python']};",
        f"n repeats of each piece, {minutes} min {seconds} s in all{link}.\n",
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


def insert(page: str, name: str, table: str) -> str:
    """A page with a table between its marks `<!-- name -->` and `<!-- end of name -->`."""
    marks = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end of {re.escape(name)} -->)", re.DOTALL)
    text, found = marks.subn(lambda marks: marks[1] + table + marks[2], page)
    if found != 1:
        raise InputError(f"the page has {found} places marked '<!-- {name} -->', not one: mark where the table goes.")
    return text
