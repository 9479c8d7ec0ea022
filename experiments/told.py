"""What is done with "all classes are equally large" by methods that read clusters off a network trained on the bag.

    python experiments/told.py --out results/told [--device cpu]

Networks are trained on bags of held-out known classes (preset `cpu`, a small perceptron), and asked about further items
untold, with Bayes' rule for equal clusters (what is done), and with offsets that make the shares of the observations
equal (what was done before). Appends to cpu.jsonl; what is there is not measured again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from common import Parser, Table, markdown, run
from torch import Tensor

from medi.bench.choose import hold_out, splits_of
from medi.bench.grid import Run
from medi.bench.questions import draw_tasks
from medi.core.files import append_to_journal, make_folder, read_journal
from medi.core.progress import Silent
from medi.data.benchmarks import Benchmark, load
from medi.data.facts import BENCHMARKS
from medi.kmeans.balanced import equal_share_offsets
from medi.methods import METHODS, Plan
from medi.methods.bag_training import BagClustering
from medi.methods.outputs import even_prior
from medi.metrics import score_episodes
from medi.nn.context import Context
from medi.nn.devices import choose_device
from medi.presets import resolve
from medi.registry import title_of

CASES = (
    *(("cifar10", "uno", split) for split in (0, 3, 6)),
    *((name, "uno", 0) for name in ("glyphs", "cifar100", "omniglot")),
    ("cifar10", "rs", 0),
    ("cifar10", "simgcd", 0),
    ("omniglot", "rs", 0),
)
"""Dataset, method and split of the known classes."""
HELD_OUT, OBSERVATIONS, BAGS = {"cifar10": 3}, 5, 4
PERCEPTRON = {"pretraining": {"network": "mlp", "schedule": {"steps": 300}}}
RULES: Mapping[str, Callable[[Tensor], Tensor]] = {
    "untold": lambda logits: torch.zeros_like(logits[:, :1]),
    "told": even_prior,
    "told, before": equal_share_offsets,
}
"""What is added to the outputs for later items, from those for the observations (episodes, n, k)."""


def measure(benchmark: Benchmark, method: str, split: int, context: Context, bags: int = BAGS) -> dict[str, Any]:
    """ACC by rule, and how sure the network is of observations and of later items: medians of first less second."""
    name = benchmark.facts.name
    known = hold_out(benchmark, splits_of(benchmark, OBSERVATIONS, HELD_OUT.get(name))[split], OBSERVATIONS)
    way = min(benchmark.facts.way, known.novel.n_classes)
    settings = resolve(METHODS[method], "cpu", name, changes=PERCEPTRON)
    learner = settings.fit(known.known, Plan.of(known, OBSERVATIONS, way=way, context=context))
    of = Run(name, method, "cpu", None, way, OBSERVATIONS, "honest", "episode", context.seed)
    (asked,) = draw_tasks(known, of, bags)
    found = learner.discover(asked.images, asked.bag, way, context.generator())
    assert isinstance(found, BagClustering)
    observed, later = (found.logits(asked.images, items) for items in (asked.bag, asked.query))
    accs = {rule: score_episodes(asked.labels, (later + add(observed)).argmax(-1)).acc for rule, add in RULES.items()}
    sure = [
        float((top[..., 0] - top[..., 1]).median()) for top in (some.topk(2, -1).values for some in (observed, later))
    ]
    fixed = {"dataset": name, "method": method, "split": split, "way": way, "bags": bags, "sure": sure}
    return fixed | {"acc": {rule: float(acc.mean()) for rule, acc in accs.items()}}


def told_table(rows: list[dict[str, Any]]) -> Table:
    """A line a dataset and method, means over splits."""
    kinds: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault((row["dataset"], row["method"], row["way"]), []).append(row)
    lines = []
    for (dataset, method, way), some in kinds.items():
        accs = [f"{sum(100 * row['acc'][rule] for row in some) / len(some):.1f}" for rule in RULES]
        sure = [f"{sum(row['sure'][place] for row in some) / len(some):.1f}" for place in (0, 1)]
        bags = f"{len(some)} x {some[0]['bags']}"
        lines.append([f"{BENCHMARKS[dataset].title} {way}-way", title_of(method), bags, *accs, *sure])
    return [
        ["held-out known classes", "method", "splits x bags", *RULES, "sure of observations", "sure of others"],
        *lines,
    ]


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("--out", type=Path, required=True, help="folder for rows and models")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device = choose_device(options.device)
    journal = make_folder(options.out) / "cpu.jsonl"
    rows = read_journal(journal)
    done = [(row["dataset"], row["method"], row["split"]) for row in rows]
    for dataset, method, split in CASES:
        if (dataset, method, split) not in done:
            context = Context(device, 0, options.out / "models", Silent())
            rows.append(measure(load(dataset, device), method, split, context))
            append_to_journal(journal, rows[-1])
    print(markdown(told_table(rows)), end="")


if __name__ == "__main__":
    run(main, __doc__)
