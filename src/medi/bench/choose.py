"""Choosing settings on held-out *known* classes, the only ones a choice may look at.

A fifth of the known classes plays novel, the rest trains; with five known classes every pair in turn. What wins there
is what `default` stands for; the novel classes are never asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch

from medi.bench.grid import Run
from medi.bench.rows import read_rows
from medi.bench.run import open_results, provenance, train_learner
from medi.bench.score import draw_questions, score_regimes
from medi.data.benchmarks import Benchmark, load
from medi.errors import InputError
from medi.files import append_to_journal
from medi.methods import method_of
from medi.progress import Reporter
from medi.train.loop import Desk

FEWEST_KNOWN = 4
"""With fewer known classes nothing can be chosen."""
RANDOM_SPLITS = 5


@dataclass(frozen=True)
class Summary:
    """How a candidate did on the held-out known classes: mean and deviation over splits."""

    run: Run
    acc: float
    std: float
    splits: int


def held_out_splits(n_known: int, seed: int = 0) -> list[tuple[int, ...]]:
    """The classes held out in each split: a fifth, at least two; every pair where there are five."""
    if n_known < FEWEST_KNOWN:
        raise InputError(
            f"{n_known} known classes are too few to choose by (at least {FEWEST_KNOWN}): use the default settings."
        )
    if n_known == 5:
        return list(combinations(range(5), 2))
    count = max(2, n_known // 5)
    generator = torch.Generator().manual_seed(seed)
    return [tuple(sorted(torch.randperm(n_known, generator=generator)[:count].tolist())) for _ in range(RANDOM_SPLITS)]


def hold_out(benchmark: Benchmark, classes: Sequence[int]) -> Benchmark:
    """The same benchmark with some known classes in the place of the novel ones, which are gone."""
    rest = [c for c in range(benchmark.known.n_classes) if c not in set(classes)]
    return Benchmark(
        facts=replace(benchmark.facts, known=len(rest), novel=len(classes)),
        known=benchmark.known.of_classes(rest),
        novel=benchmark.known.of_classes(classes),
    )


def try_candidates(
    runs: Sequence[Run], out: Path, *, episodes: int, device: torch.device, resume: bool, reporter: Reporter
) -> list[Summary]:
    """Score each run's settings on every split; a line of `choices.jsonl` for each, nothing done twice."""
    with open_results(out, resume=resume) as results:
        journal = results.with_name("choices.jsonl")
        rows = {(Run.of_row(row), row.get("split")): row for row in read_rows(journal)}
        datasets = {run.dataset: load(run.dataset, device) for run in runs}
        for dataset, benchmark in datasets.items():
            for number, classes in enumerate(held_out_splits(benchmark.known.n_classes)):
                split = hold_out(benchmark, classes)
                for run in runs:
                    if run.dataset != dataset or (run, number) in rows:
                        continue
                    row = _try(run, split, out, episodes, device, reporter)
                    row |= {"split": number, "held_out": list(split.novel.class_names)}
                    append_to_journal(journal, row)
                    rows[run, number] = row
                    reporter.say(f"{run.describe()}, split {number}: ACC {100 * row['acc']:.1f}")
        return [_summarise(run, [row for (of, _), row in rows.items() if of == run]) for run in runs]


def _try(
    run: Run, split: Benchmark, out: Path, episodes: int, device: torch.device, reporter: Reporter
) -> dict[str, Any]:
    """One candidate on one split: trained as for the real task, asked about as many classes as are held out.

    A method that can only be asked what it was trained for is trained for that.
    """
    asked = replace(run, way=min(run.way, split.novel.n_classes))
    trained = asked if method_of(run.method).one_way else run
    questions = draw_questions(split, asked, episodes)
    learner = train_learner(trained, split, Desk(device, run.seed, out / "models", reporter))
    encoded = learner.encode(questions.images)
    score = score_regimes(learner, encoded, questions, [run.regime], seed=run.seed, reporter=reporter)[run.regime]
    extra = {"asked_way": asked.way, "chance": questions.chance()}
    return run.as_row() | asdict(score) | extra | provenance(run, learner, device)


def _summarise(run: Run, rows: Sequence[dict[str, Any]]) -> Summary:
    values = [row["acc"] for row in rows]
    return Summary(run, fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))
