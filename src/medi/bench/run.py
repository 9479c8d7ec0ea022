"""Running a grid: every finished run is a line of `results.jsonl`, and nothing is done twice."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from statistics import fmean
from time import monotonic
from typing import Any

import torch

import medi
from medi.bench.grid import ALL, Run
from medi.bench.rows import read_rows
from medi.bench.score import draw_tasks, mean_score, score_regimes
from medi.bench.work import Order, Spread
from medi.data.benchmarks import Benchmark, load
from medi.errors import InputError
from medi.methods import Learner, Plan, method_of
from medi.runtime import ranks
from medi.runtime.context import Context
from medi.runtime.devices import describe_device, wait_for
from medi.runtime.files import LOCK, append_to_journal, input_errors, make_folder, only_process
from medi.runtime.progress import Reporter, Silent

RESULTS = "results.jsonl"


def run_grid(
    runs: Sequence[Run],
    out: Path,
    *,
    episodes: int,
    device: torch.device,
    resume: bool,
    reporter: Reporter,
    spread: Spread | None = None,
    spread_device: str = "auto",
) -> list[dict[str, Any]]:
    """Do the runs that `out` has no result of yet, and append each as it finishes.

    Args:
        runs: What is wanted.
        out: The results folder.
        episodes: Scoring episodes.
        device: Where to work.
        resume: Continue in a folder that has results.
        reporter: Shows progress.
        spread: Has the work done by other processes.
        spread_device: Where they work.

    Returns:
        The rows of all runs asked for, new and old.
    """
    commit()
    with open_results(out, resume=resume) as journal:
        old = json.loads(ranks.from_first(lambda: json.dumps(read_rows(journal)).encode()))
        done = {Run.of_row(row): row for row in old}
        _announce(runs, done, episodes, reporter)
        refuse_other_settings(runs, done.values(), out)
        todo = [run for run in runs if run not in done]
        benchmarks = {name: load(name, device) for name in dict.fromkeys(run.dataset for run in todo)}
        for run in todo:  # what cannot be asked of the last dataset should not wait for the first to be trained
            draw_tasks(benchmarks[run.dataset], run, episodes=1)
        pieces = [tuple(sharing) for _, sharing in groupby(todo, key=lambda run: (run.training, run.score))]
        if spread:
            orders = [Order(piece, str(out.absolute()), episodes, spread_device) for piece in pieces]
            answers: Generator[Iterable[dict[str, Any]], None, None] = spread(orders, reporter)
        else:
            answers = (rows_of(p, benchmarks[p[0].dataset], out, episodes, device, reporter) for p in pieces)
        with closing(answers):
            for row in chain.from_iterable(answers):
                run = Run.of_row(row)
                if ranks.is_first():
                    append_to_journal(journal, row)
                done[run] = row
                reporter.say(f"{run.describe()}: ACC {100 * row['acc']:.1f} (chance {100 * row['chance']:.1f})")
        return [done[run] for run in runs]


@contextmanager
def open_results(out: Path, *, resume: bool) -> Iterator[Path]:
    """The results file of a folder that is new, empty, or explicitly continued; held for this process alone."""
    if not ranks.is_first():  # the first rank holds it for all
        yield out / RESULTS
        return
    with input_errors(out, "read"):
        if out.is_dir() and any(path.name != LOCK for path in out.iterdir()) and not resume:
            raise InputError(f"{out} is not empty: add --resume to continue it, or choose another --out.")
    with only_process(make_folder(out)):
        yield out / RESULTS


def train_learner(run: Run, benchmark: Benchmark, context: Context) -> Learner:
    """Train what a run needs, or take it from the context's folder."""
    sampler = run.sampler or "uniform"
    plan = Plan.of(benchmark, run.observations, way=run.way, sampler=sampler, context=context)
    learner: Learner = config_of(run).fit(benchmark.known, plan)
    return learner


