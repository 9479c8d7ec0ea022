"""Theorem 3 measured: how much one task matters to MP and MM, and what the bound then says.

    python experiments/theory/stability.py --out results/theory [--seeds 3]

Definition 3's uniform stability beta is a supremum over all samples of tasks and all tasks. Leaving out some tasks of
one sample and looking at some others finds a lower bound of it, so the bound made of it here is an estimate, not a
guarantee; at M or above it says nothing. Writes stability.jsonl and stability.png; prints mean ± standard deviation
over seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

import torch
from algorithms import ALGORITHMS, LOSSES, MetaAlgorithm, Training, draw_order
from matplotlib.figure import Figure
from study import COLOURS, Parser, Row, Table, by_size, mean_of, measure, run, save_figure, show, spread
from torch import nn

from medi.core.progress import Reporter
from medi.data.benchmarks import load
from medi.data.imageset import ImageSet
from medi.tasks.episodes import Task, UniformSampler
from medi.theory import generalisation_bound, largest_useful_beta

DELTA = 0.05
COUNTS: Mapping[str, Sequence[int]] = MappingProxyType({"mp": (8, 16, 32, 64, 128), "mm": (8, 32, 128)})
"""Numbers of training tasks, by method; training MM costs about ten times as much."""


@dataclass(frozen=True)
class Setting:
    """The size of the experiment.

    Attributes:
        dataset: Where tasks come from.
        way: Classes in a task.
        observations: Observed items of each.
        queries: Items of each to ask about.
        left_out: How many tasks are left out, one after the other.
        fresh: Tasks that the loss is compared on.
    """

    dataset: str = "glyphs"
    way: int = 5
    observations: int = 5
    queries: int = 5
    left_out: int = 5
    fresh: int = 200


def study_stability(
    out: Path,
    *,
    seeds: int,
    reporter: Reporter,
    counts: Mapping[str, Sequence[int]] = COUNTS,
    setting: Setting | None = None,
    training: Training | None = None,
) -> list[Row]:
    """A row of `stability.jsonl` for each method, number of tasks and seed, and a figure."""
    setting, training = setting or Setting(), training or Training()
    benchmark = load(setting.dataset)
    jobs = [
        {"method": method, "n": n, "seed": seed, **asdict(setting), **asdict(training)}
        for method in counts
        for n in counts[method]
        for seed in range(seeds)
    ]

    def work(job: Row) -> Row:
        shape = tuple(benchmark.known.images.shape[1:])
        algorithm = ALGORITHMS[job["method"]](training, shape, setting.way, job["seed"])
        return {"losses": try_algorithm(algorithm, benchmark.known, benchmark.novel, job["n"], setting, job["seed"])}

    rows = measure(out / "stability.jsonl", jobs, work, "stability", reporter)
    save_figure(draw_stability(rows), out / "stability.png")
    return rows


def try_algorithm(
    algorithm: MetaAlgorithm, known: ImageSet, novel: ImageSet, n: int, setting: Setting, seed: int
) -> dict[str, Row]:
    """Train on n tasks, again without some of them, and put the pieces of Theorem 3 side by side.

    Returns:
        For each loss: max_loss (M), train (empirical multi-task risk), fresh (risk on new tasks of the known classes:
        the distribution the theorem speaks of), novel (on tasks of novel classes: of which it does not), beta (largest
        change of a task's loss), mean_change, epsilon, and total (train + epsilon).
    """
    generator = torch.Generator().manual_seed(seed)
    size = (setting.way, setting.observations, setting.queries)
    sampler = UniformSampler(known.labels, *size)
    tasks, fresh = sampler.sample(n, generator), sampler.sample(setting.fresh, generator)
    unseen = UniformSampler(novel.labels, *size).sample(setting.fresh, generator)
    order = draw_order(n, algorithm.training, generator)
    without = torch.randperm(n, generator=generator)[: setting.left_out].tolist()

    model = algorithm.fit(known, tasks, order)
    changes: dict[str, list[torch.Tensor]] = {name: [] for name in LOSSES}
    for left_out in without:
        other = algorithm.fit(known, tasks, order, left_out)
        for name, change in changes_of_loss(algorithm, model, other, known, fresh, one_of(tasks, left_out)).items():
            changes[name].append(change)

    on_tasks, on_fresh, on_novel = (
        algorithm.risks(model, images, some) for images, some in ((known, tasks), (known, fresh), (novel, unseen))
    )
    found = {}
    for name, max_loss in LOSSES.items():
        change = torch.cat(changes[name])
        train, beta = float(on_tasks[name].mean()), float(change.max())
        epsilon = generalisation_bound(n, beta, max_loss, DELTA)
        found[name] = {
            "max_loss": max_loss,
            "train": train,
            "fresh": float(on_fresh[name].mean()),
            "novel": float(on_novel[name].mean()),
            "beta": beta,
            "mean_change": float(change.mean()),
            "epsilon": epsilon,
            "total": train + epsilon,
        }
    return found


def changes_of_loss(
    algorithm: MetaAlgorithm, model: nn.Module, other: nn.Module, images: ImageSet, *groups: Task
) -> dict[str, torch.Tensor]:
    """How much the loss of each task differs between two models: what Definition 3 bounds by beta."""
    parts = [(algorithm.risks(model, images, tasks), algorithm.risks(other, images, tasks)) for tasks in groups]
    return {name: torch.cat([(a[name] - b[name]).abs() for a, b in parts]) for name in LOSSES}


def one_of(tasks: Task, number: int) -> Task:
    """A batch of that one task: the one left out is where its absence shows most."""
    only = slice(number, number + 1)
    return Task(tasks.support[only], tasks.query[only], tasks.classes[only])


def draw_stability(rows: Sequence[Row]) -> Figure:
    """Stability against what the theorem needs of it; and risk, fresh risk and bound of MP."""
    figure = Figure(figsize=(11, 3.6))
    left, right = figure.subplots(1, 2)

    def series(method: str, loss: str, value: str) -> tuple[list[int], list[float], list[float]]:
        return by_size([row for row in rows if row["job"]["method"] == method], lambda row: row["losses"][loss][value])

    methods = list(dict.fromkeys(row["job"]["method"] for row in rows))
    for method, colour in zip(methods, COLOURS, strict=False):
        for loss, style in zip(LOSSES, ("-", ":"), strict=True):
            sizes, means, deviations = series(method, loss, "beta")
            scaled = [[value / LOSSES[loss] for value in values] for values in (means, deviations)]
            label = f"{method.upper()}, {loss}"
            left.errorbar(sizes, *scaled, color=colour, linestyle=style, marker="o", markersize=3, label=label)
    counts = sorted({row["job"]["n"] for row in rows})
    useful = [largest_useful_beta(n, 1.0, DELTA) for n in counts]
    left.plot(counts, useful, color="black", linestyle="--", linewidth=1, label="needed for a bound below M")
    left.set(title="estimated stability β / M", xscale="log", yscale="log", xlabel="training tasks n")

    shown = {"train": "training tasks", "fresh": "fresh tasks", "novel": "novel classes", "total": "right-hand side"}
    for (value, label), colour in zip(shown.items(), COLOURS, strict=False):
        right.errorbar(*series("mp", "zero-one", value), color=colour, marker="o", markersize=3, capsize=2, label=label)
    right.axhline(1, color="black", linestyle="--", linewidth=1, label="largest possible loss")
    right.set(title="Theorem 3 for MP, 0-1 loss", xscale="log", xlabel="training tasks n")
    right.set_yscale("symlog", linthresh=0.01)  # the training tasks may be learnt without an error
    right.set_ylim(bottom=-0.001)
    for panel in (left, right):
        panel.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncol=3)
    return figure


def stability_table(rows: Sequence[Row]) -> Table:
    """Theorem 3's pieces by method, loss and number of tasks."""
    lines = [["method", "loss", "n", "training tasks", "fresh tasks", "novel classes", "β found", "β needed", "bound"]]
    for method in dict.fromkeys(row["job"]["method"] for row in rows):
        for loss in rows[0]["losses"]:
            for n in sorted({row["job"]["n"] for row in rows if row["job"]["method"] == method}):
                mine = [row["losses"][loss] for row in rows if (row["job"]["method"], row["job"]["n"]) == (method, n)]
                largest = mine[0]["max_loss"]
                cells = [mean_of([one[name] for one in mine]) for name in ("train", "fresh", "novel", "beta")]
                needed = f"{largest_useful_beta(n, largest, DELTA):.4f}"
                bound = f"{spread([one['total'] for one in mine])[0]:.1f} > {largest:g}"
                if min(one["total"] for one in mine) < largest:
                    bound = mean_of([one["total"] for one in mine])
                lines.append([method.upper(), f"{loss}, M = {largest:g}", str(n), *cells, needed, bound])
    return lines


def main(parser: Parser) -> None:
    """Measure and print."""
    show(parser, study_stability, stability_table, seeds=3)


if __name__ == "__main__":
    run(main, __doc__)
