"""Does agreement with neighbours tell which of several trainings of RS on a bag is a good one?

    python benchmarks/restarts.py --device cuda --out restarts.json
    python benchmarks/restarts.py --table results/diagnose/restarts.json

Held-out known digits play novel, and all of their images but those asked about are observed, as in `medi bench choose`.
For every split: the agreement of each training's clusters with nearest neighbours and its ACC, which of them stays, and
both for what comes of that one after it was steadied. Needs MEDI_DATA.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from medi.bench.choose import hold_out, splits_of
from medi.bench.grid import ALL, Run
from medi.bench.run import describe_run, train_learner
from medi.bench.score import draw_tasks
from medi.data.benchmarks import Benchmark, load
from medi.files import write_atomically
from medi.methods.rs import RSLearner
from medi.metrics import acc
from medi.progress import Reporter
from medi.train.devices import choose_device
from medi.train.loop import Desk

HELD_OUT, SPLITS = 3, (0, 5)
"""Known classes that play novel, and the splits that trials with two of ten splits have."""


def measure(benchmark: Benchmark, run: Run, desk: Desk) -> dict[str, Any]:
    """The trainings on everything that is observed of a benchmark's novel classes."""
    (questions,) = draw_tasks(benchmark, run, episodes=1)
    learner = train_learner(run, benchmark, desk)
    assert isinstance(learner, RSLearner)
    models: list[nn.Module] = []
    attempt = learner.attempt

    def noted(*arguments: Any) -> nn.Module:
        models.append(attempt(*arguments))
        return models[-1]

    learner.attempt = noted  # type: ignore[method-assign, assignment]
    generator = torch.Generator(desk.device).manual_seed(run.seed)
    (kept,) = learner.discover(questions.images, questions.bag, questions.way, generator).models
    fit = learner.judge(questions.images[questions.bag[0]], questions.way)
    assert fit is not None
    asked, labels = questions.images[questions.query[0]], questions.labels[0].cpu()
    pairs = [(fit(model), acc(labels, learner.answers(model, asked).argmax(1).cpu())) for model in (*models, kept)]
    *trainings, result = [{"agreement": round(a, 4), "acc": round(float(b), 4)} for a, b in pairs]
    best = max(range(len(trainings)), key=lambda number: pairs[number][0])
    return {"trainings": trainings, "kept": best, "result": result}


def table(found: dict[str, Any]) -> str:
    """A Markdown table: ACC in percent, and agreement in brackets."""

    def shown(training: dict[str, Any]) -> str:
        known = "" if training["acc"] is None else f"{100 * training['acc']:.1f} "
        return f"{known}({training['agreement']:.3f})"

    lines = [
        "| digits | the first training | the best by agreement | ACC of all | that one steadied |",
        "| --- " * 5 + "|",
    ]
    for row in found["rows"]:
        trainings, kept = row["trainings"], row["trainings"][row["kept"]]
        scores = [100 * training["acc"] for training in trainings if training["acc"] is not None]
        all_of_them = f"{min(scores):.1f} to {max(scores):.1f}" if len(scores) == len(trainings) else ""
        cells = (row["digits"], shown(trainings[0]), shown(kept), all_of_them, shown(row["result"]))
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
        desk = Desk(device, run.seed, arguments.models, Reporter())
        rows.append({"digits": ", ".join(split.novel.class_names)} | measure(split, run, desk))
    found = {"rows": rows} | describe_run(device)
    write_atomically(arguments.out, json.dumps(found, indent=1).encode())
    print(table(found))


if __name__ == "__main__":
    main()
