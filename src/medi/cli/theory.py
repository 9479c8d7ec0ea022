"""`medi theory`: the generalisation bound, and the overlap of given features."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medi.cli.options import Json
from medi.core.errors import InputError, reason_of
from medi.core.terminal import strict_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

app = typer.Typer(help="Theory: the overlap of classes, the generalisation bound.", no_args_is_help=True)


@app.command("bound")
def bound_command(
    tasks: Annotated[int, typer.Option(help="Number of training tasks, n.")],
    beta: Annotated[float, typer.Option(help="Uniform stability of the meta-algorithm.")],
    max_loss: Annotated[float, typer.Option(help="What the loss never exceeds, M.")],
    delta: Annotated[float, typer.Option(help="Chance that the statement fails.")] = 0.05,
    wanted: Annotated[
        float | None,
        typer.Option("--epsilon", help="Also say how many tasks it takes to come down to this, if beta falls as 1/n."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Theorem 3: how far the risk on fresh tasks may lie above that on the training tasks."""
    from medi.theory.bound import generalisation_bound, largest_useful_beta, tasks_needed

    epsilon = generalisation_bound(tasks, beta, max_loss, delta)
    useful = largest_useful_beta(tasks, max_loss, delta)
    needed = None if wanted is None else tasks_needed(wanted, tasks * beta, max_loss, delta)
    if as_json:
        found = {"epsilon": epsilon, "vacuous": epsilon >= max_loss, "largest_useful_beta": useful}
        typer.echo(strict_json(found | {"tasks_needed": needed}))
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
    if needed is not None:
        typer.echo(f"At most {wanted:g} takes {needed} tasks, if beta is {tasks * beta:.3g} / n for every number n.")


@app.command("overlap")
def overlap_command(
    features: Annotated[Path, typer.Option(help="A .npz with arrays z (n, d) and y (n,).", metavar="FILE.npz")],
    neighbours: Annotated[int, typer.Option(help="Which nearest neighbour measures nearness.")] = 5,
    seed: Annotated[int, typer.Option(help="Of every random draw.", min=0, max=10**9)] = 0,
    as_json: Json = False,
) -> None:
    """Definitions 1 and 2: the largest probability, over pairs of classes, that a point lies in both supports.

    Estimated is the overlap of regions that hold nearly all of each class: all but a share 1 / (2 sqrt(m)), m half the
    class's points. Classes with endless tails overlap wholly by the definition; here they do not once they are some
    standard deviations apart. Use it to compare representations of the same points.
    """
    z, y = read_features(features)
    from medi.core.progress import Reporter
    from medi.theory.supports import overlap

    found = overlap(z, y, neighbours=neighbours, seed=seed, reporter=Reporter())
    if as_json:
        typer.echo(strict_json(asdict(found)))
        return
    first, second = found.pair
    typer.echo(
        f"tau = {found.tau:.4f}, 95 % interval {found.low:.4f} to {found.high:.4f}, "
        f"largest between classes {first} and {second}"
    )


def read_features(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Arrays z (n, d) of numbers and y (n,) of integers in a .npz file; nothing in it is ever unpickled."""
    import numpy as np

    from medi.core.reading import input_errors, open_file

    with input_errors(path, "read"), open_file(path) as content:
        try:
            with np.load(content, allow_pickle=False) as file:
                z, y = file["z"], file["y"]
        except Exception as error:  # a broken file makes zipfile and numpy raise almost anything
            reason = f"{path} is no readable .npz with arrays z and y ({reason_of(error)})"
            raise InputError(f"{reason}: write it with numpy.savez(file, z=…, y=…).") from error
    if z.dtype.kind not in "fiu" or y.dtype.kind not in "iu":
        raise InputError(f"{path} has z of {z.dtype} and y of {y.dtype}: z needs numbers, y integers, 0, 1, …")
    return z, y
