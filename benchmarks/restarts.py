"""Do nearest neighbours tell which of several trainings of RS on a bag is a good one?

    python benchmarks/restarts.py --device cuda --out restarts.json
    python benchmarks/restarts.py --table results/diagnose/restarts.json

Held-out known digits play novel, and all of their images but those asked about are observed, as in `medi bench choose`.
For every split: how well each training's clusters fit nearest neighbours, and its ACC; which of them stays; and both
for that one after it was steadied. Needs MEDI_DATA.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import nn

from medi.bench.choose import hold_out, splits_of
from medi.bench.grid import ALL, Run
from medi.bench.run import describe_run, train_learner
from medi.bench.score import draw_tasks
from medi.data.benchmarks import Benchmark, load
from medi.methods.rs import RSLearner
from medi.metrics import acc
from medi.runtime.context import Context
from medi.runtime.devices import choose_device
from medi.runtime.files import write_atomically
from medi.runtime.progress import Reporter

HELD_OUT, SPLITS = 3, (0, 5)
"""Known classes that play novel, and the splits that trials with two of ten splits have."""


def measure(benchmark: Benchmark, run: Run, context: Context) -> dict[str, Any]:
    """The trainings on all that is observed of a benchmark's novel classes, as a run of `medi bench` has them."""
    (questions,) = draw_tasks(benchmark, run, episodes=1)
    learner = train_learner(run, benchmark, context)
    assert isinstance(learner, RSLearner)
    images, k = questions.images[questions.bag[0]], questions.way
    asked, labels = questions.images[questions.query[0]], questions.labels[0].cpu()
    generator = torch.Generator(context.device).manual_seed(run.seed)
    context = replace(context, seed=learner.seeds(1, generator)[0])

    def seen(fit: float, model: nn.Module) -> dict[str, float]:
        right = acc(labels, learner.answers(model, asked).argmax(1).cpu())
        return {"fit": round(fit, 4), "acc": round(float(right), 4)}

    fit = learner.judge(images, k)
    assert fit is not None
    tried = learner.tries(fit, images, k, None, context)
    found: dict[str, Any] = {
        "trainings": [seen(*training) for training in zip(tried.fits, tried.models, strict=True)],
        "kept": tried.best,
    }
    if learner.config.steady is not None:
        model = learner.steadied(tried, learner.config.steady, images, k, None, context)
        found["steadied"] = seen(fit(model), model)
    return found


def table(found: dict[str, Any]) -> str:
    """A Markdown table: ACC in percent, and in brackets how well clusters fit neighbours."""

    def shown(training: dict[str, Any]) -> str:
        known = "" if training["acc"] is None else f"{100 * training['acc']:.1f} "
        return f"{known}({training['fit']:.3f})"

    lines = [
        "| digits | the first training | the one that stays | of all of them | that one steadied |",
        "| --- " * 5 + "|",
    ]
    for row in found["rows"]:
        trainings = row["trainings"]
        scores = [100 * training["acc"] for training in trainings if training["acc"] is not None]
        all_known = len(scores) == len(trainings)
        spread = f"{min(scores):.1f} to {max(scores):.1f}, mean {fmean(scores):.1f}" if all_known else ""
        kept, steadied = trainings[row["kept"]], row.get("steadied")
        cells = (row["digits"], shown(trainings[0]), shown(kept), spread, shown(steadied) if steadied else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, or print the table of what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--config", default="svhn-eights-steady")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--models", type=Path, help="folder in which trainings are kept")
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(arguments.table.read_text())))
        return
    if not arguments.out:
        parser.error("--out is needed to measure")
    device = choose_device(arguments.device)
    benchmark = load("svhn", device)
    run = Run("svhn", "rs", arguments.config, None, HELD_OUT, ALL, "honest", "pooled", 0)
    splits, rows = splits_of(benchmark, ALL, HELD_OUT), []
    for number in SPLITS:
        split = hold_out(benchmark, splits[number], ALL)
        context = Context(device, run.seed, arguments.models, Reporter())
        rows.append({"digits": ", ".join(split.novel.class_names)} | measure(split, run, context))
    found = {"rows": rows} | describe_run(device)
    write_atomically(arguments.out, json.dumps(found, indent=1).encode())
    print(table(found))


if __name__ == "__main__":
    main()
