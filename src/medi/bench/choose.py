"""Choosing settings on held-out *known* classes, the only ones a choice may look at.

A fifth of the known classes plays novel, or as many as are asked for, the rest trains; with five known classes every
pair in turn. The preset `default` has the settings that won there; novel classes are never looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

import torch

from medi.bench.datasets import load_dataset
from medi.bench.grid import ALL, Run
from medi.bench.questions import draw_tasks, families
from medi.bench.rows import read_rows, scored
from medi.bench.run import refuse_other_settings, rows_of
from medi.bench.setup import Setup
from medi.core.files import append_to_journal
from medi.data.benchmarks import Benchmark
from medi.data.imageset import ImageSet
from medi.data.splits import held_out_splits
from medi.jobs.workers import Rows
from medi.methods import method_of

ASKED = 4
"""Where everything is observed, one in so many images of a held-out class is asked about instead."""


@dataclass(frozen=True)
class CandidateScore:
    """How a candidate did on the held-out known classes: mean and deviation over splits where training held.

    `acc` is None where it diverged on all of them.
    """

    run: Run
    acc: float | None
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
    runs: Sequence[Run], setup: Setup, *, splits: int | None = None, held_out: int | None = None
) -> list[CandidateScore]:
    """Score each run's settings on every split; a line of `choices.jsonl` for each, nothing done twice.

    So many `splits` are tried, at even distances; so many classes, or families of them, play novel in each: None for a
    fifth.
    """
    setup.refuse_used_folder()
    names = dict.fromkeys(run.dataset for run in runs)
    datasets = {name: load_dataset(name, device=setup.device, reporter=setup.reporter) for name in names}
    chosen = {}
    for run in runs:  # what cannot be asked is refused before anything is trained and before there is a folder
        setting, benchmark = (run.dataset, run.observations), datasets[run.dataset]
        if setting not in chosen:
            chosen[setting] = _evenly(splits_of(benchmark, run.observations, held_out), splits)
            split = hold_out(benchmark, chosen[setting][0][1], run.observations)
            draw_tasks(split, _asked(run, split), episodes=1)
    with setup.held_folder() as out:
        journal = out / "choices.jsonl"
        old = read_rows(journal)
        refuse_other_settings(runs, old, setup, {})
        rows = {(Run.of_row(row), tuple(row.get("held_out", ()))): row for row in old}
        trials: dict[Run, Rows] = {run: [] for run in runs}
        for (dataset, observations), numbered in chosen.items():
            for number, classes in numbered:
                split = hold_out(datasets[dataset], classes, observations)
                for run in trials:
                    if (run.dataset, run.observations) != (dataset, observations):
                        continue
                    trial = run, split.novel.class_names
                    if trial not in rows:
                        row = _try(run, split, setup)
                        row |= {"split": number, "held_out": list(split.novel.class_names)}
                        append_to_journal(journal, row)
                        rows[trial] = row
                        found = row.get("diverged") or f"ACC {100 * row['acc']:.1f}"
                        setup.reporter.say(f"{run.describe()}, split {number}: {found}")
                    trials[run].append(rows[trial])
        return [_summarise(run, of_run) for run, of_run in trials.items()]


def _evenly(splits: Sequence[tuple[int, ...]], count: int | None) -> list[tuple[int, tuple[int, ...]]]:
    """So many of the splits with their numbers, not all from one end: neighbours share held-out classes."""
    numbered = list(enumerate(splits))
    return numbered if count is None else numbered[:: max(1, len(numbered) // count)][:count]


def _try(run: Run, split: Benchmark, setup: Setup) -> dict[str, Any]:
    """One candidate on one split: trained as for the real task, asked about as many classes as are held out.

    A method that can only be asked what it was trained for is trained for that.
    """
    trained, asked = run, _asked(run, split)
    if method_of(run.method).one_way:
        trained, split = asked, replace(split, facts=replace(split.facts, way=asked.way))
    (row,) = rows_of([asked], split, setup, trained=trained)
    return row | run.as_row() | {"asked_way": asked.way}


def _asked(run: Run, split: Benchmark) -> Run:
    """The run with as many classes in a task as a split can have."""
    there = split.novel.n_classes
    return replace(run, way=there if run.observations == ALL else min(run.way, there))


def _summarise(run: Run, rows: Sequence[dict[str, Any]]) -> CandidateScore:
    values = [row["acc"] for row in scored(rows)]
    return CandidateScore(
        run, fmean(values) if values else None, stdev(values) if len(values) > 1 else 0.0, len(values)
    )
