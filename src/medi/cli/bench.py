"""`medi bench`: run a grid, choose settings on held-out known classes, print tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medi.bench.candidates import NamedSettings, read_candidates
from medi.bench.grid import ALL, ENGINE, EPISODES
from medi.bench.grid_options import fit_to_device, parse_list, parse_observations, runs_asked
from medi.cli.bench_paper import paper_command
from medi.cli.bench_show import figure_command, show_choices, show_rows, table_command
from medi.cli.options import (
    Dataset,
    Device,
    Methods,
    Observations,
    Out,
    RayCommand,
    Resume,
    SamplerName,
    Set,
    Way,
    task,
    told,
    what,
    work,
)
from medi.core.errors import Exit, InputError

app = typer.Typer(help="Benchmarks: run a grid, choose settings, print tables.", no_args_is_help=True)
"""Its commands that show results are registered at the end of this file."""
POOLS_SCORED = 100
"""Pools that the engine is scored on, where no number is given."""


@app.command("run", cls=RayCommand)
def run_command(
    dataset: Dataset,
    method: Methods,
    out: Out,
    config: Annotated[
        str | None, what(help="Preset of the method, such as default or paper.", show_default="default")
    ] = None,
    candidates: Annotated[
        Path | None,
        what(
            help="JSON file of settings (`medi bench choose --help` shows one): each is run under its name.",
            metavar="FILE",
        ),
    ] = None,
    changes: Set = None,
    sampler: SamplerName = "uniform",
    seeds: Annotated[int, what(help="Number of seeds; each trains and draws anew.", min=1, max=1000)] = 3,
    first_seed: Annotated[int, what(help="The first of them.", min=0, max=10**9)] = 0,
    way: Way = None,
    observations: Observations = "5",
    sizes: Annotated[
        str,
        task(
            help="Images of each class in a task: equally many, or different numbers, which no method is told.",
            metavar="equal|unequal",
        ),
    ] = "equal",
    grouping: Annotated[
        str,
        task(
            help="Who groups: kmeans, each method as its paper has it; posterior, the engine of `medi discover`, which "
            "also scores the number, known classes, one-offs and calibration (--method plain learns nothing); "
            "path/to/file.py:Name, that engine with groups of your own.",
            metavar="kmeans|posterior|FILE",
        ),
    ] = "kmeans",
    pool: Annotated[
        str,
        task(
            help="With posterior: pools of novel classes alone, or mixed with known ones and one-offs.",
            metavar="pure,mixed",
        ),
    ] = "pure",
    classes: Annotated[
        str, told(help="With posterior: whether the number of classes is told.", metavar="given,auto")
    ] = "given",
    balance: Annotated[
        str,
        told(
            help="Whether a method is told that classes are equally large: on or off for every method, or as its "
            "preset has it. A comparison needs on or off; uno and simgcd assume it in their loss either way.",
            metavar="preset|on|off",
        ),
    ] = "preset",
    regime: Annotated[
        str, told(help="What a method may see: honest, transductive, grouped (an oracle).", metavar="A,B")
    ] = "honest",
    score: Annotated[str, told(help="Where ACC is computed: episode or pooled.")] = "episode",
    episodes: Annotated[
        int | None,
        told(help="Scoring episodes.", min=1, max=10**6, show_default="600; with posterior 100 pools"),
    ] = None,
    device: Device = "auto",
    resume: Resume = False,
    jobs: Annotated[int, work(help="Processes of this machine that share the grid.", min=1, max=1024)] = 1,
    ray: Annotated[
        str | None,
        work(help="Do the grid on a Ray cluster, or on a Ray started on this machine.", metavar="[ADDRESS]"),
    ] = None,
    cpus_per_run: Annotated[float, work(help="Processors a training asks Ray for.", min=0)] = 1.0,
    gpus_per_run: Annotated[
        float | None,
        work(help="GPUs it asks for; 0.5 shares one.", min=0, show_default="1 with --device cuda, else 0"),
    ] = None,
) -> None:
    """Train methods on known classes and score how well they discover novel ones.

    To begin with: medi bench run --dataset glyphs --method kmeans,mp --config cpu --seeds 1 --out out

    What `medi discover` does: medi bench run --dataset glyphs --method plain --grouping posterior --classes auto --pool
    mixed --out pools

    A task mixes a few unlabelled images (observations) of some novel classes (way); the method groups them, then
    further images (queries) are assigned to the groups. ACC is the fraction assigned correctly under the best map from
    groups to classes. Regimes: honest, no novel label and queries one by one; transductive, queries seen together;
    grouped, the observations sorted by their labels first, a ceiling for comparison only. Scores: episode, the mean of
    many small tasks; pooled, all test images after one draw of observations.

    Where an option takes A,B every combination is run. Every finished run is a line of OUT/results.jsonl at once, so an
    interrupted grid loses nothing: start it again with --resume; `medi bench table --results OUT` shows it again.
    --jobs and --ray divide a grid among processes or machines; torchrun divides one training (docs/cluster.md).
    """
    if ray is not None and jobs > 1:
        raise InputError("--jobs and --ray are two ways to divide a grid: give one of them.")
    if config is not None and candidates is not None:
        raise InputError("--config names a preset, --candidates a file of settings: give one of them.")
    named = read_candidates(candidates) if candidates is not None else [NamedSettings(config or "default", {})]
    all_seeds = range(first_seed, first_seed + seeds)
    runs = []
    for settings in [one.changed(changes) for one in named]:
        runs += runs_asked(
            settings, all_seeds, dataset=dataset, method=method, sampler=sampler, way=way, observations=observations,
            regime=regime, score=score, balance=balance, sizes=sizes, grouping=grouping, classes=classes, pool=pool,
        )  # fmt: skip
    episodes = episodes or (POOLS_SCORED if grouping == ENGINE else EPISODES)
    import torch

    from medi.bench.run import run_grid
    from medi.bench.setup import Setup
    from medi.bench.work import do, local_workers
    from medi.core.progress import Reporter, Silent
    from medi.jobs import ranks
    from medi.jobs.ray_workers import RayWorkers
    from medi.jobs.workers import Workers
    from medi.nn.devices import choose_device

    # Ray's workers look for devices on their own machines.
    chosen = choose_device(device) if ray is None else torch.device("cpu")
    gpus = gpus_per_run if gpus_per_run is not None else float(device == "cuda")
    workers: Workers | None = None
    if ray is not None:
        workers = RayWorkers(ray, cpus_per_run, gpus, do, what="trainings", again="go on with --resume")
    elif jobs > 1:
        workers = local_workers(jobs, chosen.type)
    with ranks.joined(chosen.type):
        if workers is not None and ranks.count() > 1:
            raise InputError("torchrun divides one training, --jobs and --ray divide a grid: use one of them.")
        setup = Setup(out, episodes, chosen, Reporter() if ranks.is_first() else Silent(), resume)
        setup.refuse_used_folder()
        runs = fit_to_device(runs, on_cpu=chosen.type == "cpu" and (ray is None or not gpus), say=setup.reporter.say)
        rows = run_grid(runs, setup, workers=workers, worker_device=device)
        if ranks.is_first():
            show_rows(rows)


@app.command("choose")
def choose_command(
    dataset: Dataset,
    method: Methods,
    out: Out,
    config: Annotated[
        str | None, what(help="Presets of the method to compare, separated by commas.", metavar="A,B")
    ] = None,
    candidates: Annotated[
        Path | None, what(help="JSON file of settings to compare (see above).", metavar="FILE")
    ] = None,
    changes: Set = None,
    sampler: SamplerName = "uniform",
    way: Way = None,
    observations: Observations = "5",
    regime: Annotated[str, told(help="honest, transductive.", metavar="A,B")] = "honest",
    episodes: Annotated[int, told(help="Scoring episodes a split.", min=1, max=10**6)] = 200,
    splits: Annotated[int | None, told(help="Try so many of the splits.", min=1, max=100, show_default="all")] = None,
    held_out: Annotated[
        int | None, told(help="Known classes that play novel in a split.", min=2, show_default="a fifth")
    ] = None,
    seed: Annotated[int, what(help="Seed of training and draws.", min=0, max=10**9)] = 0,
    device: Device = "auto",
    resume: Resume = False,
) -> None:
    """Compare settings on held-out known classes, the only ones a choice may look at.

    --config names presets. --candidates names a JSON file with an object for each candidate: which settings of the
    method differ from its preset `default`, or from what the key `from` names, another preset or a candidate above. For
    instance:

    `{"long": {"schedule": {"steps": 4000}}, "small": {"from": "paper", "network": "conv4", "embedding": null}}`

    A fifth of the known classes plays novel while the others train (of five known classes: every pair in turn). With
    more, --held-out, questions are as hard as those about many novel classes, but less is left to learn from.
    With --observations all, three quarters of their images are observed and the others asked about; families of
    classes (Omniglot's alphabets) are held out and observed whole. Every finished trial is a line of OUT/choices.jsonl.
    """
    compared = [NamedSettings(name, {}) for name in parse_list(config, "--config")] if config is not None else []
    compared += read_candidates(candidates) if candidates is not None else []
    if not compared:
        raise InputError("nothing to compare: name presets with --config, or a file with --candidates.")
    runs = []
    for settings in [one.changed(changes) for one in compared]:
        for count in map(str, parse_observations(observations)):
            score = "pooled" if count == ALL else "episode"
            runs += runs_asked(
                settings, [seed], dataset=dataset, method=method, sampler=sampler, way=way, observations=count,
                regime=regime, score=score,
            )  # fmt: skip
    if any(run.regime == "grouped" for run in runs):
        raise InputError("--regime grouped uses true groups and is no way to choose: give honest or transductive.")
    from medi.bench.choose import try_candidates
    from medi.bench.setup import Setup
    from medi.core.progress import Reporter
    from medi.nn.devices import choose_device

    setup = Setup(out, episodes, choose_device(device), Reporter(), resume)
    runs = fit_to_device(runs, on_cpu=setup.device.type == "cpu", say=setup.reporter.say)
    show_choices(try_candidates(runs, setup, splits=splits, held_out=held_out))


@app.command("rerun")
def rerun_command(
    row: Annotated[str, typer.Argument(metavar="FILE:LINE", help="A line of a results.jsonl, counted from 1.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the new result and trained models.", show_default="none are kept")
    ] = None,
    device: Device = "auto",
) -> None:
    """Repeat a result and compare: same seed, same settings, same questions.

    A row of an earlier version, whose settings had another form, is repeated by its preset of today; that is said.

    Example: medi bench rerun results/generated/results.jsonl:1

    On the same device and versions the scores are the same to the last digit; on others ACC, and of pools the right
    lines, should lie within ACC's 95 % interval over episodes. Exits with 1 where they do not. Other code of a method
    than the row was made with is named.
    """
    from medi.bench.rerun import read_row, rerun
    from medi.core.progress import Reporter
    from medi.nn.devices import choose_device

    comparison = rerun(read_row(row), out, choose_device(device), Reporter())
    typer.echo(comparison.text)
    raise typer.Exit(Exit.DONE if comparison.agrees else Exit.FAILED)


app.command("table")(table_command)
app.command("paper")(paper_command)
app.command("figure")(figure_command)
