"""`medi theory`: the bound, the overlap of given features, and the experiments of docs/theory.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from medi.bench.grid import parse_list
from medi.data.facts import facts_of
from medi.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

app = typer.Typer(help="Theory: overlap, solvability, stability, the generalisation bound.", no_args_is_help=True)

Out = Annotated[Path, typer.Option(help="Folder for results and figures; what is there already is not done again.")]
Seeds = Annotated[int, typer.Option(help="How many seeds.", min=1, max=1000)]
Json = Annotated[bool, typer.Option("--json", help="Print a JSON object instead.")]


@app.command("bound")
def bound_command(
    tasks: Annotated[int, typer.Option(help="Number of training tasks, n.")],
    beta: Annotated[float, typer.Option(help="Uniform stability of the meta-algorithm.")],
    max_loss: Annotated[float, typer.Option(help="What the loss never exceeds, M.")],
    delta: Annotated[float, typer.Option(help="Chance that the statement fails.")] = 0.05,
    as_json: Json = False,
) -> None:
    """Theorem 3: how far the risk on fresh tasks may lie above that on the training tasks."""
    from medi.theory.bound import generalisation_bound, largest_useful_beta

    epsilon = generalisation_bound(tasks, beta, max_loss, delta)
    useful = largest_useful_beta(tasks, max_loss, delta)
    if as_json:
        typer.echo(json.dumps({"epsilon": epsilon, "vacuous": epsilon >= max_loss, "largest_useful_beta": useful}))
        return
    typer.echo(f"epsilon = {epsilon:.6g}")
    if epsilon < max_loss:
        typer.echo(
            f"With probability {1 - delta:g} fresh tasks cost at most {epsilon:.3g} more than the training tasks do."
        )
    elif useful > 0:
        typer.echo(
            f"Vacuous: it is not below the largest loss, {max_loss:g}. It would be with beta below {useful:.3g}."
        )
    else:
        typer.echo(
            f"Vacuous: it is not below the largest loss, {max_loss:g}, with any beta: {tasks} tasks are too few."
        )


@app.command("overlap")
def overlap_command(
    features: Annotated[Path, typer.Option(help="A .npz with arrays z (n, d) and y (n,).", metavar="FILE.npz")],
    neighbours: Annotated[int, typer.Option(help="Which nearest neighbour measures nearness.")] = 5,
    bootstrap: Annotated[int, typer.Option(help="Resamples for the interval.")] = 200,
    confidence: Annotated[float, typer.Option(help="Of the interval.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of every random draw.", min=0, max=10**9)] = 0,
    as_json: Json = False,
) -> None:
    """Definitions 1 and 2: the largest probability, over pairs of classes, that a point lies in both supports."""
    z, y = read_features(features)
    from medi.runtime.progress import Reporter
    from medi.theory.supports import overlap

    found = overlap(
        z, y, neighbours=neighbours, bootstrap=bootstrap, confidence=confidence, seed=seed, reporter=Reporter()
    )
    if as_json:
        typer.echo(json.dumps(asdict(found)))
        return
    first, second = found.pair
    typer.echo(
        f"tau = {found.tau:.4f}, {100 * confidence:g} % interval {found.low:.4f} to {found.high:.4f}, "
        f"largest between classes {first} and {second}"
    )


@app.command("convergence")
def convergence_command(out: Out, seeds: Seeds = 5) -> None:
    """Estimate overlaps that are known exactly from samples of growing size; a table and a figure."""
    from medi.runtime.progress import Reporter
    from medi.theory.exact import study_convergence
    from medi.theory.tables import convergence_table

    rows = study_convergence(out, seeds=seeds, reporter=Reporter())
    _show(convergence_table(rows))
    typer.echo("Mean error over families and seeds; how many of their 95 % intervals hold the truth.")


@app.command("separability")
def separability_command(
    out: Out,
    dataset: Annotated[str, typer.Option(help="Benchmarks, separated by commas.", metavar="A,B")] = "glyphs,rules",
    seeds: Seeds = 3,
) -> None:
    """Overlap of novel classes in pixels and in random, supervised and meta-trained embeddings; a table."""
    datasets = parse_list(dataset, "--dataset")
    for name in datasets:
        facts_of(name)
    from medi.runtime.progress import Reporter
    from medi.theory.separability import study_separability
    from medi.theory.tables import separability_table

    _show(separability_table(study_separability(datasets, out, seeds=seeds, reporter=Reporter())))
    typer.echo("tau: mean ± std over seeds, and from the lowest to the highest end of their 95 % intervals.")


@app.command("solvability")
def solvability_command(out: Out, seeds: Seeds = 3) -> None:
    """Theorems 1 and 2 on `rules`: known classes that share the novel classes' rule, and ones that do not; a figure."""
    from medi.runtime.progress import Reporter
    from medi.theory.solvability import study_solvability
    from medi.theory.tables import conditions_table, solvability_table

    rows = study_solvability(out, seeds=seeds, reporter=Reporter())
    _show(solvability_table(rows))
    typer.echo("ACC in percent, mean ± std over seeds, honest regime; mean overlap.\n")
    _show(conditions_table(rows))


@app.command("stability")
def stability_command(out: Out, seeds: Seeds = 3) -> None:
    """Theorem 3 measured for MP and MM on small tasks: stability by leaving tasks out, the bound, fresh tasks."""
    from medi.runtime.progress import Reporter
    from medi.theory.stability import study_stability
    from medi.theory.tables import stability_table

    _show(stability_table(study_stability(out, seeds=seeds, reporter=Reporter())))
    typer.echo(
        "Mean ± std over seeds. beta is the largest change found, a lower bound of the stability: the bound made of it "
        "is an estimate, and at M or above it says nothing."
    )


def _show(lines: list[list[str]]) -> None:
    heading, *rest = lines
    table = Table(*heading, box=None, pad_edge=False)
    for cells in rest:
        table.add_row(*cells)
    console = Console()
    console.width = max(console.width, 160)  # a long line can be read, a cut number cannot
    console.print(table, highlight=False)


def read_features(path: Path) -> tuple[Tensor, Tensor]:
    """Arrays z (n, d) as floats and y (n,) as integers of a .npz file; nothing in it is ever unpickled."""
    import zipfile

    import numpy as np
    import torch

    from medi.runtime.files import input_errors

    with input_errors(path, "read"):
        if not path.is_file():
            raise InputError(f"there is no file {path}: give a .npz with arrays z (n, d) and y (n,).")
        try:
            file = np.load(path, allow_pickle=False)
            if isinstance(file, np.ndarray):
                raise InputError(f"{path} holds a single array: write it with numpy.savez(file, z=…, y=…).")
            with file:
                missing = [name for name in ("z", "y") if name not in file.files]
                if missing:
                    raise InputError(f"{path} lacks the array {missing[0]}: write it with numpy.savez(file, z=…, y=…).")
                z, y = file["z"], file["y"]
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} is no readable .npz of numbers: write it with numpy.savez.") from error
    if not (np.issubdtype(z.dtype, np.floating) or np.issubdtype(z.dtype, np.integer)):
        raise InputError(f"z in {path} has {z.dtype} values: numbers are needed.")
    if not np.issubdtype(y.dtype, np.integer):
        raise InputError(f"y in {path} has {y.dtype} values: classes must be integers, 0, 1, …")
    wide = np.float64 if z.dtype == np.float64 else np.float32
    return torch.from_numpy(z.astype(wide)), torch.from_numpy(y.astype(np.int64))
