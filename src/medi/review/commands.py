"""`medi review`, `medi accept` and `medi export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medi.runtime.terminal import printable

DISCOVERY = typer.Argument(metavar="DIR", help="The folder that `medi discover` wrote.", show_default=False)
FORMATS = ("folders", "csv", "huggingface", "labelstudio", "fiftyone")


def review(
    folder: Annotated[Path, DISCOVERY],
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, show_default="any free port", help="Where to listen.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Look at the groups on a page of this machine: name, merge, split, answer, accept. Ctrl-C stops it.

    Every action is kept in DIR/review.jsonl before it is answered; start it again to go on.
    """
    from medi.review.serve import serve

    def warn(line: str) -> None:
        typer.echo(f"medi: {printable(line)}", err=True)

    serve(folder, port, browser=not no_browser, announce=typer.echo, warn=warn)


def accept(
    folder: Annotated[Path, DISCOVERY],
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
) -> None:
    """Make known classes of named groups: each gets a folder of its photos in KNOWN.

    The next `medi discover` of the same pool leaves them out, and `medi assign` uses the names.
    """
    from medi.review.accept_command import run_accept

    for line in run_accept(folder, into, groups or (), move=move):
        typer.echo(printable(line))


def export(
    folder: Annotated[Path, DISCOVERY],
    form: Annotated[str, typer.Option("--format", metavar="NAME", help=f"{', '.join(FORMATS)}.")],
    out: Annotated[Path, typer.Option(help="File (csv) or new folder (all others) to write.")],
) -> None:
    """Write the reviewed groups for other programs."""
    if form not in FORMATS:
        from medi.errors import unknown_name

        raise unknown_name("format", form, FORMATS)
    from medi.review.export import run_export

    typer.echo(printable(run_export(folder, form, out)))
