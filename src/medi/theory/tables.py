"""What the experiments found, as tables: on the terminal and in docs/theory.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from medi.data.facts import facts_of
from medi.data.rules import RULES
from medi.runtime.files import read_journal
from medi.theory.bound import largest_useful_beta
from medi.theory.embeddings import KINDS
from medi.theory.solvability import TEACHERS, check_conditions
from medi.theory.stability import DELTA
from medi.theory.study import Row, spread

Table = list[list[str]]
"""Lines of cells; the first is the heading."""


def convergence_table(rows: Sequence[Row]) -> Table:
    """Mean error over families and seeds, and how many intervals hold the truth, by dimension and n."""
    sizes = sorted({row["job"]["n"] for row in rows})
    lines = [["dimensions", *(f"n = {n}" for n in sizes)]]
    for dimension in sorted({row["job"]["dimension"] for row in rows}):
        cells = [str(dimension)]
        for n in sizes:
            mine = [row for row in rows if (row["job"]["dimension"], row["job"]["n"]) == (dimension, n)]
            error, _ = spread([abs(row["tau"] - row["exact"]) for row in mine])
            held = sum(row["low"] <= row["exact"] <= row["high"] for row in mine)
            cells.append(f"{error:.3f} ({held} of {len(mine)})")
        lines.append(cells)
    return lines


def separability_table(rows: Sequence[Row]) -> Table:
    """Overlap of novel classes by kind of transformation: mean ± deviation over seeds, and the widest interval."""
    lines = [["novel classes of", "classes × images", "seeds", *KINDS]]
    for dataset in dict.fromkeys(row["job"]["dataset"] for row in rows):
        mine = [row for row in rows if row["job"]["dataset"] == dataset]
        by_kind = {kind: [row for row in mine if row["job"]["kind"] == kind] for kind in KINDS}
        cells = [
            facts_of(dataset).title,
            f"{mine[0]['classes']} × {mine[0]['per_class'][0]}",
            str(min(map(len, by_kind.values()))),
        ]
        for some in by_kind.values():
            if not some:  # not measured yet
                cells.append("")
                continue
            low, high = min(row["low"] for row in some), max(row["high"] for row in some)
            cells.append(f"{mean_of([row['tau'] for row in some])} ({low:.2f} to {high:.2f})")
        lines.append(cells)
    return lines


def solvability_table(rows: Sequence[Row]) -> Table:
    """ACC of novel classes in percent and their tau, by what taught pi and by the rule of the novel classes."""
    lines = [["pi learnt from", *(f"novel by {rule}" for rule in RULES)]]
    for teacher in TEACHERS:
        mine = [row["novel"] for row in rows if row["job"]["teacher"] == teacher]
        cells = [f"known classes by {teacher}" if teacher in RULES else f"nothing: {teacher}"]
        for rule in RULES:
            accuracy = mean_of([100 * one[rule]["acc"] for one in mine], digits=1)
            cells.append(f"{accuracy}, τ {spread([one[rule]['tau'] for one in mine])[0]:.2f}")
        lines.append(cells)
    return lines


def conditions_table(rows: Sequence[Row]) -> Table:
    """The conditions of Theorems 1 and 2 for every pair of rules."""
    lines = [
        ["known by", "novel by", "ε known", "ε novel", "(D) holds", "gap", "ε known ≤ ε novel", "Theorem 2 applies"]
    ]
    for known in RULES:
        for novel in RULES:
            found = check_conditions(rows, known, novel)
            numbers = [f"{found[name]:.2f}" for name in ("epsilon_known", "epsilon_novel")]
            truths = ["yes" if found[name] else "no" for name in ("shared", "gap", "easier", "impossible")]
            lines.append([known, novel, *numbers, *truths])
    return lines


def stability_table(rows: Sequence[Row]) -> Table:
    """Theorem 3's pieces by method, loss and number of tasks."""
    lines = [["method", "loss", "n", "training tasks", "fresh tasks", "novel classes", "β found", "β needed", "bound"]]
    for method in dict.fromkeys(row["job"]["method"] for row in rows):
        for loss in rows[0]["losses"]:
            for n in sorted({row["job"]["n"] for row in rows if row["job"]["method"] == method}):
                mine = [row["losses"][loss] for row in rows if (row["job"]["method"], row["job"]["n"]) == (method, n)]
                largest = mine[0]["max_loss"]
                cells = [mean_of([one[name] for one in mine]) for name in ("train", "fresh", "novel", "beta")]
                needed = f"{largest_useful_beta(n, largest, DELTA):.4f}"
                bound = f"{spread([one['total'] for one in mine])[0]:.1f} > {largest:g}"
                if min(one["total"] for one in mine) < largest:
                    bound = mean_of([one["total"] for one in mine])
                lines.append([method.upper(), f"{loss}, M = {largest:g}", str(n), *cells, needed, bound])
    return lines


def mean_of(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard deviation."""
    mean, deviation = spread(values)
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


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
    found = {}
    for name, (journal, table) in TABLES.items():
        heading, *lines = table(read_journal(folder / journal))
        found[name] = "".join("| " + " | ".join(cells) + " |\n" for cells in (heading, ["---"] * len(heading), *lines))
    return found
