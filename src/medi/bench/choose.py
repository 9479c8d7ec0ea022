"""Choosing settings on held-out *known* classes, the only ones a choice may look at.

A fifth of the known classes plays novel, or as many as are asked for, the rest trains; with five known classes every
pair in turn. The preset `default` has the settings that won there; novel classes are never looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch

from medi.bench.datasets import load_dataset
from medi.bench.grid import ALL, Run
from medi.bench.questions import draw_tasks, families
from medi.bench.rows import read_rows
from medi.bench.run import open_results, refuse_other_settings, refuse_used_folder, rows_of
from medi.data.benchmarks import Benchmark
from medi.data.imageset import ImageSet
from medi.data.splits import held_out_splits
from medi.methods import method_of
from medi.runtime.files import append_to_journal
from medi.runtime.progress import Reporter
from medi.runtime.workers import Rows

ASKED = 4
"""Where everything is observed, one in so many images of a held-out class is asked about instead."""


@dataclass(frozen=True)
class Summary:
    """How a candidate did on the held-out known classes: mean and deviation over splits."""

    run: Run
    acc: float
    std: float
    splits: int


def splits_of(benchmark: Benchmark, observations: int | str, count: int | None = None) -> list[tuple[int, ...]]:
    """The classes held out in each split, `count` of them; whole families where each will be a task of its own."""
    if observations != ALL or not benchmark.facts.families:
        return held_out_splits(benchmark.known.n_classes, count)
    members = families(benchmark.known.class_names)
    held_out = held_out_splits(len(members), count)
    return [tuple(sorted(c for family in held for c in members[family])) for held in held_out]


def hold_out(benchmark: Benchmark, classes: Sequence[int], observations: int | str = 1) -> Benchmark:
    """The same benchmark with some known classes in the place of the novel ones, which are left out.

    Where all their images are observed, one in `ASKED` is asked about instead; families are asked about what was
    observed.
    """
    learnt = [c for c in range(benchmark.known.n_classes) if c not in set(classes)]
    held, observed = benchmark.known.of_classes(classes), None
    if observations == ALL and not benchmark.facts.families:
        observed, held = _observed_and_asked(held)
    return Benchmark(
        facts=replace(benchmark.facts, known=len(learnt), novel=len(classes)),
        known=benchmark.known.of_classes(learnt),
        novel=held,
        novel_train=observed,
    )


def _observed_and_asked(images: ImageSet) -> tuple[ImageSet, ImageSet]:
    asked = torch.zeros_like(images.labels, dtype=torch.bool)
    for c in range(images.n_classes):
        asked[(images.labels == c).nonzero().squeeze(1)[::ASKED]] = True
    return images.where(~asked), images.where(asked)


def try_candidates(
    runs: Sequence[Run],
    out: Path,
    *,
    episodes: int,
    device: torch.device,
    resume: bool,
    reporter: Reporter,
    splits: int | None = None,
    held_out: int | None = None,
) -> list[Summary]:
    """Score each run's settings on every split; a line of `choices.jsonl` for each, nothing done twice.

    Args:
        runs: The candidates.
        out: The results folder.
        episodes: Scoring episodes.
        device: Where to work.
        resume: Continue in a folder that has results.
        reporter: Shows progress.
        splits: Try so many of the splits, at even distances; None for every one.
        held_out: Classes, or families of them, that play novel in a split; None for a fifth.
    """
    refuse_used_folder(out, resume=resume)
    datasets = {run.dataset: load_dataset(run.dataset, device, reporter) for run in runs}
    chosen = {}
    for run in runs:  # what cannot be asked is refused before anything is trained and before there is a folder
        setting, benchmark = (run.dataset, run.observations), datasets[run.dataset]
        if setting not in chosen:
            chosen[setting] = _evenly(splits_of(benchmark, run.observations, held_out), splits)
            split = hold_out(benchmark, chosen[setting][0][1], run.observations)
            draw_tasks(split, _asked(run, split), episodes=1)
    with open_results(out) as results:
        journal = results.with_name("choices.jsonl")
        old = read_rows(journal)
        refuse_other_settings(runs, old, out, device, {})
        rows = {(Run.of_row(row), tuple(row.get("held_out", ()))): row for row in old}
        trials: dict[Run, Rows] = {run: [] for run in runs}
        for setting, numbered in chosen.items():
            for number, classes in numbered:
                split = hold_out(datasets[setting[0]], classes, setting[1])
                for run in trials:
                    if (run.dataset, run.observations) != setting:
                        continue
                    trial = run, split.novel.class_names
                    if trial not in rows:
                        row = _try(run, split, out, episodes, device, reporter)
                        row |= {"split": number, "held_out": list(split.novel.class_names)}
                        append_to_journal(journal, row)
                        rows[trial] = row
                        reporter.say(f"{run.describe()}, split {number}: ACC {100 * row['acc']:.1f}")
                    trials[run].append(rows[trial])
        return [_summarise(run, of_run) for run, of_run in trials.items()]


def _evenly(splits: Sequence[tuple[int, ...]], count: int | None) -> list[tuple[int, tuple[int, ...]]]:
    """So many of the splits with their numbers, not all from one end: neighbours share held-out classes."""
    numbered = list(enumerate(splits))
    return numbered if count is None else numbered[:: max(1, len(numbered) // count)][:count]


def _try(
    run: Run, split: Benchmark, out: Path, episodes: int, device: torch.device, reporter: Reporter
) -> dict[str, Any]:
    """One candidate on one split: trained as for the real task, asked about as many classes as are held out.

    A method that can only be asked what it was trained for is trained for that.
    """
    trained, asked = run, _asked(run, split)
    if method_of(run.method).one_way:
        trained, split = asked, replace(split, facts=replace(split.facts, way=asked.way))
    (row,) = rows_of([asked], split, out, episodes, device, reporter, trained=trained)
    return row | run.as_row() | {"asked_way": asked.way}


def _asked(run: Run, split: Benchmark) -> Run:
    """The run with as many classes in a task as a split can have."""
    there = split.novel.n_classes
    return replace(run, way=there if run.observations == ALL else min(run.way, there))


def _summarise(run: Run, rows: Sequence[dict[str, Any]]) -> Summary:
    values = [row["acc"] for row in rows]
    return Summary(run, fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))
