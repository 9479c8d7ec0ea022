"""Running a grid: every finished run is a line of `results.jsonl`, and nothing is done twice."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import fmean
from time import monotonic
from typing import Any

import torch

import medi
from medi.bench.datasets import facts_for, is_users_own, load_dataset
from medi.bench.grid import Run, batches, config_of
from medi.bench.questions import draw_tasks
from medi.bench.rows import read_rows
from medi.bench.score import answer_tasks
from medi.bench.work import RunBatch
from medi.data.benchmarks import Benchmark
from medi.errors import InputError
from medi.methods import Learner, Plan, method_of
from medi.methods.cata_views import views_for
from medi.runtime import ranks
from medi.runtime.context import Context
from medi.runtime.devices import describe_device, wait_for
from medi.runtime.files import LOCK, append_to_journal, input_errors, make_folder, only_process
from medi.runtime.progress import Reporter
from medi.runtime.workers import Rows, Workers

RESULTS = "results.jsonl"


def run_grid(
    runs: Sequence[Run],
    out: Path,
    *,
    episodes: int,
    device: torch.device,
    resume: bool,
    reporter: Reporter,
    workers: Workers | None = None,
    worker_device: str = "auto",
) -> Rows:
    """Do the runs that `out` has no result of yet, and append each as it finishes.

    Args:
        runs: What is wanted.
        out: The results folder.
        episodes: Scoring episodes.
        device: Where to work.
        resume: Continue in a folder that has results.
        reporter: Shows progress.
        workers: Other processes that do the work.
        worker_device: Where they work: auto, cpu or cuda.

    Returns:
        The rows of all runs asked for, new and old.
    """
    commit()
    # What cannot be done is refused before anything is trained and before there is a folder.
    refuse_used_folder(out, resume=resume)
    done = _finished(out)
    needed = dict.fromkeys(run.dataset for run in runs if run not in done or is_users_own(run.dataset))
    benchmarks = {name: load_dataset(name, device, reporter) for name in needed}
    for run in runs:
        if run not in done:
            draw_tasks(benchmarks[run.dataset], run, episodes=1)
    with open_results(out) as journal:
        done = _finished(out)
        refuse_other_settings(runs, done.values(), out, device, benchmarks)
        _announce(runs, done, episodes, reporter)
        todo = [run for run in runs if run not in done]
        asked = batches(todo)
        if workers:
            items = [RunBatch(batch, str(out.absolute()), episodes, worker_device, str(Path.cwd())) for batch in asked]
            results: Generator[Iterable[dict[str, Any]], None, None] = workers(items, reporter)
        else:
            results = (rows_of(b, benchmarks[b[0].dataset], out, episodes, device, reporter) for b in asked)
        with closing(results):
            for row in chain.from_iterable(results):
                run = Run.of_row(row)
                if ranks.is_first():
                    append_to_journal(journal, row)
                done[run] = row
                reporter.say(f"{run.describe()}: ACC {100 * row['acc']:.1f} (chance {100 * row['chance']:.1f})")
        return [done[run] for run in runs]


def _finished(out: Path) -> dict[Run, dict[str, Any]]:
    """The runs that a folder has results of, as the first rank sees them."""
    rows = json.loads(ranks.from_first(lambda: json.dumps(read_rows(out / RESULTS)).encode()))
    return {Run.of_row(row): row for row in rows}


def refuse_used_folder(out: Path, *, resume: bool) -> None:
    """Results go to a folder that is new, empty, or explicitly continued."""
    if resume or not ranks.is_first():
        return
    with input_errors(out, "read"):
        if out.is_dir() and any(path.name != LOCK for path in out.iterdir()):
            raise InputError(f"{out} is not empty: add --resume to continue it, or choose another --out.")


@contextmanager
def open_results(out: Path) -> Iterator[Path]:
    """The results file of a folder, which is made where it is missing and held for this process alone."""
    with only_process(make_folder(out)) if ranks.is_first() else nullcontext():  # the first rank holds it for all
        yield out / RESULTS


def plan_for(run: Run, benchmark: Benchmark, context: Context) -> Plan:
    """What a run's learner is trained for."""
    return Plan.of(benchmark, run.observations, way=run.way, sampler=run.sampler or "uniform", context=context)


