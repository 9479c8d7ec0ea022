"""What the studies of the theory share: rows that are measured once, figures, and arguments."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from matplotlib.figure import Figure

from medi.bench.run import describe_run
from medi.core.files import append_to_journal, make_folder, read_journal, write_atomically
from medi.core.progress import Reporter

sys.path.append(str(Path(__file__).resolve().parents[1]))  # a script sees its own folder alone
from common import Parser, Table, markdown, mean_of, of_rule, positive, run, spread

__all__ = [
    "COLOURS",
    "Parser",
    "Row",
    "Table",
    "by_size",
    "markdown",
    "mean_of",
    "measure",
    "of_rule",
    "parse_study",
    "run",
    "save_figure",
    "show",
    "spread",
]

Row = dict[str, Any]

COLOURS = ("#4477aa", "#cc6677", "#228833", "#997700", "#7b4ea3")
"""Distinguishable in grey and for the colour-blind."""


def parse_study(parser: Parser, seeds: int) -> Namespace:
    """The arguments of a study: its folder and the number of seeds."""
    parser.add_argument("--out", type=Path, required=True, help="folder for rows and figures; a row is measured once")
    parser.add_argument("--seeds", type=positive, default=seeds, help=f"how many; {seeds} where not given")
    return parser.parse_args()


def show(parser: Parser, study: Callable[..., list[Row]], *tables: Callable[[list[Row]], Table], seeds: int) -> None:
    """Make a study with the arguments of its script, and print its tables."""
    options = parse_study(parser, seeds)
    rows = study(options.out, seeds=options.seeds, reporter=Reporter())
    print(*(markdown(table(rows)) for table in tables), sep="\n")


def measure(
    path: Path, jobs: Iterable[Mapping[str, Any]], work: Callable[[Any], Row], title: str, reporter: Reporter
) -> list[Row]:
    """Do the jobs that a journal has no row of, append each as it finishes, and return the rows of all.

    Args:
        path: The journal.
        jobs: JSON-able, everything that a result depends on: a row of other settings is another job's.
        work: Given a job, what was measured.
        title: For the progress bar.
        reporter: Shows progress.
    """
    make_folder(path.parent)
    done = {json.dumps(row["job"], sort_keys=True): row for row in read_journal(path)}
    listed = [json.loads(json.dumps(job)) for job in jobs]
    rows = []
    with reporter.track(title, len(listed)) as tick:
        for number, job in enumerate(listed, 1):
            key = json.dumps(job, sort_keys=True)
            if key not in done:
                start = monotonic()
                row = {"job": job, **work(job), "seconds": round(monotonic() - start, 3)}
                done[key] = row | describe_run(torch.device("cpu"))
                append_to_journal(path, done[key])
            rows.append(done[key])
            tick(number)
    return rows


def by_size(rows: Sequence[Row], value: Callable[[Row], float]) -> tuple[list[int], list[float], list[float]]:
    """The sizes n of the jobs, and mean and deviation of a value at each."""
    sizes = sorted({row["job"]["n"] for row in rows})
    points = [spread([value(row) for row in rows if row["job"]["n"] == n]) for n in sizes]
    means, deviations = zip(*points, strict=True)
    return sizes, list(means), list(deviations)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    write_atomically(path, buffer.getvalue())
