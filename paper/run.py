"""Every table and figure of the paper, from one queue that can be interrupted and continued."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from medi.bench.figures import draw_comparison, save_figure
from medi.bench.grid import Run
from medi.bench.rows import read_rows
from medi.bench.run import run_grid
from medi.bench.setup import RESULTS, Setup
from medi.bench.tables import render
from medi.core.errors import InputError, unknown_name
from medi.core.files import make_folder, write_atomically
from medi.core.progress import Reporter
from medi.data.benchmarks import Benchmark, load
from medi.jobs.workers import Rows, Workers, WorkItem
from medi.nn.devices import choose_device
from paper.paired import render_gains, sampler_gains
from paper.parts import Part, parts_of


@dataclass(frozen=True)
class Wanted:
    """What of the paper is asked for.

    Attributes:
        datasets: Benchmarks.
        seeds: How many, from 0: new training and new draws each.
        episodes: Scoring episodes.
        only: Names of parts; none for all.
    """

    datasets: Sequence[str]
    seeds: int
    episodes: int
    only: Sequence[str] = ()

    def parts(self, reporter: Reporter) -> list[Part]:
        """The parts that have anything to run."""
        names = [part.name for part in parts_of(self.datasets, self.datasets)]
        if unknown := next((name for name in self.only if name not in names), None):
            raise unknown_name("part of the paper", unknown, names)
        abundant = [name for name in self.datasets if _can_observe_all(load(name, torch.device("cpu")))]
        if left_out := sorted(set(self.datasets) - set(abundant)):
            reporter.say(f"abundant: no training images of novel classes in {', '.join(left_out)}; left out.")
        parts = parts_of(self.datasets, abundant)
        parts = [part for part in parts if part.runs and (not self.only or part.name in self.only)]
        if not parts:
            raise InputError(
                f"--part {','.join(self.only)} has nothing on {', '.join(self.datasets)}: name other --dataset."
            )
        return parts

    def seeds_of(self, part: Part) -> range:
        """The seeds that a part is run with."""
        return range(max(self.seeds, part.least_seeds))


def run_paper(
    wanted: Wanted, out: Path, workers: Workers, *, device: str, resume: bool, reporter: Reporter
) -> list[Path]:
    """Run what is missing, one seed over everything first.

    A part's table and figures are written as soon as a seed of it is whole, and all of them in the end.

    Args:
        wanted: What is asked for.
        out: Folder of the results, with tables and figures in its subfolder `paper`.
        workers: Who does the runs.
        device: Where they work: auto, cpu or cuda.
        resume: Keep what is in the folder.
        reporter: Shows progress.

    Returns:
        The tables and figures.
    """
    parts = wanted.parts(reporter)
    most = max(len(wanted.seeds_of(part)) for part in parts)
    shares = [(part, seed) for seed in range(most) for part in parts if seed in wanted.seeds_of(part)]
    runs = list(dict.fromkeys(run for part, seed in shares for run in part.at([seed])))
    done = {Run.of_row(row): row for row in read_rows(out / RESULTS)} if resume else {}
    reporter.say(what_is_left(runs, done))

    def write(part: Part) -> list[Path]:
        return write_part(part, wanted.seeds_of(part), out)

    def writing(items: Sequence[WorkItem], reporter: Reporter) -> Generator[Rows, None, None]:
        """The rows of the workers; whoever asks for more has written down those before."""
        left = {(part.name, seed): set(part.at([seed])) - done.keys() for part, seed in shares}
        with closing(workers(items, reporter)) as finished:
            for rows in finished:
                yield rows
                found = {Run.of_row(row) for row in rows}
                for part, seed in shares:
                    mine = left[part.name, seed]
                    if mine & found:
                        mine -= found
                        if not mine:
                            write(part)
                            reporter.say(f"{part.name}, seed {seed}: done.")

    setup = Setup(out, wanted.episodes, choose_device(device), reporter, resume)
    run_grid(runs, setup, workers=writing, worker_device=device)
    return sorted(path for part in parts for path in write(part))


def what_is_left(runs: Sequence[Run], done: Mapping[Run, Mapping[str, Any]]) -> str:
    """How many runs are missing and about how long they take one after the other, judged by those that are there."""
    left = [run for run in runs if run not in done]
    if not left:
        return "nothing is left to run"
    known = [
        _mean_seconds(done, lambda other, run=run: (other.dataset, other.method) == (run.dataset, run.method))  # type: ignore[misc]
        or _mean_seconds(done, lambda other, run=run: other.method == run.method)  # type: ignore[misc]
        for run in left
    ]
    minutes = sum(seconds for seconds in known if seconds) / 60
    unknown = sorted({run.method for run, seconds in zip(left, known, strict=True) if seconds is None})
    estimate = f"at most about {minutes:.0f} min of one process" if minutes else "no estimate yet"
    return f"{len(left)} runs left, {estimate}" + (f"; nothing known of {', '.join(unknown)}" if unknown else "")


def _mean_seconds(done: Mapping[Run, Mapping[str, Any]], like: Callable[[Run], bool]) -> float | None:
    """Mean time of the finished runs that are alike; runs that share a training count it each, hence "at most"."""
    seconds = [float(row["seconds"]) for run, row in done.items() if like(run)]
    return fmean(seconds) if seconds else None


def _can_observe_all(benchmark: Benchmark) -> bool:
    return benchmark.novel_train is not None or benchmark.facts.families


def write_part(part: Part, seeds: Sequence[int], out: Path) -> list[Path]:
    """The part's table, what CATA adds and its figure where it has them, from what is there by now."""
    wanted = set(part.at(seeds))
    rows = [row for row in read_rows(out / RESULTS) if Run.of_row(row) in wanted]
    if not rows:
        return []
    table = make_folder(out / "paper") / f"{part.name}.md"
    write_atomically(table, render(rows, "md").encode())
    written = [table]
    if gains := sampler_gains(rows):
        written.append(table.with_name(f"{part.name}-cata.md"))
        write_atomically(written[-1], render_gains(gains).encode())
    if part.drawn is not None:
        written.append(table.with_suffix(".png"))
        save_figure(draw_comparison(rows, part.drawn), written[-1])
    return written
