"""Theorem 3 where it says something: weights of a few distances, learnt with a penalty from very many tasks.

    python experiments/theory/guarantee.py --out results/theory [--seeds 3]

The uniform stability of this meta-algorithm is proven (see `fit`), not estimated. An item has several views v_k:
pixels, edges, profiles. pi(x) is (√w_1 v_1(x), …, √w_K v_K(x)), a query belongs to the nearest prototype, and the
weights w ≥ 0 are learnt. Tasks are drawn from the known glyphs. Writes guarantee.jsonl and guarantee.png; prints mean ±
standard deviation over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

import torch
from matplotlib.figure import Figure
from scipy.optimize import minimize
from stability import DELTA, Setting
from study import COLOURS, Parser, Row, Table, by_size, mean_of, measure, run, save_figure, show, spread
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from medi.core.errors import InputError
from medi.core.progress import Reporter
from medi.data.augment import to_float
from medi.data.benchmarks import load
from medi.data.imageset import ImageSet
from medi.kmeans.kmeans import squared_distances
from medi.tasks.episodes import Task, UniformSampler
from medi.theory import generalisation_bound, tasks_needed

COUNTS = (300, 1_000, 3_000, 10_000, 30_000, 100_000)
"""Numbers of training tasks."""
RIDGES = (0.2, 0.05)
"""Penalties lambda; like the views, picked by a look at known tasks of other seeds. Each bound holds by itself."""
FRESH = 10_000
MAX_LOSS = 1.0


@dataclass(frozen=True)
class Learnt:
    """What `fit` found.

    Attributes:
        weights: (views,) float64, none below 0.
        distance: The exact minimiser is no farther than this.
    """

    weights: Tensor
    distance: float


def study_guarantee(
    out: Path,
    *,
    seeds: int,
    reporter: Reporter,
    counts: Sequence[int] = COUNTS,
    setting: Setting | None = None,
) -> list[Row]:
    """A row of `guarantee.jsonl` for each number of tasks, seed and penalty, and a figure."""
    setting = setting or Setting(fresh=FRESH)
    benchmark = load(setting.dataset)
    known, novel = views_of(benchmark.known, benchmark.known), views_of(benchmark.novel, benchmark.known)

    @lru_cache(maxsize=1)  # the penalties share the tasks
    def draw(n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        size = (setting.way, setting.observations, setting.queries)
        sampler = UniformSampler(benchmark.known.labels, *size)
        tasks, fresh = sampler.sample(n, generator), sampler.sample(setting.fresh, generator)
        unseen = UniformSampler(benchmark.novel.labels, *size).sample(setting.fresh, generator)
        return gaps_of(known, tasks), gaps_of(known, fresh), gaps_of(novel, unseen)

    def work(job: Row) -> Row:
        return weigh(*draw(job["n"], job["seed"]), job["ridge"], setting.left_out)

    jobs = [
        {"n": n, "seed": seed, "ridge": ridge, **asdict(setting)}
        for n in counts
        for seed in range(seeds)
        for ridge in RIDGES
    ]
    rows = measure(out / "guarantee.jsonl", jobs, work, "guarantee", reporter)
    save_figure(draw_guarantee(rows), out / "guarantee.png")
    return rows


def views_of(images: ImageSet, known: ImageSet) -> list[Tensor]:
    """The views (items, features) of images, each scaled to a total variance of 1 over the known images."""
    return [mine / theirs.var(0).sum().sqrt() for mine, theirs in zip(_views(images), _views(known), strict=True)]


def _views(images: ImageSet) -> list[Tensor]:
    """Pixels pooled by 2, 4 and 8; edges of four directions pooled by 4 and 8; sums of columns and rows."""
    pixels = to_float(images.images).mean(1, keepdim=True)
    across = pad(pixels.diff(dim=3), (0, 1, 0, 0))
    down = pad(pixels.diff(dim=2), (0, 0, 0, 1))
    angle, strength = torch.atan2(down, across), torch.hypot(across, down)
    turns = [math.pi * turn / 4 for turn in range(4)]
    edges = torch.cat([strength * torch.cos(2 * (angle - turn)).clamp(min=0) for turn in turns], 1)
    pooled = [avg_pool2d(pixels, size) for size in (2, 4, 8)] + [avg_pool2d(edges, size) for size in (4, 8)]
    return [view.flatten(1) for view in (*pooled, pixels.sum(2), pixels.sum(3))]


def gaps_of(views: Sequence[Tensor], tasks: Task) -> Tensor:
    """How much farther every query is from each other class's prototype than from its own, view by view.

    Returns:
        (tasks, queries, way - 1, views) float64 of norm 1 over the views: a positive factor that leaves alone which
        prototype is nearest, and makes every loss below 1-Lipschitz. A query on a tie in all views has zeros.
    """
    own = tasks.query_labels[0]
    others = torch.stack([torch.arange(tasks.way)[torch.arange(tasks.way) != c] for c in own])
    query = torch.arange(len(own))
    parts = []
    for support, asked in zip(tasks.support.split(500), tasks.query.flatten(1).split(500), strict=True):
        apart = torch.stack([squared_distances(view[asked], view[support].mean(2)) for view in views], -1).double()
        gaps = apart[:, query[:, None], others] - apart[:, query, own][:, :, None]
        parts.append(gaps / gaps.norm(dim=-1, keepdim=True).clamp(min=1e-12))
    return torch.cat(parts)


def training_loss(gaps: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The sum over tasks of the mean smoothed hinge of their margins, and its gradient, (views,).

    With margin m it is 0 from 1 on, (1 - m)² / 2 down to 0, and 1/2 - m below: convex, its slope at most 1.
    """
    margins = gaps @ weights
    slack = (1 - margins).clamp(0, 1)
    pairs = slack[0].numel()
    loss = (slack * (1 - margins) - slack.square() / 2).sum() / pairs
    return loss, -(slack.flatten() @ gaps.flatten(0, -2)) / pairs


