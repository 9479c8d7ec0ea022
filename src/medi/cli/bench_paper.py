"""`medi bench paper`: every table and figure of the paper, by what a clone of the repository has in `paper/`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import medi
from medi.bench.grid_options import parse_datasets, parse_list
from medi.cli.options import Dataset, Device, Out, Resume
from medi.core.errors import InputError, LostError


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
    jobs: Annotated[
        int,
        typer.Option(help="Processes that share this machine or its GPU: 10 to 14 keep an H200 busy.", min=1, max=1024),
    ] = 1,
) -> None:
    """Every table and figure of the paper: ablation, published recipes, K-means, few and abundant observations.

    Needs a clone of the repository. Says what is left and about how long it takes; an interrupted run continues with
    --resume. A run that fails is said, and the others are done. Tables and figures are written to OUT/paper as soon as
    their first seed is there. Results copied into OUT/results.jsonl are not run again. MP as published is run with five
    seeds at least, as what CATA adds is a small difference.
    """
    datasets, only = parse_datasets(dataset), parse_list(part, "--part") if part is not None else []
    paper = of_a_clone("paper.run")
    from medi.bench.work import local_workers
    from medi.core.progress import Reporter
    from medi.nn.devices import choose_device

    workers = local_workers(jobs, choose_device(device).type, keep_going=True)
    wanted = paper.Wanted(datasets, seeds, episodes, only)
    for path in paper.run_paper(wanted, out, workers, device=device, resume=resume, reporter=Reporter()):
        typer.echo(f"wrote {path}")
    if workers.failures:
        raise LostError(
            f"{len(workers.failures)} of the trainings failed ({workers.failures[0]}, …), see above; the others are in "
            f"{out}. Add --resume to try these again."
        )


def of_a_clone(module: str) -> Any:
    """A module of the folder `paper/` of the clone that this program runs from, or else of the current folder."""
    places = [Path(medi.__file__).resolve().parents[2], Path.cwd()]
    for place in places:
        if (place / "paper" / "parts.py").is_file():
            sys.path.insert(0, str(place))
            return import_module(module)
    looked = " or ".join(str(place / "paper") for place in places)
    raise InputError(f"the paper's tables need a clone of the repository, and there is no {looked}: run it in a clone.")
