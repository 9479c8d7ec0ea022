"""`medi bench table`, `paper` and `figure`: results as a reader sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medi.bench.grid import SCORES, SIZES, parse_datasets, parse_list
from medi.bench.options import Dataset, Device, Out, Results, Resume
from medi.errors import unknown_name

TABLE_FORMATS = ("text", "md", "csv", "latex")


def table_command(
    results: Results,
    format: Annotated[str, typer.Option(help="text, md, csv or latex.")] = "text",
) -> None:
    """Print results: mean, std and n over seeds beside the paper's numbers, chance and the oracle."""
    if format not in TABLE_FORMATS:
        raise unknown_name("format", format, TABLE_FORMATS)
    from medi.bench.tables import read_results, render, summarise
    from medi.bench.terminal import show_lines

    lines = summarise(read_results(*results))
    if format == "text":
        show_lines(lines)
    else:
        typer.echo(render(lines, format), nl=False)


def paper_command(
    out: Out,
    dataset: Dataset = "svhn,cifar10,cifar100,omniglot",
    part: Annotated[
        str | None,
        typer.Option(help="Only these, by the name of their table in OUT/paper.", metavar="A,B", show_default="all"),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds; one over everything first.", min=1, max=1000)] = 3,
    episodes: Annotated[int, typer.Option(help="Scoring episodes.", min=1, max=10**6)] = 600,
    device: Device = "auto",
    resume: Resume = False,
) -> None:
    """Every table and figure of the paper: ablation, published recipes, K-means, few and abundant observations.

    Says what is left and about how long it takes; an interrupted run continues with --resume. Tables and figures are
    written to OUT/paper as soon as their first seed is there. Results copied into OUT/results.jsonl are not run again.
    MP as published is run with five seeds at least, as what CATA adds is a small difference.
    """
    datasets, only = parse_datasets(dataset), parse_list(part, "--part") if part is not None else []
    from medi.bench.paper import run_paper
    from medi.runtime.devices import choose_device
    from medi.runtime.progress import Reporter

    chosen = choose_device(device)
    written = run_paper(
        datasets,
        out,
        seeds=range(seeds),
        episodes=episodes,
        device=chosen,
        resume=resume,
        reporter=Reporter(),
        only=only,
    )
    for path in written:
        typer.echo(f"wrote {path}")


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

    Example: medi bench figure --results out --results more --sampler uniform --out comparison.png
    """
    if score is not None and score not in SCORES:
        raise unknown_name("value of --score", score, SCORES)
    if balance not in (None, "on", "off"):
        raise unknown_name("value of --balance", balance, ("on", "off"))
    if sizes not in SIZES:
        raise unknown_name("value of --sizes", sizes, SIZES)
    from medi.bench.figures import draw_comparison, save_figure
    from medi.bench.tables import read_results

    rows = read_results(*results)
    score = score or ("pooled" if any(row["score"] == "pooled" for row in rows) else "episode")
    told = None if balance is None else balance == "on"
    save_figure(draw_comparison(rows, score, sampler, told, sizes), out)
    typer.echo(f"drew {out}")
