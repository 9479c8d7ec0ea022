"""Choosing settings on held-out *known* classes, the only ones a choice may look at.

A fifth of the known classes plays novel, or as many as are asked for, the rest trains; with five known classes every
pair in turn. What wins there is what `default` stands for; the novel classes are never asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from time import monotonic
from typing import Any

import torch

from medi.bench.grid import ALL, Run
from medi.bench.rows import read_rows
from medi.bench.run import open_results, provenance, refuse_other_settings, train_learner
from medi.bench.score import draw_tasks, families, mean_score, score_regimes
from medi.data.benchmarks import Benchmark, load
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods import method_of
from medi.runtime.context import Context
from medi.runtime.devices import wait_for
from medi.runtime.files import append_to_journal
from medi.runtime.progress import Reporter

FEWEST_KNOWN = 4
"""With fewer known classes nothing can be chosen."""
RANDOM_SPLITS = 5
ASKED = 4
"""Where everything is observed, one in so many images of a held-out class is asked about instead."""


@dataclass(frozen=True)
class Summary:
    """How a candidate did on the held-out known classes: mean and deviation over splits."""

    run: Run
    acc: float
    std: float
    splits: int


def held_out_splits(n_known: int, count: int | None = None, seed: int = 0) -> list[tuple[int, ...]]:
    """The classes held out in each split: a fifth, at least two, or `count`; where there are five, any so many."""
    if n_known < FEWEST_KNOWN:
        raise InputError(
            f"{n_known} known classes are too few to choose by (at least {FEWEST_KNOWN}): use the default settings."
        )
    if count is None:
        count = max(2, n_known // 5)
    if not 2 <= count <= n_known - 2:
        raise InputError(
            f"--held-out {count}: of {n_known} known classes, or families of them, hold out 2 to {n_known - 2}."
        )
    if n_known == 5:
        return list(combinations(range(5), count))
    generator = torch.Generator().manual_seed(seed)
    splits: list[tuple[int, ...]] = []
    while len(splits) < RANDOM_SPLITS:
        split = tuple(sorted(torch.randperm(n_known, generator=generator)[:count].tolist()))
        if split not in splits:
            splits.append(split)
    return splits


def splits_of(benchmark: Benchmark, observations: int | str, count: int | None = None) -> list[tuple[int, ...]]:
    """The classes held out in each split, `count` of them; whole families where each will be a task of its own."""
    if observations != ALL or not benchmark.facts.families:
        return held_out_splits(benchmark.known.n_classes, count)
    members = families(benchmark.known.class_names)
    held_out = held_out_splits(len(members), count)
    return [tuple(sorted(c for family in held for c in members[family])) for held in held_out]


def hold_out(benchmark: Benchmark, classes: Sequence[int], observations: int | str = 1) -> Benchmark:
    """The same benchmark with some known classes in the place of the novel ones, which are gone.

    Where all their images are observed, some are kept for questions, unless families are asked about what was observed.
    """
    rest = [c for c in range(benchmark.known.n_classes) if c not in set(classes)]
    held, observed = benchmark.known.of_classes(classes), None
    if observations == ALL and not benchmark.facts.families:
        observed, held = _observed_and_asked(held)
    return Benchmark(
        facts=replace(benchmark.facts, known=len(rest), novel=len(classes)),
        known=benchmark.known.of_classes(rest),
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
        splits: Try so many of the splits, spread over all of them; None for every one.
        held_out: Classes, or families of them, that play novel in a split; None for a fifth.
    """
    with open_results(out, resume=resume) as results:
        journal = results.with_name("choices.jsonl")
        old = read_rows(journal)
        refuse_other_settings(runs, old, out)
        rows = {(Run.of_row(row), tuple(row.get("held_out", ()))): row for row in old}
        trials: dict[Run, list[dict[str, Any]]] = {run: [] for run in runs}
        datasets = {run.dataset: load(run.dataset, device) for run in runs}
        asked = {  # before any training: what cannot be asked of the last dataset should not wait for the first
            (run.dataset, run.observations): _spread(
                splits_of(datasets[run.dataset], run.observations, held_out), splits
            )
            for run in runs
        }
        for (dataset, observations), numbered in asked.items():
            for number, classes in numbered:
                split = hold_out(datasets[dataset], classes, observations)
                for run in trials:
                    if (run.dataset, run.observations) != (dataset, observations):
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


def _spread(splits: Sequence[tuple[int, ...]], count: int | None) -> list[tuple[int, tuple[int, ...]]]:
    """So many of the splits with their numbers, not all from one end: neighbours share held-out classes."""
    numbered = list(enumerate(splits))
    return numbered if count is None else numbered[:: max(1, len(numbered) // count)][:count]


def _try(
    run: Run, split: Benchmark, out: Path, episodes: int, device: torch.device, reporter: Reporter
) -> dict[str, Any]:
    """One candidate on one split: trained as for the real task, asked about as many classes as are held out.

    A method that can only be asked what it was trained for is trained for that.
    """
    there = split.novel.n_classes
    asked = replace(run, way=there if run.observations == ALL else min(run.way, there))
    trained = run
    if method_of(run.method).one_way:
        trained, split = asked, replace(split, facts=replace(split.facts, way=asked.way))
    tasks = draw_tasks(split, asked, episodes)
    learner = train_learner(trained, split, Context(device, run.seed, out / "models", reporter))
    start = monotonic()
    encoded = learner.encode(tasks[0].images)
    scores = [
        score_regimes(learner, encoded, questions, [run.regime], seed=run.seed, reporter=reporter)[run.regime]
        for questions in tasks
    ]
    wait_for(device)
    extra = {
        "asked_way": asked.way,
        "chance": fmean(questions.chance() for questions in tasks),
        "seconds": round(learner.training_seconds + monotonic() - start, 3),
    }
    return run.as_row() | asdict(mean_score(scores)) | extra | provenance(run, learner, device)


def _summarise(run: Run, rows: Sequence[dict[str, Any]]) -> Summary:
    values = [row["acc"] for row in rows]
    return Summary(run, fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))
