"""`medi bench table` and `figure`, and what the other commands show on a terminal: results as a reader sees them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from medi.bench.grid import SCORES, SIZES
from medi.cli.options import Results
from medi.core.errors import refuse_unknown

if TYPE_CHECKING:
    from medi.bench.choose import CandidateScore

TABLE_FORMATS = ("text", "md", "csv", "latex")
WITHOUT = {"sizes", "±95", "episodes", "NMI", "ARI", "config", "compared by"}
"""Columns that do not fit on a terminal: the other formats have them."""


def table_command(
    results: Results,
    format: Annotated[str, typer.Option(help="text, md, csv or latex.")] = "text",
) -> None:
    """Print results: mean, std and n over seeds beside the paper's numbers, chance and the oracle."""
    refuse_unknown("format", format, TABLE_FORMATS)
    from medi.bench.tables import read_results, render

    rows = read_results(*results)
    if format == "text":
        show_rows(rows)
    else:
        typer.echo(render(rows, format), nl=False)


def figure_command(
    results: Results,
    out: Annotated[Path, typer.Option(help="The picture to write: .png, .pdf or .svg.")],
    score: Annotated[
        str | None, typer.Option(help="Which scores: pooled or episode.", show_default="pooled where there are any")
    ] = None,
    sampler: Annotated[str | None, typer.Option(help="Only this one of mm and mp.", show_default="all")] = None,
    balance: Annotated[
        str | None,
        typer.Option(
            help="Only results of methods that were told that classes are equally large (on), or that were not (off).",
            metavar="on|off",
            show_default="all",
        ),
    ] = None,
    sizes: Annotated[str, typer.Option(help="Of classes: equal or unequal.")] = "equal",
) -> None:
    """Draw results: bars of ACC for every method on each dataset, with chance, oracle and error bars.

    Results of pools (`--grouping posterior`) are not drawn: `medi bench table` shows them.

    Example: medi bench figure --results out --results more --sampler uniform --out comparison.png
    """
    if score is not None:
        refuse_unknown("value of --score", score, SCORES)
    if balance is not None:
        refuse_unknown("value of --balance", balance, ("on", "off"))
    refuse_unknown("value of --sizes", sizes, SIZES)
    from medi.bench.figures import draw_comparison, save_figure
    from medi.bench.tables import read_results

    rows = read_results(*results)
    score = score or ("pooled" if any(row["score"] == "pooled" for row in rows) else "episode")
    told = None if balance is None else balance == "on"
    save_figure(draw_comparison(rows, score, sampler, told, sizes), out)
    typer.echo(f"drew {out}")


def show_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Tables on the terminal, with what fits there."""
    from medi.bench.tables import tables_of

    console = Console()
    console.width = max(console.width, 240)  # a long line can be read, a cut name cannot
    unequal = any(row.get("sizes") == "unequal" for row in rows)
    for made in tables_of(rows):
        shown = [i for i, name in enumerate(made.columns) if name not in WITHOUT or (name == "sizes" and unequal)]
        table = Table(*(made.columns[i] for i in shown), box=None, pad_edge=False)
        for column, place in zip(table.columns, shown, strict=True):
            if place >= made.words:
                column.justify = "right"
        for cells in made.cells:
            table.add_row(*(cells[i] for i in shown))
        console.print(table)
        console.print(f"\n{made.note}", highlight=False, soft_wrap=True)


def show_choices(summaries: Sequence[CandidateScore]) -> None:
    """Candidates, the best of each task first: of those that diverged least often."""
    table = Table("dataset", "method", "config", "observations", "regime", "ACC", "std", "splits", box=None)

    def place(one: CandidateScore) -> tuple[str, str, str, int, float]:
        return one.run.dataset, str(one.run.observations), one.run.regime, -one.splits, -(one.acc or 0)

    for summary in sorted(summaries, key=place):
        run = summary.run
        table.add_row(
            run.dataset,
            run.method,
            run.config,
            str(run.observations),
            run.regime,
            "diverged" if summary.acc is None else f"{100 * summary.acc:.1f}",
            f"{100 * summary.std:.1f}",
            str(summary.splits),
        )
    console = Console()
    console.print(table)
    console.print(
        "ACC in percent on held-out known classes; std over splits where training did not diverge.", highlight=False
    )
