"""`medi review`, `medi accept` and `medi export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from medi.core.terminal import printable

DISCOVERED = typer.Argument(metavar="DIR", help="The folder that `medi discover` wrote.", show_default=False)
EXPORT_FORMATS = ("folders", "csv", "xmp", "huggingface", "labelstudio", "fiftyone")


def review(
    folder: Annotated[Path, DISCOVERED],
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, show_default="any free port", help="Where to listen.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Look at the groups on a page of this machine: name, merge, split, answer, accept. Ctrl-C stops it.

    Every action is kept in DIR/review.jsonl before it is answered; start it again to go on.
    """
    from medi.review.server import serve

    def warn(line: str) -> None:
        typer.echo(f"medi: {printable(line)}", err=True)

    serve(folder, port, browser=not no_browser, announce=typer.echo, warn=warn)


def accept(
    folder: Annotated[Path, DISCOVERED],
    into: Annotated[Path, typer.Option(metavar="KNOWN", help="Folder of known classes.")],
    groups: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="G[+G…]=NAME …",
            help="Groups to accept, by number, and their name; more than one are merged. Without any: all named ones.",
            show_default=False,
        ),
    ] = None,
    move: Annotated[bool, typer.Option("--move", help="Take the photos out of the pool.")] = False,
    doubtful: Annotated[
        bool,
        typer.Option("--doubtful", help="Accept doubtful photos too; a terminal asks, a script leaves them out."),
    ] = False,
) -> None:
    """Make known classes of named groups: each gets a folder of its photos in KNOWN, but for doubtful ones.

    The next `medi discover` of the same pool leaves them out, and `medi assign` uses the names. Where a page of
    `medi review` is open, it does that.
    """
    from medi.cli.accept import in_words, run_accept
    from medi.review.discovery_folder import command_again

    accepted = run_accept(folder, into, groups or (), move=move, doubtful=doubtful)
    for line in in_words(accepted, folder, into, move=move):
        typer.echo(printable(line))
    if accepted.now and (again := command_again(folder)):
        typer.echo(printable(f"Next, to sort what is left: {again} --force"))
    if accepted.doubtful and sys.stdin.isatty() and typer.confirm("Accept those too?", default=False):
        for line in in_words(run_accept(folder, into, groups or (), move=move, doubtful=True), folder, into, move=move):
            typer.echo(printable(line))


def export(
    folder: Annotated[Path, DISCOVERED],
    form: Annotated[str, typer.Option("--format", metavar="NAME", help=f"{', '.join(EXPORT_FORMATS)}.")],
    out: Annotated[Path, typer.Option(help="File (csv) or new folder (all others) to write.")],
) -> None:
    """Write everything that was ever sorted in DIR for other programs, photos accepted in earlier rounds included."""
    if form not in EXPORT_FORMATS:
        from medi.core.errors import unknown_name

        raise unknown_name("format", form, EXPORT_FORMATS)
    from medi.review.export import run_export

    typer.echo(printable(run_export(folder, form, out)))
