"""Are known photos named rightly, as many as `medi assign` would name, and are groups that are called tight pure?

    python benchmarks/naming.py --sets glyphs,cifar100,omniglot,folder:FLOWERS,features:CARS.npz --out FILE.json

The known classes of each set are drawn anew as known and as novel ones, and pools mixed of them: 10 novel classes of
five items (5 where classes are few), as many known ones and up to ten one-offs. Prints and writes, of each draw, right
lines as rehearsals choose to name and with the place in the posterior alone; known items named rightly and false names;
how many `assign` would name rightly with as many false names, each item by itself against the same model; and groups
that are called tight, and those of them whose items are all of one class.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from discover_draws import Draw, Source, draw, encoded, glyphs
from script import Parser, positive, run, write_json
from threadpoolctl import threadpool_limits

from medi.bench.datasets import load_dataset
from medi.bench.run import describe_run
from medi.core.progress import Reporter
from medi.core.workplace import Workplace
from medi.discover.config import DiscoveryConfig
from medi.discover.learning import learn
from medi.discover.pipeline import discover_with
from medi.grouping.by_posterior import PosteriorGrouping
from medi.grouping.copies import in_order
from medi.grouping.engine import known_label
from medi.grouping.lines import right_lines
from medi.grouping.moves import Places
from medi.grouping.naming import BY_PLACE
from medi.methods.teacher import as_items

FIRST_DRAW = 100
CONFIG = DiscoveryConfig(only_novel=False)


def known_of(name: str, reporter: Reporter) -> Source:
    """The known classes of a set, to be drawn from as known and as novel."""
    if name in ("cifar100", "omniglot"):
        source = encoded(name, 40, 1, reporter)
        values, labels = source.known, source.known_labels
    elif name == "glyphs":
        values, labels = glyphs().known, glyphs().known_labels
    else:
        items = as_items(load_dataset(name, as_people_do=True).known)
        values, labels = items.values, items.labels
    return Source(values, labels, values, labels, shared=True)


def compare(problem: Draw, seed: int) -> dict[str, Any]:
    """Right lines and names of a pool, and what `assign` would name."""
    learnt = learn(in_order(problem.known), problem.pool, CONFIG, Workplace(seed=seed))
    outcome = discover_with(learnt, problem.pool, CONFIG)
    grouping, labels = outcome.pool.grouping, np.array(outcome.discovery.labels)
    assert isinstance(grouping, PosteriorGrouping)
    truth = problem.truth[np.unique(outcome.pool.place, return_index=True)[1]]
    tight = [number for number, group in enumerate(outcome.discovery.groups) if group.verdict == "tight"]
    placed = PosteriorGrouping.of(
        grouping.points, grouping.copies, grouping.ask, grouping.known, replace(grouping.rehearsed, naming=BY_PLACE)
    )
    known = truth <= known_label(0)
    named, right = grouping.labels <= known_label(0), grouping.labels == truth
    by_itself = Places.of(grouping.points[:0], np.zeros(0, np.int64), grouping.known)
    scores = by_itself.all_scores(grouping.points, grouping.rehearsed.model)
    lead, best = scores[:, :-1].max(1) - scores[:, -1], known_label(0) - scores[:, :-1].argmax(1)
    false = named & ~right
    bound = np.sort(np.append(lead[best != truth], np.inf))[::-1][int(false.sum())]
    return {
        "right": float(right_lines(truth, grouping.labels).mean()),
        "right by place": float(right_lines(truth, placed.labels).mean()),
        "naming": asdict(grouping.rehearsed.naming),
        "known named": float((named & right).sum() / known.sum()),
        "false names": float(false.sum() / len(truth)),
        "known named by assign": float(((lead > bound) & (best == truth)).sum() / known.sum()),
        "tight": len(tight),
        "tight and pure": sum(len(np.unique(problem.truth[labels == group])) == 1 for group in tight),
    }


def main(parser: Parser) -> None:
    """Draw, rehearse, compare."""
    parser.add_argument("--sets", required=True, help="names of sets, with commas")
    parser.add_argument("--draws", type=positive, default=10)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    figures: dict[str, Any] = {"run": describe_run(torch.device("cpu"))}
    with threadpool_limits(1):
        for name in options.sets.split(","):
            source = known_of(name, Reporter())
            groups = 10 if len(np.unique(source.known_labels)) >= 30 else 5
            rows = [
                compare(draw(source, seed, groups, unequal=False, mixed=True, largest=5), seed)
                for seed in range(FIRST_DRAW, FIRST_DRAW + options.draws)
            ]
            figures[Path(name).stem.removeprefix("folder:").removeprefix("features:")] = rows
            means = {
                key: np.mean([row[key] for row in rows]) for key, value in rows[0].items() if isinstance(value, float)
            }
            pure, tight = (sum(row[key] for row in rows) for key in ("tight and pure", "tight"))
            others = sum(row["naming"]["own"] > 0 for row in rows)
            shares = (f"{key} {100 * value:.1f}" for key, value in means.items())
            print(
                f"{name}: {others} of {len(rows)} draws not by place;",
                *shares,
                f"{pure} of {tight} tight groups pure",
                flush=True,
            )
    write_json(options.out, figures)


if __name__ == "__main__":
    run(main, __doc__)
