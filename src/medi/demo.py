"""The main job on the embedded set: learn from known letters, discover letters of scripts never seen."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from medi.bench.grid import REGIMES, Run, expand
from medi.bench.questions import draw_questions
from medi.bench.run import run_grid, train_learner
from medi.data.benchmarks import Benchmark, load
from medi.metrics import best_map
from medi.report.contact_sheet import Strip, Thumbnail, contact_sheet
from medi.runtime.context import Context
from medi.runtime.files import make_folder
from medi.runtime.progress import Reporter

DEMO_EPISODES = 300
PICTURE = "discovered.png"
SHOWN_OF_A_GROUP = 8
"""Recognised drawings shown of each group."""
COMPARED_METHODS = {"kmeans": "k-means on pixels", "mp": "MP (meta-trained)"}


def run_demo(out: Path) -> None:
    """Train, score, draw; can be repeated, and does the whole work anew each time."""
    start = monotonic()
    console, reporter = Console(), Reporter()
    device = torch.device("cpu")
    make_folder(out)
    benchmark = load("glyphs", device)
    known, novel = benchmark.known.n_classes, benchmark.novel.n_classes
    way, shots = benchmark.facts.way, 5
    console.print(
        f"Known: {known} Latin and Cyrillic letters, with labels.\n"
        f"Never seen: {novel} Greek, Armenian and Georgian ones.\n"
        f"Task: {shots} unlabelled drawings of each of {way} unseen letters in one heap. Which belong together?\n",
        highlight=False,
    )
    runs = expand(
        datasets=["glyphs"],
        methods=list(COMPARED_METHODS),
        samplers={"kmeans": None, "mp": "uniform"},
        config="default",
        way=way,
        observations=[shots],
        regimes=REGIMES,
        score="episode",
        seeds=[0],
        balance="on",
    )
    with TemporaryDirectory() as temporary:
        work = Path(temporary)
        rows = run_grid(runs, work, episodes=DEMO_EPISODES, device=device, resume=True, reporter=reporter)
        _draw(runs[-1], benchmark, Context(device, 0, work / "models", reporter), out / PICTURE)
    acc = {(row["method"], row["regime"]): row["acc"] for row in rows}
    table = Table("", "honest", "transductive", "grouped", "chance", title="Accuracy on unseen letters, percent")
    for method, title in COMPARED_METHODS.items():
        table.add_row(
            title, *(f"{100 * acc[method, regime]:.1f}" for regime in REGIMES), f"{100 * rows[0]['chance']:.1f}"
        )
    console.print(table)
    console.print(
        f"Mean of {DEMO_EPISODES} heaps. honest: no label of an unseen letter, new drawings recognised one by one; "
        "transductive: new drawings seen together; grouped: an oracle that sorts the heap by its labels first. "
        "Both are told that every letter has equally many drawings.\n",
        highlight=False,
    )
    console.print(
        f"The picture of one heap: {out / PICTURE} ({monotonic() - start:.0f} s in all). "
        "Next: `medi bench run --help`.",
        highlight=False,
        soft_wrap=True,
    )


def _draw(run: Run, benchmark: Benchmark, context: Context, path: Path) -> None:
    """Discover in one heap and draw its groups; labels only mark the mistakes."""
    questions = draw_questions(benchmark, run, episodes=1)
    learner = train_learner(run, benchmark, context)
    encoded = learner.encode(questions.images)
    clustering = learner.discover(encoded, questions.bag, run.way, context.generator(stream=2), equal_sizes=True)
    assigned = clustering.assign(encoded, questions.query)
    truth = torch.cat([questions.groups, questions.labels], 1)[0]
    found = torch.cat([clustering.labels, assigned.labels], 1)[0]
    class_of = torch.as_tensor(best_map(truth.numpy(), found.numpy(), run.way))

    def thumbnails(items: Tensor, labels: Tensor, group: int) -> list[Thumbnail]:
        return [
            Thumbnail(questions.images[item].numpy(), bool(label != class_of[group]))
            for item, label in zip(items.tolist(), labels, strict=True)
        ]

    strips = []
    for group in range(run.way):
        mine, new = clustering.labels[0] == group, assigned.labels[0] == group
        strips.append(
            Strip(
                f"group {group + 1}",
                f"{int(mine.sum())} drawings",
                thumbnails(questions.bag[0, mine], questions.groups[0, mine], group),
                thumbnails(questions.query[0, new], questions.labels[0, new], group)[:SHOWN_OF_A_GROUP],
            )
        )
    share = float((truth[questions.bag.shape[1] :] == class_of[found][questions.bag.shape[1] :]).float().mean())
    contact_sheet(
        strips,
        f"{run.way} letters discovered from {questions.bag.shape[1]} unlabelled drawings",
        f"Left of the line: the unlabelled heap, as grouped. Right: new drawings recognised afterwards, "
        f"{100 * share:.0f} % rightly. Red: in the wrong group.",
    ).save(path)
