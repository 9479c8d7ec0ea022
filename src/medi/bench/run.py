"""Running a grid: every finished run is a line of `results.jsonl`, and nothing is done twice."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
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
from medi.bench.pools import first_pool, score_on_pools
from medi.bench.questions import draw_tasks
from medi.bench.rows import no_scores, read_rows
from medi.bench.score import Conditions, answer_tasks
from medi.bench.setup import RESULTS, Setup
from medi.bench.work import RunBatch
from medi.core.errors import InputError
from medi.core.files import append_to_journal
from medi.data.benchmarks import Benchmark
from medi.jobs import ranks
from medi.jobs.workers import Rows, Workers
from medi.methods import Learner, Plan, method_of
from medi.methods.cata_views import views_for
from medi.nn import across_ranks
from medi.nn.context import Context
from medi.nn.devices import describe_device, wait_for
from medi.nn.loop import Diverged
from medi.registry import PLAIN


def run_grid(runs: Sequence[Run], setup: Setup, *, workers: Workers | None = None, worker_device: str = "auto") -> Rows:
    """Do the runs that the folder has no result of yet, and append each as it finishes.

    Other processes, `workers`, may do the work, on `worker_device`: auto, cpu or cuda. Gives the rows of all runs asked
    for, new and old; without those that workers which keep going say have failed.
    """
    commit()
    # What cannot be done is refused before anything is trained and before there is a folder.
    setup.refuse_used_folder()
    done = _finished(setup.out)
    benchmarks: dict[tuple[str, bool], Benchmark] = {}
    for run in runs:
        if run.source not in benchmarks and (run not in done or is_users_own(run.dataset)):
            benchmarks[run.source] = load_dataset(*run.source, setup.device, setup.reporter)
        if run not in done:
            refuse_impossible(run, benchmarks[run.source])
    with setup.held_folder() as out:
        done = _finished(out)
        refuse_other_settings(runs, done.values(), setup, benchmarks)
        _announce(runs, done, setup)
        asked = batches([run for run in runs if run not in done])
        if workers:
            here, folder = str(Path.cwd()), str(out.absolute())
            items = [RunBatch(batch, folder, setup.episodes, worker_device, here) for batch in asked]
            results: Generator[Iterable[dict[str, Any]], None, None] = workers(items, setup.reporter)
        else:
            results = (rows_of(batch, benchmarks[batch[0].source], setup) for batch in asked)
        with closing(results):
            for row in chain.from_iterable(results):
                run = Run.of_row(row)
                if ranks.is_first():
                    append_to_journal(out / RESULTS, row)
                done[run] = row
                ending = row.get("diverged") or f"ACC {100 * row['acc']:.1f} (chance {100 * row['chance']:.1f})"
                setup.reporter.say(f"{run.describe()}: {ending}")
        return [done[run] for run in runs if run in done]


def refuse_impossible(run: Run, benchmark: Benchmark) -> None:
    """Refuse what a dataset cannot answer, before anything is trained."""
    if run.by_engine:
        first_pool(run, benchmark)
    else:
        draw_tasks(benchmark, run, episodes=1)


def _finished(out: Path) -> dict[Run, dict[str, Any]]:
    """The runs that a folder has results of, as the first rank sees them."""
    rows = json.loads(across_ranks.from_first(lambda: json.dumps(read_rows(out / RESULTS)).encode()))
    return {Run.of_row(row): row for row in rows}


def _announce(runs: Sequence[Run], done: Mapping[Run, dict[str, Any]], setup: Setup) -> None:
    """Say what will not be run again, and whether it was run as it would be now."""
    old = [done[run] for run in runs if run in done]
    if not old:
        return
    others = {row["episodes"] for row in old if row["score"] == "episode"} - {setup.episodes}
    remark = f"; some were scored on {', '.join(map(str, sorted(others)))} episodes" if others else ""
    setup.reporter.say(f"{len(old)} of {len(runs)} runs are already there{remark}.")


def rows_of(
    runs: Sequence[Run], benchmark: Benchmark, setup: Setup, *, trained: Run | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of a batch; `trained` is the run that the learner is trained for, where that is none of these."""
    if runs[0].by_engine:
        scored = score_on_pools(runs, benchmark, setup)
    else:
        scored = _score_on_tasks(runs, benchmark, setup, trained or runs[0])
    for run, scores in scored:
        origin = provenance(run, setup.device) | origin_of(run, setup.device, benchmark)
        yield run.as_row() | scores | origin