def train_learner(run: Run, benchmark: Benchmark, context: Context) -> Learner:
    """Train what a run needs, or take it from the context's folder."""
    learner: Learner = config_of(run).fit(benchmark.known, plan_for(run, benchmark, context))
    return learner


def rows_of(
    runs: Sequence[Run],
    benchmark: Benchmark,
    out: Path,
    episodes: int,
    device: torch.device,
    reporter: Reporter,
    *,
    trained: Run | None = None,
) -> Iterable[dict[str, Any]]:
    """The rows of a batch: runs that share a learner are asked the same questions together.

    `trained` is the run that the learner is trained for, where that is none of these.
    """
    first = runs[0]
    tasks = draw_tasks(benchmark, first, episodes)
    context = Context(device=device, seed=first.seed, folder=out / "models", reporter=reporter)
    learner = train_learner(trained or first, benchmark, context)
    start = monotonic()
    regimes = [run.regime for run in runs]
    balance = any(run.balance for run in runs)  # all but the oracle agree
    scores = answer_tasks(learner, tasks, regimes, balance=balance, seed=first.seed, reporter=reporter)
    wait_for(device)
    seconds = round(learner.training_seconds + monotonic() - start, 3)
    chance = fmean(questions.chance() for questions in tasks)
    for run in runs:
        row = run.as_row() | asdict(scores[run.regime]) | {"chance": chance, "seconds": seconds}
        yield row | provenance(run, learner, device) | origin_of(run, device, benchmark)


def provenance(run: Run, learner: Learner, device: torch.device) -> dict[str, Any]:
    """What a number came from: the fields of a row that are neither its identity nor its scores."""
    return {
        "network": learner.network,
        **({"assumes_equal_sizes": True} if method_of(run.method).assumes_equal_sizes else {}),
        **describe_run(device),
        "settings": settings_of(run),
        **({"set": run.changes} if run.changes else {}),
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


def origin_of(run: Run, device: torch.device, benchmark: Benchmark | None) -> dict[str, Any]:
    """What a run is made of beside its settings: the method's version, CATA's network, and the images of a dataset."""
    origin: dict[str, Any] = {"method_version": method_of(run.method).version}
    if run.sampler == "cata":
        origin["views"] = json.loads(json.dumps(asdict(views_for(facts_for(run.dataset), device))))
    if benchmark is not None:
        origin["data"] = f"{benchmark.known.fingerprint()}-{benchmark.novel.fingerprint()}"
    return origin


def refuse_other_settings(
    runs: Sequence[Run],
    rows: Iterable[dict[str, Any]],
    out: Path,
    device: torch.device,
    benchmarks: Mapping[str, Benchmark],
) -> None:
    """A name may stand for other settings, code or images than when a result was made: never mix the two.

    Args:
        runs: What is wanted.
        rows: What is there; one of an earlier version may not say everything.
        out: Where, for the message.
        device: Where to work.
        benchmarks: Users' own datasets among these are compared by their images.
    """
    wanted = {run: run for run in runs}
    for row in rows:
        run = wanted.get(Run.of_row(row))
        if run is None:
            continue
        origin = origin_of(run, device, benchmarks.get(run.dataset) if is_users_own(run.dataset) else None)
        differs = ["settings"] if row.get("settings") != settings_of(run) else []
        differs += [_SAID[name] for name, value in origin.items() if row.get(name, value) != value]
        if differs:
            raise InputError(
                f"{out} has a result of {run.describe()} made with other {differs[0]} than are asked for now: "
                "choose another --out."
            )


_SAID = {"method_version": "code", "views": "settings of CATA", "data": "images"}


def settings_of(run: Run) -> dict[str, Any]:
    """A run's settings as they read in a results file."""
    settings: dict[str, Any] = json.loads(json.dumps(asdict(config_of(run))))
    return settings


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
