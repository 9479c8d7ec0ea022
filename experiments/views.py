"""What CATA's views are: are heads orthogonal, how large are views, do they follow a known attribute?

    python experiments/views.py --dataset rules,glyphs --out results/views [--seeds 3] [--device auto]

Trains the multi-view network as the paper does, without its orthogonality term, and with heads that specialise. Appends
what it finds to views.jsonl, draws the images of each view and prints one line a network; a row that is there already
is not measured again. Columns:

- cosine: mean absolute cosine between first-layer weights of different heads;
- classes: part of the known classes that have an image in each view;
- topped up: part of a task's images that come from another view;
- bits: mutual information of view and attribute, and of shuffled views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Parser, Table, markdown, positive, run
from contact_sheet import Row, contact_sheet
from sklearn.metrics import mutual_info_score
from torch import Tensor
from torch.nn import functional

from medi.bench.grid_options import parse_datasets
from medi.bench.run import describe_run
from medi.core.errors import InputError
from medi.core.files import append_to_journal, make_folder, read_journal
from medi.core.progress import Reporter
from medi.data.benchmarks import Benchmark, load
from medi.data.facts import QUERIES
from medi.data.imageset import ImageSet
from medi.methods.base import Plan
from medi.methods.cata_views import MultiView, ViewsConfig, find_views, overlap, train_views
from medi.nn.context import Context
from medi.nn.devices import choose_device
from medi.tasks.cata import CataSampler, Views

SHOWN = 24
"""Images of a view in the picture."""
SHUFFLES = 200
"""Random views that the measured mutual information is compared with."""
OBSERVATIONS = 5


def study_views(
    datasets: Sequence[str],
    out: Path,
    *,
    seeds: int,
    device: torch.device,
    reporter: Reporter,
    paper: ViewsConfig | None = None,
) -> list[dict[str, Any]]:
    """A line of `views.jsonl` for each dataset, seed and kind of view; a picture for each dataset and kind.

    Args:
        datasets: Names of benchmarks.
        out: Folder for rows, models and pictures.
        seeds: How many.
        device: Where networks are trained.
        reporter: Shows progress.
        paper: Settings of the network as the paper has it; None for those that `medi bench run` uses.
    """
    journal = make_folder(out) / "views.jsonl"
    rows = {(row["dataset"], row["seed"], row["kind"]): row for row in read_journal(journal)}
    for name in datasets:
        benchmark = load(name, device)
        for seed in range(seeds):
            context = Context(device, seed, out / "models", reporter)
            kinds = kinds_of_views(paper or Plan.of(benchmark, OBSERVATIONS, context=context).views)
            for kind, config in kinds.items():
                if (name, seed, kind) not in rows:
                    rows[name, seed, kind] = {"kind": kind} | study(benchmark, config, context)
                    append_to_journal(journal, rows[name, seed, kind])
                if seed == 0:
                    draw_views(benchmark, config, context).save(out / f"views-{name}-{kind}.png")
    return [row for key, row in rows.items() if key[0] in datasets and key[1] < seeds]


def kinds_of_views(paper: ViewsConfig) -> dict[str, ViewsConfig]:
    """The views that are compared: the paper's, without its orthogonality term, and with heads that specialise."""
    return {
        "paper": paper,
        "without-term": replace(paper, orthogonality=0.0),
        "specialised": replace(paper, specialise=0.5),
    }


def study(benchmark: Benchmark, config: ViewsConfig, context: Context) -> dict[str, Any]:
    """What one multi-view network did with the known classes."""
    known, augmentation = benchmark.known, benchmark.facts.augmentation
    model, seconds = train_views(known, config, context, augmentation)
    views = find_views(known, config, context, augmentation)
    sampler = CataSampler(known.labels, views, benchmark.facts.way, OBSERVATIONS, QUERIES, known.class_names)
    agreement = {
        name: dict(zip(("bits", "random_bits"), agreement_with(views.view, values), strict=True))
        for name, values in known.attributes.items()
    }
    return {
        "dataset": benchmark.facts.name,
        "seed": context.seed,
        "mean_cosine": mean_cosine(model),
        "sizes": views.sizes.tolist(),
        "coverage": coverage(views, known),
        "topped_up": topped_up(sampler),
        "drawn": drawn(sampler),
        "agreement": agreement,
        "seconds": round(seconds, 3),
        "settings": asdict(config),
        **describe_run(context.device),
    }


