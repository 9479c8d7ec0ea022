"""`medi bench`: run a grid, choose settings on held-out known classes, print tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medi.bench.candidates import NamedSettings, read_candidates
from medi.bench.grid import ALL, fit_to_device, parse_list, parse_observations, runs_asked_for
from medi.bench.options import Dataset, Device, Methods, Observations, Out, Resume, Sampler, Set, Way
from medi.bench.show_commands import figure_command, paper_command, table_command
from medi.errors import Exit, InputError
from medi.runtime.ray_option import RayCommand

app = typer.Typer(help="Benchmarks: run a grid, choose settings, print tables.", no_args_is_help=True)
"""Its commands that show results are registered at the end of this file."""


@app.command("run", cls=RayCommand)
def run_command(
    dataset: Dataset,
    method: Methods,
    out: Out,
    config: Annotated[
        str | None, typer.Option(help="Preset of the method, such as default or paper.", show_default="default")
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(
            help="JSON file of settings (`medi bench choose --help` shows one): each is run under its name.",
            metavar="FILE",
        ),
    ] = None,
    changes: Set = None,
    sampler: Sampler = "uniform",
    way: Way = None,
    observations: Observations = "5",
    regime: Annotated[
        str, typer.Option(help="What a method may see: honest, transductive, grouped (an oracle).", metavar="A,B")
    ] = "honest",
    score: Annotated[str, typer.Option(help="Where ACC is computed: episode or pooled.")] = "episode",
    balance: Annotated[
        str,
        typer.Option(
            help="Whether a method is told that classes are equally large: on or off for every method, or as its "
            "preset has it. A comparison needs on or off; uno and simgcd assume it in their loss either way.",
            metavar="preset|on|off",
        ),
    ] = "preset",
    sizes: Annotated[
        str,
        typer.Option(
            help="Images of each class in a task: equally many, or different numbers, which no method is told.",
            metavar="equal|unequal",
        ),
    ] = "equal",
    seeds: Annotated[int, typer.Option(help="How many seeds: new training, new draws.", min=1, max=1000)] = 3,
    first_seed: Annotated[int, typer.Option(help="The first of them.", min=0, max=10**9)] = 0,
    episodes: Annotated[int, typer.Option(help="Scoring episodes.", min=1, max=10**6)] = 600,
    device: Device = "auto",
    resume: Resume = False,
    jobs: Annotated[int, typer.Option(help="Processes of this machine that share the grid.", min=1, max=1024)] = 1,
    ray: Annotated[
        str | None,
        typer.Option(help="Do the grid on a Ray cluster, or on a Ray started on this machine.", metavar="[ADDRESS]"),
    ] = None,
    cpus_per_run: Annotated[float, typer.Option(help="Processors a training asks Ray for.", min=0)] = 1.0,
    gpus_per_run: Annotated[
        float | None,
        typer.Option(help="GPUs it asks for; 0.5 shares one.", min=0, show_default="1 with --device cuda, else 0"),
    ] = None,
) -> None:
    """Train methods on known classes and score how well they discover novel ones.

    Example: medi bench run --dataset glyphs --method kmeans,mp --observations 1,5 --out out

    A task mixes a few unlabelled images (observations) of some novel classes (way); the method groups them, then
    further images (queries) are assigned to the groups. ACC is the fraction assigned correctly under the best map from
    groups to classes. Regimes: honest, no novel label and queries one by one; transductive, queries seen together;
    grouped, the observations sorted by their labels first, a ceiling for comparison only. Scores: episode, the mean of
    many small tasks; pooled, all test images after one draw of observations.

    Every finished run is a line of OUT/results.jsonl at once, so an interrupted grid loses nothing: start it again with
    --resume. --jobs and --ray divide a grid among processes or machines; torchrun divides one training
    (docs/cluster.md).
    """
    if ray is not None and jobs > 1:
        raise InputError("--jobs and --ray are two ways to divide a grid: give one of them.")
    if config is not None and candidates is not None:
        raise InputError("--config names a preset, --candidates a file of settings: give one of them.")
    named = read_candidates(candidates) if candidates is not None else [NamedSettings(config or "default", {})]
    all_seeds = range(first_seed, first_seed + seeds)
    runs = []
    for settings in [one.changed(changes) for one in named]:
        runs += runs_asked_for(
            dataset, method, settings, sampler, way, observations, regime, score, all_seeds, balance, sizes
        )
    import torch

    from medi.bench.run import refuse_used_folder, run_grid
    from medi.bench.tables import summarise
    from medi.bench.terminal import show_lines
    from medi.bench.work import WORKER, do
    from medi.runtime import ranks
    from medi.runtime.devices import choose_device
    from medi.runtime.local_workers import LocalWorkers
    from medi.runtime.progress import Reporter, Silent
    from medi.runtime.ray_workers import RayWorkers

    # Ray's workers look for devices on their own machines.
    chosen = choose_device(device) if ray is None else torch.device("cpu")
    gpus = gpus_per_run if gpus_per_run is not None else float(device == "cuda")
    workers: LocalWorkers | RayWorkers | None = None
    if ray is not None:
        workers = RayWorkers(ray, cpus_per_run, gpus, do, what="trainings", again="go on with --resume")
    elif jobs > 1:
        workers = LocalWorkers(jobs, WORKER, gpus=torch.cuda.device_count() if chosen.type == "cuda" else 0)
    with ranks.joined(chosen):
        if workers is not None and ranks.count() > 1:
            raise InputError("torchrun divides one training, --jobs and --ray divide a grid: use one of them.")
        reporter = Reporter() if ranks.is_first() else Silent()
        refuse_used_folder(out, resume=resume)
        runs = fit_to_device(runs, on_cpu=chosen.type == "cpu" and (ray is None or not gpus), say=reporter.say)
        rows = run_grid(
            runs,
            out,
            episodes=episodes,
            device=chosen,
            resume=resume,
            reporter=reporter,
            workers=workers,
            worker_device=device,
        )
        if ranks.is_first():
            show_lines(summarise(rows))


@app.command("choose")
def choose_command(
    dataset: Dataset,
    method: Methods,
    out: Out,
    config: Annotated[
        str | None, typer.Option(help="Presets of the method to compare, separated by commas.", metavar="A,B")
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option(help="JSON file of settings to compare (see above).", metavar="FILE")
    ] = None,
    changes: Set = None,
    sampler: Sampler = "uniform",
    way: Way = None,
    observations: Observations = "5",
    regime: Annotated[str, typer.Option(help="honest, transductive.", metavar="A,B")] = "honest",
    episodes: Annotated[int, typer.Option(help="Scoring episodes a split.", min=1, max=10**6)] = 200,
    splits: Annotated[
        int | None, typer.Option(help="Try so many of the splits.", min=1, max=100, show_default="all")
    ] = None,
    held_out: Annotated[
        int | None, typer.Option(help="Known classes that play novel in a split.", min=2, show_default="a fifth")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of training and draws.", min=0, max=10**9)] = 0,
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
            runs += runs_asked_for(dataset, method, settings, sampler, way, count, regime, score, [seed])
    if any(run.regime == "grouped" for run in runs):
        raise InputError("--regime grouped uses true groups and is no way to choose: give honest or transductive.")
    from medi.bench.choose import try_candidates
    from medi.bench.terminal import show_choices
    from medi.runtime.devices import choose_device
    from medi.runtime.progress import Reporter

    chosen, reporter = choose_device(device), Reporter()
    summaries = try_candidates(
        fit_to_device(runs, on_cpu=chosen.type == "cpu", say=reporter.say),
        out,
        episodes=episodes,
        device=chosen,
        resume=resume,
        reporter=reporter,
        splits=splits,
        held_out=held_out,
    )
    show_choices(summaries)


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

    On the same device and versions the scores are the same to the last digit; on others ACC should lie within the
    95 % interval over episodes. Exits with 1 where it does not.
    """
    from medi.bench.rerun import read_row, rerun
    from medi.runtime.devices import choose_device
    from medi.runtime.progress import Reporter

    comparison = rerun(read_row(row), out, choose_device(device), Reporter())
    typer.echo(comparison.text)
    raise typer.Exit(Exit.DONE if comparison.agrees else Exit.FAILED)


app.command("table")(table_command)
app.command("paper")(paper_command)
app.command("figure")(figure_command)