def fit(gaps: Tensor, penalty: float, without: int | None = None) -> Learnt:
    """A(S): the weights w ≥ 0 that minimise F(w) = the sum of the tasks' losses l_i(w) + penalty / 2 |w|².

    Its uniform stability is at most 1 / penalty. Let w be the minimiser and w' that of F - l_i, one task left out. Both
    functions curve at least as a square with this penalty, so away from their minima they rise by penalty / 2 |w - w'|²
    or more: F(w') - F(w) and (F - l_i)(w) - (F - l_i)(w'). The sum of the two is l_i(w') - l_i(w), and l_i has slope 1
    at most: penalty |w - w'|² ≤ |w - w'|. So |w - w'| ≤ 1 / penalty, and no loss of slope 1 differs by more.

    Args:
        gaps: Of `gaps_of`.
        penalty: Above 0; what leaving out a task does not change.
        without: The task to leave out.
    """
    if not penalty > 0:
        raise InputError(f"penalty is {penalty}: only one above 0 makes the weights stable.")
    n = len(gaps) - (without is not None)

    def objective(values: object) -> tuple[float, object]:
        weights = torch.as_tensor(values)
        loss, gradient = training_loss(gaps, weights)
        if without is not None:
            its_loss, its_gradient = training_loss(gaps[without : without + 1], weights)
            loss, gradient = loss - its_loss, gradient - its_gradient
        loss, gradient = loss + penalty / 2 * weights.square().sum(), gradient + penalty * weights
        return float(loss) / max(n, 1), (gradient / max(n, 1)).numpy()

    views = gaps.shape[-1]
    tight = {"ftol": 1e-16, "gtol": 1e-10, "maxiter": 1000}
    found = minimize(objective, torch.zeros(views).double(), jac=True, bounds=[(0, None)] * views, options=tight)
    weights, gradient = torch.as_tensor(found.x), torch.as_tensor(objective(found.x)[1]) * max(n, 1)
    # What remains of the gradient where a weight may move: F less this slope has its minimum here.
    rest = torch.where(weights > 0, gradient, gradient.clamp(max=0))
    return Learnt(weights, float(rest.norm()) / penalty)


def ramp_loss(gaps: Tensor, weights: Tensor) -> Tensor:
    """(tasks,) mean over queries of 1 - the smallest margin, cut off at 0 and 1: never below the share of errors."""
    return (1 - (gaps @ weights).amin(-1)).clamp(0, 1).mean(-1)


def error_rate(gaps: Tensor, weights: Tensor) -> float:
    """Share of queries not nearest to their own prototype."""
    return float(((gaps @ weights).amin(-1) <= 0).double().mean())