def topped_up(sampler: CataSampler, tasks: int = 200) -> float:
    """Share of items that had to be taken from another view than their task's, over a sample of tasks."""
    ranks = sampler.views.ranks
    task, view = sampler.sample_with_views(tasks, torch.Generator(ranks.device).manual_seed(0))
    items = torch.cat([task.support, task.query], 2)
    return float((ranks[items, view[:, None, None]] > 0).float().mean())


def drawn(sampler: CataSampler, tasks: int = 1000) -> int:
    """How many classes a sample of tasks draws on."""
    generator = torch.Generator(sampler.views.ranks.device).manual_seed(0)
    return len(torch.unique(sampler.sample(tasks, generator).classes))


def mean_cosine(model: MultiView) -> float:
    """Mean absolute cosine between weight vectors of different heads: 0 where they are orthogonal."""
    return float(overlap([functional.normalize(weight.detach().float(), dim=1) for weight in model.first_layers()]))


def coverage(views: Views, known: ImageSet) -> list[float]:
    """Share of the known classes that have an item in each view."""
    there = torch.zeros(len(views.sizes), known.n_classes, device=known.labels.device)
    there[views.view, known.labels] = 1
    return there.mean(1).tolist()


def agreement_with(view: Tensor, values: Tensor) -> tuple[float, float]:
    """Mutual information in bits between views (n,) and an attribute (n,): measured, and the mean of shuffled views."""
    ours, theirs = view.cpu().numpy(), values.cpu().numpy()
    rng = np.random.default_rng(0)
    shuffled = [mutual_info_score(theirs, rng.permutation(ours)) for _ in range(SHUFFLES)]
    return float(mutual_info_score(theirs, ours) / np.log(2)), float(np.mean(shuffled) / np.log(2))


def draw_views(benchmark: Benchmark, config: ViewsConfig, context: Context) -> Any:
    """A picture: of each view the images it dominates most clearly, from as many classes as there is room for."""
    known = benchmark.known
    views = find_views(known, config, context, benchmark.facts.augmentation)
    best, second = views.log_probabilities.topk(2, dim=1).values.T
    rows = []
    for number, size in enumerate(views.sizes.tolist()):
        mine = (views.view == number).nonzero().squeeze(1)
        if not len(mine):
            raise InputError(f"view {number + 1} of {benchmark.facts.name} is empty: train longer or use fewer heads.")
        clearest = mine[(best - second)[mine].argsort(descending=True)]
        items = _one_a_class(clearest, known.labels)[:SHOWN].tolist()
        rows.append(Row(f"view {number + 1}", f"{size:,} images", [known.images[item].cpu().numpy() for item in items]))
    title = f"Views of {benchmark.facts.title}: images that one head claims most clearly"
    return contact_sheet(rows, title, "At most one image of a class before any class comes again.")


def _one_a_class(items: Tensor, labels: Tensor) -> Tensor:
    """The items in an order that takes the first of every class, then the second, and so on."""
    turn: dict[int, int] = {}
    order = []
    for place, label in enumerate(labels[items].tolist()):
        turn[label] = turn.get(label, -1) + 1
        order.append((turn[label], place))
    return items[torch.tensor([place for _, place in sorted(order)], device=items.device)]


def views_table(rows: Sequence[dict[str, Any]]) -> Table:
    """One line a network."""
    heading = ["dataset", "seed", "views", "cosine", "sizes", "classes", "topped up", "bits (shuffled)"]
    lines = [
        [
            row["dataset"],
            str(row["seed"]),
            row["kind"],
            f"{row['mean_cosine']:.3f}",
            " ".join(map(str, row["sizes"])),
            " ".join(f"{100 * covered:.0f} %" for covered in row["coverage"]),
            f"{100 * row['topped_up']:.1f} %",
            " ".join(f"{name} {m['bits']:.3f} ({m['random_bits']:.3f})" for name, m in row["agreement"].items()),
        ]
        for row in rows
    ]
    return [heading, *lines]


def main(parser: Parser) -> None:
    """Measure, draw and print."""
    parser.add_argument("--dataset", type=parse_datasets, required=True, help="separated by commas")
    parser.add_argument("--out", type=Path, required=True, help="folder for rows, models and pictures")
    parser.add_argument("--seeds", type=positive, default=3, help="how many; 3 where not given")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    device = choose_device(options.device)
    rows = study_views(options.dataset, options.out, seeds=options.seeds, device=device, reporter=Reporter())
    print(markdown(views_table(rows)), end="")


if __name__ == "__main__":
    run(main, __doc__)
