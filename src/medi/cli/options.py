"""Options that several commands have, and the groups in which `--help` shows those of `medi bench`."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from medi.registry import METHOD_NAMES, SAMPLER_NAMES

what = partial(typer.Option, rich_help_panel="What is run")
task = partial(typer.Option, rich_help_panel="The task")
told = partial(typer.Option, rich_help_panel="What a method is told, and how it is scored")
work = partial(typer.Option, rich_help_panel="How the work is done")

Dataset = Annotated[
    str,
    what(
        help="Benchmarks, separated by commas (`medi data list`); or folder:PATH, with a subfolder of photos for each "
        "class; or path/to/file.py:function.",
        metavar="A,B",
    ),
]
Methods = Annotated[
    str,
    what("--method", help=f"{', '.join(METHOD_NAMES)}, or path/to/file.py:Name; separated by commas.", metavar="A,B"),
]
Out = Annotated[Path, what(help="Folder for results and trained models.")]
SamplerName = Annotated[
    str, what(help=f"How methods that train on tasks draw them: {', '.join(SAMPLER_NAMES)} (docs/cata.md).")
]
Set = Annotated[
    list[str] | None,
    what(
        "--set",
        help="Change one of the method's settings, such as schedule.steps=100; repeat for several.",
        metavar="FIELD=VALUE",
        show_default=False,
    ),
]
Way = Annotated[int | None, task(help="Novel classes in a task.", show_default="the dataset's")]
Observations = Annotated[str, task(help="Unlabelled images of each novel class: 1,5 or all.", metavar="1,5|all")]
Device = Annotated[str, work(help="auto, cpu or cuda.")]
Resume = Annotated[bool, work("--resume", help="Continue in a folder that has results; do what is missing.")]
Results = Annotated[list[Path], typer.Option(help="Folder with results.jsonl in or below it; repeat for several.")]
Json = Annotated[bool, typer.Option("--json", help="Print a JSON object instead.")]


class RayCommand(TyperCommand):
    """A command whose `--ray` needs no address, which typer's options cannot."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Fill in the address of this machine where none is given."""
        filled = []
        for argument, following in pairwise([*args, "-"]):
            filled += [argument, "local"] if argument == "--ray" and following.startswith("-") else [argument]
        return super().parse_args(ctx, filled)
