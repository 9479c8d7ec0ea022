"""Options that several commands of `medi bench` have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medi.names import METHOD_NAMES, SAMPLER_NAMES

Dataset = Annotated[
    str,
    typer.Option(
        help="Benchmarks, separated by commas (`medi data list`); or folder:PATH, with a subfolder of photos for each "
        "class; or path/to/file.py:function.",
        metavar="A,B",
    ),
]
Methods = Annotated[
    str,
    typer.Option(
        "--method",
        help=f"{', '.join(METHOD_NAMES)}, or path/to/file.py:Name; separated by commas.",
        metavar="A,B",
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for results and trained models.")]
Sampler = Annotated[
    str, typer.Option(help=f"How methods that train on tasks draw them: {', '.join(SAMPLER_NAMES)} (docs/cata.md).")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Change one of the method's settings, such as schedule.steps=100; repeat for several.",
        metavar="FIELD=VALUE",
        show_default=False,
    ),
]
Way = Annotated[int | None, typer.Option(help="Novel classes in a task.", show_default="the dataset's")]
Observations = Annotated[
    str, typer.Option(help="Unlabelled images of each novel class: 1,5 or all.", metavar="1,5|all")
]
Results = Annotated[list[Path], typer.Option(help="Folder with results.jsonl in or below it; repeat for several.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue in a folder that has results; do what is missing.")]