def weigh(tasks: Tensor, fresh: Tensor, novel: Tensor, ridge: float, left_out: int) -> Row:
    """Learn from the gaps of n tasks with the penalty n * ridge, and put the pieces of Theorem 3 side by side.

    Returns:
        train, fresh, novel: ramp losses. train_errors, fresh_errors, novel_errors: shares of errors.
        equal_errors: Of fresh tasks under equal weights, nothing learnt. beta: What is proven. beta_found: largest
        change of a loss over some tasks left out. distance: Of the weights from the exact minimiser. epsilon. total:
        train + epsilon + 2 distance, for the theorem speaks of the exact minimiser, whose risks differ by no more.
    """
    n = len(tasks)
    learnt = fit(tasks, n * ridge)
    changes = []
    for number in range(min(left_out, n)):  # tasks are drawn at random: the first are as good as any
        other = fit(tasks, n * ridge, without=number)
        for gaps in (fresh, tasks[number : number + 1]):
            changes.append(float((ramp_loss(gaps, learnt.weights) - ramp_loss(gaps, other.weights)).abs().max()))
    beta = 1 / (n * ridge)
    groups = {"train": tasks, "fresh": fresh, "novel": novel}
    losses = {name: float(ramp_loss(gaps, learnt.weights).mean()) for name, gaps in groups.items()}
    epsilon = generalisation_bound(n, beta, MAX_LOSS, DELTA)
    return {
        **losses,
        **{f"{name}_errors": error_rate(gaps, learnt.weights) for name, gaps in groups.items()},
        "equal_errors": error_rate(fresh, torch.ones_like(learnt.weights)),
        "beta": beta,
        "beta_found": max(changes, default=0.0),
        "distance": learnt.distance,
        "epsilon": epsilon,
        "total": losses["train"] + epsilon + 2 * learnt.distance,
        "weights": learnt.weights.tolist(),
    }


def smallest_count(rows: Sequence[Row], ridge: float, below: float) -> int:
    """The n from which the bound is below a number, with the risk on the training tasks of the largest n measured."""
    mine = [row for row in rows if row["job"]["ridge"] == ridge]
    most = max(row["job"]["n"] for row in mine)
    train = spread([row["train"] for row in mine if row["job"]["n"] == most])[0]
    return tasks_needed(below - train, 1 / ridge, MAX_LOSS, DELTA)


def draw_guarantee(rows: Sequence[Row]) -> Figure:
    """Risks, errors and bound over the number of tasks, a panel for each penalty."""
    ridges = list(dict.fromkeys(row["job"]["ridge"] for row in rows))
    figure = Figure(figsize=(11, 3.6))
    panels = figure.subplots(1, len(ridges), sharey=True, squeeze=False)[0]
    shown = {
        "total": "right-hand side of Theorem 3",
        "fresh": "fresh tasks",
        "train": "training tasks",
        "novel": "novel classes",
        "fresh_errors": "share of errors, fresh tasks",
    }
    chance = 1 - 1 / rows[0]["job"]["way"]
    for panel, ridge in zip(panels, ridges, strict=True):
        mine = [row for row in rows if row["job"]["ridge"] == ridge]
        for (value, label), colour in zip(shown.items(), COLOURS, strict=True):
            look = {"linestyle": ":" if value == "train" else "-", "marker": "o", "markersize": 3, "capsize": 2}
            panel.errorbar(*by_size(mine, itemgetter(value)), color=colour, label=label, **look)
        panel.axhline(MAX_LOSS, color="black", linestyle="--", linewidth=1, label="largest possible loss")
        panel.axhline(chance, color="black", linestyle=":", linewidth=1, label="errors of guessing")
        panel.set(title=f"penalty λ = {ridge:g}", xscale="log", xlabel="training tasks n", ylim=(0, 2))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.02), ncol=4, frameon=False, fontsize=9)
    return figure


def guarantee_table(rows: Sequence[Row]) -> Table:
    """Theorem 3's pieces by penalty and number of tasks."""
    columns = {
        "training tasks": "train",
        "fresh tasks": "fresh",
        "novel classes": "novel",
        "errors, fresh": "fresh_errors",
        "errors, equal weights": "equal_errors",
    }
    lines = [["λ", "n", *columns, "β found", "β proven", "bound"]]
    for ridge in dict.fromkeys(row["job"]["ridge"] for row in rows):
        for n in sorted({row["job"]["n"] for row in rows if row["job"]["ridge"] == ridge}):
            mine = [row for row in rows if (row["job"]["ridge"], row["job"]["n"]) == (ridge, n)]
            cells = [mean_of([row[name] for row in mine]) for name in columns.values()]
            betas = [f"{max(row[name] for row in mine):.2g}" for name in ("beta_found", "beta")]
            bound = mean_of([row["total"] for row in mine])
            if max(row["total"] for row in mine) >= MAX_LOSS:
                bound = f"{spread([row['total'] for row in mine])[0]:.1f} > {MAX_LOSS:g}"
            lines.append([f"{ridge:g}", str(n), *cells, *betas, bound])
    return lines


def main(parser: Parser) -> None:
    """Measure and print."""
    show(parser, study_guarantee, guarantee_table, seeds=3)


if __name__ == "__main__":
    run(main, __doc__)
