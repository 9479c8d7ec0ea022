"""What CATA's orthogonality term does, with lambda under both readings of Eq. 1.

    python experiments/orthogonality.py --out results/views [--seeds 3] [--device cpu]

|W_i W_j^T| may be the mean of the absolute entries or, hidden² (65,536) times as much, their sum. For both readings and
several lambda: what the views of `rules` know of the rule, and the ACC of MP on tasks drawn from them (preset `cpu`,
honest, 5 observations, 600 episodes). Appends to orthogonality.jsonl; what is there is not measured again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from common import Parser, Table, markdown, mean_of, positive, run
from views import OBSERVATIONS, study

from medi.bench.score import EPISODES, evaluate
from medi.core.files import append_to_journal, make_folder, read_journal
from medi.core.progress import Reporter
from medi.data.benchmarks import Benchmark, load
from medi.methods.base import Plan
from medi.methods.cata_views import ViewsConfig, train_views
from medi.methods.mp import MP
from medi.nn.context import Context
from medi.nn.devices import choose_device

JOURNAL = "orthogonality.jsonl"
READINGS = (
    ("mean", "0"),
    ("mean", "1/3"),
    ("mean", "10"),
    ("mean", "100"),
    ("sum", "1/300"),
    ("sum", "1/30"),
    ("sum", "1/3"),
)
"""Readings of the term and weights under them, from the lightest to the heaviest; the paper's lambda is 1/3."""


def study_term(
    benchmark: Benchmark,
    out: Path,
    *,
    seeds: int,
    device: torch.device,
    reporter: Reporter,
    views: ViewsConfig | None = None,
    method: MP | None = None,
    episodes: int = EPISODES,
) -> list[dict[str, Any]]:
    """A line of the journal for each reading, lambda and seed.

    Args:
        benchmark: What views are found in.
        out: Folder for rows and models.
        seeds: How many.
        device: Where networks are trained.
        reporter: Shows progress.
        views: Settings of the multi-view network beside the term; None for those that `medi bench run` uses.
        method: What learns from the tasks; None for the preset `cpu`.
        episodes: That score it.
    """
    journal = make_folder(out) / JOURNAL
    rows = {(row["reading"], row["weight"], row["seed"]): row for row in read_journal(journal)}
    for seed in range(seeds):
        context = Context(device, seed, out / "models", reporter)
        plan = Plan.of(benchmark, OBSERVATIONS, sampler="cata", context=context)
        for reading, weight in READINGS:
            if (reading, weight, seed) in rows:
                continue
            config = replace(views or plan.views, orthogonality=float(Fraction(weight)))
            if reading == "sum":  # of the entries of W_i W_j^T, whose mean is what is weighed
                config = replace(config, orthogonality=config.orthogonality * config.hidden**2)
            model, _ = train_views(benchmark.known, config, context, benchmark.facts.augmentation)
            learner = (method or MP.preset("cpu")).fit(benchmark.known, replace(plan, views=config))
            scores = evaluate(learner, benchmark, OBSERVATIONS, seed=seed, episodes=episodes, reporter=reporter)
            row = {
                "reading": reading,
                "weight": weight,
                **study(benchmark, config, context),
                "weight_norm": fmean(float(w.detach().norm(dim=1).mean()) for w in model.first_layers()),
                "acc": scores["honest"].acc,
                "acc_ci95": scores["honest"].acc_ci95,
                "episodes": scores["honest"].episodes,
            }
            append_to_journal(journal, row)
            rows[reading, weight, seed] = row
    return list(rows.values())


def term_table(rows: Sequence[dict[str, Any]]) -> Table:
    """One line a reading and lambda, means over seeds."""
    heading = ["reading", "λ", "mean \\|cosine\\| of heads", "bits known of the rule", "MP's ACC"]
    lines = []
    for reading, weight in READINGS:
        mine = [row for row in rows if (row["reading"], row["weight"]) == (reading, weight)]
        if mine:
            lines.append([reading if weight != "0" else "none", weight, *_cells(mine)])
    return [heading, *lines]


def _cells(rows: Sequence[dict[str, Any]]) -> Iterable[str]:
    yield f"{fmean(row['mean_cosine'] for row in rows):.4f}"
    yield mean_of([row["agreement"]["rule"]["bits"] for row in rows])
    yield mean_of([100 * row["acc"] for row in rows], digits=1)


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("--out", type=Path, required=True, help="folder for rows and models")
    parser.add_argument("--seeds", type=positive, default=3, help="how many; 3 where not given")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device = choose_device(options.device)
    benchmark = load("rules", device)
    rows = study_term(benchmark, options.out, seeds=options.seeds, device=device, reporter=Reporter())
    print(markdown(term_table(rows)), end="")


if __name__ == "__main__":
    run(main, __doc__)
