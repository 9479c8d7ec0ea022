"""`medi discover` and `medi assign`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from medi.core.errors import InputError
from medi.core.progress import Reporter, Silent
from medi.core.terminal import printable, printing_aside, say, strict_json
from medi.registry import GROUPING_NAMES, METHOD_NAMES, PLAIN

if TYPE_CHECKING:
    from medi.photos.folders import Skipped

SKIPPED_SHOWN = 5
"""Skipped files named on the terminal; the others are counted."""

FORCE = typer.Option("--force", help="Replace what an earlier run wrote.")
FEATURES = typer.Option(
    metavar="FILE",
    help="Features that were made elsewhere (.npz or .parquet with `path` and `vector`); may be given more than once.",
)
VERBOSE = typer.Option("--verbose", help="Also say what runs the encoder, where it comes from, and its licence.")
RAY = typer.Option(help="Have photos encoded by a Ray cluster, or a Ray of this machine.", metavar="[ADDRESS]")


def discover(
    known: Annotated[Path, typer.Option(help="Folder with one subfolder of photos for each known class.")],
    novel: Annotated[Path, typer.Option(help="Folder with photos to sort: new things, and perhaps known ones.")],
    out: Annotated[Path, typer.Option(help="Folder for the results.")],
    classes: Annotated[str, typer.Option(metavar="N|auto", help="How many new classes there are.")] = "auto",
    method: Annotated[
        str,
        typer.Option(
            help="What learns from the known classes: plain (no training), or with medi[train] "
            f"{', '.join(METHOD_NAMES)}, or path/to/file.py:Name."
        ),
    ] = PLAIN,
    encoder: Annotated[
        str | None,
        typer.Option(
            show_default="efficientnet-lite0",
            help="What photos are compared by: `efficientnet-lite0` (made on ImageNet), `efficientnet-lite0-int8` "
            "(quicker), `conv4` or `resnet18` (trained on your known classes), `timm:NAME[@SIZE]`, "
            "`open_clip:NAME/PRETRAINED`, `transformers:NAME` (docs/encoders.md), or the folder of a saved model.",
        ),
    ] = None,
    features: Annotated[list[Path] | None, FEATURES] = None,
    grouping: Annotated[
        str, typer.Option(help="Who makes the groups: posterior, or path/to/file.py:Name (docs/discover.md).")
    ] = GROUPING_NAMES[0],
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Start of every random draw.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    export: Annotated[bool, typer.Option("--export", help="Also copy the photos into `groups/<cluster>/`.")] = False,
    only_novel: Annotated[
        bool, typer.Option("--only-novel", help="--novel holds nothing of known classes and no one-offs: group all.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print discovery.json rather than a summary.")] = False,
    verbose: Annotated[bool, VERBOSE] = False,
    force: Annotated[bool, FORCE] = False,
    ray: Annotated[str | None, RAY] = None,
) -> None:
    """Group photos of things never seen, using what known classes teach.

    A photo that looks like a known class is called known, one that resembles nothing else alone; the others are put
    into groups. Writes report.html (look at it first), clusters.csv, discovery.json and model/. Bad files are skipped
    and listed.
    An interrupted run continues when it is repeated. torchrun and --ray share the work among processes and machines
    (docs/cluster.md).
    """
    wanted = _classes(classes)
    if features and encoder is not None:
        raise InputError("--features and --encoder are two sources of features: give one of them.")
    from medi.discover.arguments import Arguments, Manner
    from medi.discover.run import run_discover
    from medi.photos.encoders import DEFAULT_ENCODER
    from medi.report.page import render
    from medi.review.carry_over import CARRIED

    source = None if features else DEFAULT_ENCODER if encoder is None else encoder
    given = tuple(features or ())
    arguments = Arguments(known, novel, out, wanted, method, source, seed, device, export, given, only_novel, grouping)
    with printing_aside(as_json):
        facts = run_discover(arguments, render, _reporter(), Manner(force, ray, verbose), carry=CARRIED)
    if facts is None:  # the first rank prints
        return
    if as_json:
        typer.echo(strict_json(facts))
    else:
        summarise(facts, out)


def assign(
    model: Annotated[Path, typer.Option(help="The folder model/ that `medi discover` wrote.")],
    images: Annotated[Path, typer.Option(help="Folder with new photos.")],
    out: Annotated[Path, typer.Option(help="CSV file to write: path, kind, label, confidence, second guess.")],
    sure: Annotated[
        float, typer.Option(metavar="P", help="How probable an answer must be, 0 to 1: what is less sure is `none`.")
    ] = 0.0,
    none_rate: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            show_default="what is likeliest",
            help="Share of photos of groups and known classes called none. A larger one finds more strangers.",
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="HTML file to write: the pictures by answer, the doubtful ones apart.")
    ] = None,
    features: Annotated[list[Path] | None, FEATURES] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts and skipped files as JSON.")] = False,
    verbose: Annotated[bool, VERBOSE] = False,
    force: Annotated[bool, FORCE] = False,
    ray: Annotated[str | None, RAY] = None,
) -> None:
    """Recognise discovered groups and known classes in new photos; what is neither is called `none`.

    Any number of photos: only a few are held at a time. torchrun and --ray share the work among processes and
    machines (docs/cluster.md).
    """
    if none_rate is not None and not 0 <= none_rate <= 1:
        raise InputError(f"--none-rate {none_rate} is no share of photos: give 0 to 1, such as 0.05.")
    if not 0 <= sure <= 1:
        raise InputError(f"--sure {sure} is no probability: give 0 to 1, such as 0.8.")
    from medi.discover.arguments import AssignArguments, Manner
    from medi.discover.assign import run_assign
    from medi.report.assigned import render_assigned

    with printing_aside(as_json):
        arguments = AssignArguments(model, images, out, none_rate, sure, tuple(features or ()), page)
        assigned = run_assign(arguments, render_assigned, _reporter(), Manner(force, ray, verbose))
    if assigned is None:  # the first rank prints
        return
    kinds = {kind: assigned.kinds[kind] for kind in ("novel", "known", "none")}
    if as_json:
        skipped = [asdict(item) for item in assigned.skipped]
        typer.echo(
            strict_json({"out": str(out.resolve()), "photos": sum(kinds.values()), "kinds": kinds, "skipped": skipped})
        )
        return
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    say(Console(), f"{sum(kinds.values())} photos: {counts}. In {out}{f' and {page}' if page else ''}.")
    _list_skipped(assigned.skipped)


def _reporter() -> Reporter:
    """Shows progress, on the first rank only where torchrun started several."""
    return Reporter() if os.environ.get("RANK", "0") == "0" else Silent()


def _classes(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not (text.isascii() and text.isdigit() and len(text) < 7 and int(text) >= 1):
        raise InputError(f"--classes {text} is no number of classes: give 1 or more, or auto.")
    return int(text)


def summarise(facts: Mapping[str, Any], out: Path) -> None:
    """The groups, how far to trust them, and where to look."""
    from medi.discover.output import REPORT
    from medi.discover.summary import summary
    from medi.photos.folders import Skipped

    console, words = Console(markup=False), summary(facts)
    _list_skipped([Skipped(**item) for item in facts["skipped"]])
    for line in words.before:
        say(console, line)
    if words.rows:
        table = Table(*words.header, box=None, pad_edge=False)
        for row in words.rows:
            table.add_row(*row)
        console.print(table, highlight=False)
    for line in words.after:
        say(console, line)
    say(console, f"Look at {out / REPORT}. Next, to check and name the groups: medi review {shlex.quote(str(out))}")


def _list_skipped(skipped: Sequence[Skipped]) -> None:
    if not skipped:
        return
    console = Console(stderr=True)
    say(console, f"{len(skipped)} file{'s were' if len(skipped) != 1 else ' was'} skipped:")
    for item in skipped[:SKIPPED_SHOWN]:
        say(console, f"  {printable(item.path)}: {item.reason}")
    if len(skipped) > SKIPPED_SHOWN:
        say(console, f"  and {len(skipped) - SKIPPED_SHOWN} more")
