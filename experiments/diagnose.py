"""Is the verdict of a discovery right? Small problems whose outcome is known, and what is said of each.

    python experiments/diagnose.py --out results/diagnose/cpu.jsonl [--draws 6]
    python experiments/diagnose.py --table results/diagnose/cpu.jsonl

Worlds, all of plain vectors and with the number of classes not given:

- letters: known and novel letters of `glyphs`, 16 x 16 pixels; the known ones teach what the novel ones have in common;
- conv4: the same as features of a Conv-4 trained on other letters: good features, as an encoder gives them;
- shuffled: the letters' labels are shuffled, so that the known classes teach nothing;
- other rule: `rules`, known classes are colours, novel ones shapes: the known classes teach the wrong thing;
- far: known letters as Conv-4 features, and novel items that are pictures of another kind.

Writes one row a draw: the verdict, its figures, and the ACC and ARI that were reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from common import Parser, all_classes, half_size_pixels, markdown, of_rule, positive, read_rows, run
from torch import Tensor

from medi.bench.run import describe_run
from medi.core.errors import InputError
from medi.core.files import append_to_journal, make_folder
from medi.core.progress import Reporter
from medi.core.workplace import Workplace
from medi.data.benchmarks import load
from medi.data.imageset import ImageSet
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import discover_groups
from medi.methods.base import Plan
from medi.methods.mp import MP
from medi.methods.teacher import as_items
from medi.metrics import acc, ari
from medi.nn.context import Context

KNOWN, KNOWN_ITEMS = 20, 12
VERDICTS = ("trustworthy", "doubtful", "no help")
Encoder = Callable[[Tensor], Tensor]


def draw(images: ImageSet, classes: list[int], items: list[int], generator: torch.Generator) -> ImageSet:
    """Some classes of a set, with so many items each."""
    chosen = images.of_classes(classes)
    keep = []
    for label, size in enumerate(items):
        members = (chosen.labels == label).nonzero().squeeze(1)
        keep.append(members[torch.randperm(len(members), generator=generator)[:size]])
    index = torch.cat(keep)
    return ImageSet(chosen.images[index], chosen.labels[index], chosen.class_names)


def problem(known: ImageSet, novel: ImageSet, seed: int) -> tuple[ImageSet, ImageSet]:
    """Up to 20 known classes of 12 items, and 4 to 8 novel ones of 3 to 10."""
    g = torch.Generator().manual_seed(seed)
    few = min(KNOWN, known.n_classes)
    way = min(int(torch.randint(4, 9, (), generator=g)), novel.n_classes)
    sizes = torch.randint(3, 11, (way,), generator=g).tolist()
    old = draw(known, torch.randperm(known.n_classes, generator=g)[:few].tolist(), [KNOWN_ITEMS] * few, g)
    return old, draw(novel, torch.randperm(novel.n_classes, generator=g)[:way].tolist(), sizes, g)


def worlds() -> dict[str, tuple[ImageSet, ImageSet, Encoder]]:
    """Known and novel sets, and what makes vectors of them."""
    glyphs, rules = load("glyphs"), load("rules")
    half = glyphs.known.n_classes // 2
    first, second = glyphs.known.of_classes(range(half)), glyphs.known.of_classes(range(half, glyphs.known.n_classes))
    plan = Plan(way=20, observations=5, augmentation=glyphs.facts.augmentation, context=Context(reporter=Reporter()))
    conv4 = MP.preset("cpu").fit(first, plan).encode
    g = torch.Generator().manual_seed(0)
    shuffled = replace(second, labels=second.labels[torch.randperm(len(second), generator=g)])
    grey = replace(rules.novel, images=rules.novel.images.float().mean(1, keepdim=True).to(torch.uint8))
    both = all_classes(rules)
    return {
        "letters": (second, glyphs.novel, half_size_pixels),
        "conv4": (second, glyphs.novel, conv4),
        "shuffled": (shuffled, glyphs.novel, half_size_pixels),
        "other rule": (of_rule(both, "colour"), of_rule(both, "shape"), half_size_pixels),
        "far": (second, grey, conv4),
    }


def diagnose(known: ImageSet, novel: ImageSet, encode: Encoder, seed: int) -> dict[str, Any]:
    """One problem: what was said of the discovery, and what it reached."""
    old, new = (as_items(replace(part, images=encode(part.images))) for part in problem(known, novel, seed))
    found = discover_groups(old, new.values, DiscoveryConfig(), Workplace(seed=seed)).discovery
    diagnosis = found.diagnosis
    return {
        "seed": seed,
        "classes": new.n_classes,
        "items": len(new),
        "found": found.count.k,
        "certain": found.count.certain,
        "acc": acc(new.labels, found.labels),
        "ari": ari(new.labels, found.labels),
        "verdict": diagnosis.verdict,
        "expected": diagnosis.expected,
        "rehearsed": diagnosis.rehearsed,
        "representation": found.representation,
        "gain": diagnosis.gain,
        "distance": diagnosis.distance,
        "overlap": diagnosis.overlap,
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: how often each verdict was given and what was reached, a line a world."""
    lines = [["world", *VERDICTS, "ACC reached", "expected", "distance"]]
    for world in dict.fromkeys(row["world"] for row in rows):
        mine = [row for row in rows if row["world"] == world]
        cells = [str(sum(row["verdict"] == verdict for row in mine)) for verdict in VERDICTS]
        for name in ("acc", "expected", "distance"):
            values = [row[name] for row in mine if row[name] is not None]
            cells.append(f"{min(values):.2f} to {max(values):.2f}" if values else "")
        lines.append([world, *cells])
    return markdown(lines)


def main(parser: Parser) -> None:
    """Draw, discover, compare."""
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, help="print the table of these results instead")
    parser.add_argument("--draws", type=positive, default=6)
    options = parser.parse_args()
    if options.table:
        print(table(read_rows(options.table, "world", "verdict", "acc", "expected", "distance")), end="")
        return
    if not options.out:
        raise InputError("nowhere to write results: give --out FILE.jsonl.")
    make_folder(options.out.parent)
    options.out.unlink(missing_ok=True)
    problems = worlds()
    for seed in range(options.draws):
        for world, parts in problems.items():
            row = {"world": world} | diagnose(*parts, seed)
            append_to_journal(options.out, row | describe_run(torch.device("cpu")))
            print({name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()})


if __name__ == "__main__":
    run(main, __doc__)