def rows_of(
    runs: Sequence[Run], benchmark: Benchmark, out: Path, episodes: int, device: torch.device, reporter: Reporter
) -> Iterable[dict[str, Any]]:
    """The rows of runs that share a learner: they are asked the same questions together."""
    first = runs[0]
    tasks = draw_tasks(benchmark, first, episodes)
    context = Context(device=device, seed=first.seed, folder=out / "models", reporter=reporter)
    learner = train_learner(first, benchmark, context)
    start = monotonic()
    encoded = learner.encode(tasks[0].images)  # all tasks of a run are about one pool of images
    regimes = [run.regime for run in runs]
    with (reporter if len(tasks) > 1 else Silent()).track("tasks", len(tasks)) as tick:
        scores = []
        for questions in tasks:
            scores.append(score_regimes(learner, encoded, questions, regimes, seed=first.seed, reporter=reporter))
            tick(len(scores))
    wait_for(device)
    seconds = round(learner.training_seconds + monotonic() - start, 3)
    chance = fmean(questions.chance() for questions in tasks)
    for run in runs:
        score = mean_score([of_task[run.regime] for of_task in scores])
        row = run.as_row() | asdict(score) | {"chance": chance, "seconds": seconds}
        yield row | provenance(run, learner, device)


def provenance(run: Run, learner: Learner, device: torch.device) -> dict[str, Any]:
    """What a number came from: the fields of a row that are neither its identity nor its scores."""
    return {
        "balance": learner.balanced and run.regime != "grouped",
        "network": learner.network,
        **describe_run(device),
        "settings": settings_of(run),
    }


def describe_run(device: torch.device) -> dict[str, Any]:
    """Where and with what something was measured."""
    return {
        "device": describe_device(device),
        "torch": torch.__version__,
        "version": medi.__version__,
        "commit": commit(),
    }


def _announce(runs: Sequence[Run], done: dict[Run, dict[str, Any]], episodes: int, reporter: Reporter) -> None:
    """Say what will not be run again, and whether it was run as it would be now."""
    old = [done[run] for run in runs if run in done]
    if not old:
        return
    others = {row["episodes"] for row in old if row["score"] == "episode"} - {episodes}
    remark = f"; some were scored on {', '.join(map(str, sorted(others)))} episodes" if others else ""
    reporter.say(f"{len(old)} of {len(runs)} runs are already there{remark}.")


def refuse_other_settings(runs: Sequence[Run], rows: Iterable[dict[str, Any]], out: Path) -> None:
    """A name such as `default` may stand for other settings than when a result was made: never mix the two."""
    for row in rows:
        run = Run.of_row(row)
        if run in runs and not same_settings(row.get("settings"), config_of(run)):
            raise InputError(
                f"{out} has a result of {run.describe()} made with other settings than '{run.config}' stands for now: "
                "choose another --out."
            )


def config_of(run: Run) -> Any:
    """The settings that a run's config stands for."""
    return method_of(run.method).preset(run.config, run.dataset, everything=run.observations == ALL)


def settings_of(run: Run) -> dict[str, Any]:
    """The same as they read in a results file."""
    settings: dict[str, Any] = json.loads(json.dumps(asdict(config_of(run))))
    return settings


def same_settings(old: Any, config: Any) -> bool:
    """Whether a part of what a results file says of settings is what a part of a config says now.

    A setting that did not exist when the results were made counts as its default: that is how it was done then. One
    that tells a class from the class it extends has to be there: without it, it was the other class.
    """
    if isinstance(config, tuple):
        return isinstance(old, list) and len(old) == len(config) and all(map(same_settings, old, config))
    if not is_dataclass(config) or isinstance(config, type):
        return bool(old == config)
    if not isinstance(old, dict) or not set(old) <= {setting.name for setting in fields(config)}:
        return False
    kinds: list[Any] = [kind for kind in type(config).__mro__ if is_dataclass(kind)]
    may_lack = {setting.name for setting in fields(kinds[min(1, len(kinds) - 1)])}
    for setting in fields(config):
        value = getattr(config, setting.name)
        if setting.name in old:
            if not same_settings(old[setting.name], value):
                return False
            continue
        default = setting.default_factory() if callable(setting.default_factory) else setting.default
        if setting.name not in may_lack or value != default:
            return False
    return True


@cache
def commit() -> str | None:
    """The commit this code was checked out at, "-dirty" after it where the code differs; None without a checkout.

    Asked once: the checkout may move on while a long grid runs, the code in memory does not.
    """
    here = Path(medi.__file__).resolve()
    if not (here.parents[2] / ".git").exists():
        return None

    def ask(*question: str) -> str:
        answer = subprocess.run(
            ["git", *question], cwd=here.parent, capture_output=True, text=True, check=True, timeout=10
        )
        return answer.stdout.strip()

    try:
        return ask("rev-parse", "HEAD") + ("-dirty" if ask("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None
