"""What the commands of `medi bench` show on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from medi.bench.choose import Summary
from medi.bench.tables import COLUMNS, Line, note


def show_lines(lines: Sequence[Line]) -> None:
    """A table on the terminal, with what fits there: the other formats have every column."""
    shown = [COLUMNS.index(name) for name in ("dataset", "task", "score", "method", "regime", "balance")]
    shown += [COLUMNS.index(name) for name in ("ACC", "std", "n", "ECE", "chance", "oracle", "paper")]
    if any(line.run.sizes == "unequal" for line in lines):
        shown.insert(3, COLUMNS.index("sizes"))
    table = Table(*(COLUMNS[i] for i in shown), box=None, pad_edge=False)
    for column, place in zip(table.columns, shown, strict=True):
        if place >= COLUMNS.index("ACC"):
            column.justify = "right"
    for line in lines:
        cells = line.cells()
        table.add_row(*(cells[i] for i in shown))
    console = Console()
    console.width = max(console.width, 140)  # a long line can be read, a cut name cannot
    console.print(table)
    console.print(f"\n{note(lines)}", highlight=False, soft_wrap=True)


def show_choices(summaries: Sequence[Summary]) -> None:
    """Candidates, the best of each task first."""
    table = Table("dataset", "method", "config", "observations", "regime", "ACC", "std", "splits", box=None)
    for summary in sorted(summaries, key=lambda s: (s.run.dataset, str(s.run.observations), s.run.regime, -s.acc)):
        run = summary.run
        table.add_row(
            run.dataset,
            run.method,
            run.config,
            str(run.observations),
            run.regime,
            f"{100 * summary.acc:.1f}",
            f"{100 * summary.std:.1f}",
            str(summary.splits),
        )
    console = Console()
    console.print(table)
    console.print("ACC in percent on held-out known classes; std over splits.", highlight=False)