def _score_on_tasks(
    runs: Sequence[Run], benchmark: Benchmark, setup: Setup, trained: Run
) -> Iterator[tuple[Run, dict[str, Any]]]:
    """The scores of runs that share a learner and are asked the same questions together.

    Where training diverges, they say so and have no scores, and a grid goes on.
    """
    first = runs[0]
    tasks = draw_tasks(benchmark, first, setup.episodes)
    context = Context(device=setup.device, seed=first.seed, folder=setup.models, reporter=setup.reporter)
    asked = {"episodes": sum(len(some.bag) for some in tasks), "chance": fmean(some.chance() for some in tasks)}
    # All but the oracle agree on the balance.
    conditions = Conditions([run.regime for run in runs], any(run.balance for run in runs), first.seed)
    start = monotonic()
    try:
        learner = train_learner(trained, benchmark, context)
        trained_at = monotonic()
        scores = answer_tasks(learner, tasks, conditions, setup.reporter)
        wait_for(setup.device)
        seconds, network = learner.training_seconds + monotonic() - trained_at, learner.network
        found = {run: asdict(scores[run.regime]) for run in runs}
    except Diverged as error:
        seconds, network = monotonic() - start, None
        found = dict.fromkeys(runs, no_scores(error))
    for run in runs:
        yield run, asked | found[run] | {"seconds": round(seconds, 3), "network": network}


def train_learner(run: Run, benchmark: Benchmark, context: Context) -> Learner:
    """Train what a run needs, or take it from the context's folder."""
    sampler = run.sampler or "uniform"
    plan = Plan.of(benchmark, run.observations, way=run.way, sampler=sampler, context=context)
    learner: Learner = config_of(run).fit(benchmark.known, plan)
    return learner


def provenance(run: Run, device: torch.device) -> dict[str, Any]:
    """What a number came from: the fields of a row that are neither its identity nor its scores."""
    assumes = run.method != PLAIN and method_of(run.method).assumes_equal_sizes
    return {
        **({"assumes_equal_sizes": True} if assumes else {}),
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


def origin_of(run: Run, device: torch.device, benchmark: Benchmark | None) -> dict[str, Any]:
    """What a run is made of beside its settings: the method's version, CATA's network, and the images of a dataset."""
    origin: dict[str, Any] = {} if run.method == PLAIN else {"method_version": method_of(run.method).version}
    if run.sampler == "cata":
        origin["views"] = json.loads(json.dumps(asdict(views_for(facts_for(run.dataset), device))))
    if benchmark is not None:
        origin["data"] = f"{benchmark.known.fingerprint()}-{benchmark.novel.fingerprint()}"
    return origin


def refuse_other_settings(
    runs: Sequence[Run],
    rows: Iterable[dict[str, Any]],
    setup: Setup,
    benchmarks: Mapping[tuple[str, bool], Benchmark],
) -> None:
    """A name may stand for other settings, code or images than when a result was made: never mix the two.

    Rows of an earlier version may not say everything; users' own datasets among the benchmarks are compared by their
    images.
    """
    wanted = {run: run for run in runs}
    for row in rows:
        run = wanted.get(Run.of_row(row))
        if run is None:
            continue
        benchmark = benchmarks.get(run.source) if is_users_own(run.dataset) else None
        origin = origin_of(run, setup.device, benchmark)
        differs = ["settings"] if row.get("settings") != settings_of(run) else []
        differs += other_origin(row, origin)
        if differs:
            raise InputError(
                f"{setup.out} has a result of {run.describe()} made with other {differs[0]} than are asked for now: "
                "choose another --out."
            )


def other_origin(row: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What of `origin_of` is another now than a row says; one of an earlier version may not say everything."""
    said = {"method_version": "code", "views": "settings of CATA", "data": "images"}
    return [what for name, what in said.items() if name in row and name in now and row[name] != now[name]]


def settings_of(run: Run) -> dict[str, Any]:
    """A run's settings as they read in a results file."""
    config = config_of(run)
    settings: dict[str, Any] = {} if config is None else json.loads(json.dumps(asdict(config)))
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
