"""Is the verdict right? Small problems of discovery whose outcome is known, and what is said of each.

    python benchmarks/diagnose.py --out results/diagnose/cpu.jsonl [--draws 6]
    python benchmarks/diagnose.py --table results/diagnose/cpu.jsonl

Worlds, all of plain vectors and with the number of classes not given:

- letters: known and novel letters of `glyphs`, 16 x 16 pixels; the known ones teach what the novel ones share;
- conv4: the same, as features of a Conv-4 trained on other letters: good features, as an encoder gives them;
- shuffled: the letters' known classes are random heaps, which teach nothing;
- other rule: `rules`, known classes are colours, novel ones shapes: what is taught is the wrong thing;
- far: known letters of Conv-4 features, novel items that are pictures of another kind altogether.

One line a draw: the verdict, its figures, and the ACC and ARI that were really reached.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from medi.bench.run import describe_run
from medi.data.augment import to_float
from medi.data.benchmarks import load
from medi.data.imageset import ImageSet
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.methods.base import Plan
from medi.methods.mp import MP
from medi.metrics import acc, ari
from medi.runtime.context import Context
from medi.runtime.files import append_to_journal, read_journal
from medi.runtime.progress import Reporter

KNOWN, KNOWN_ITEMS = 20, 12
Encoder = Callable[[Tensor], Tensor]


def pixels(images: Tensor) -> Tensor:
    """Halved in size, as rows."""
    return avg_pool2d(to_float(images), 2).flatten(1)


def draw(pool: ImageSet, classes: list[int], items: list[int], generator: torch.Generator) -> ImageSet:
    """Some classes of a set, with so many items each."""
    chosen = pool.of_classes(classes)
    keep = []
    for label, size in enumerate(items):
        members = (chosen.labels == label).nonzero().squeeze(1)
        keep.append(members[torch.randperm(len(members), generator=generator)[:size]])
    index = torch.cat(keep)
    return ImageSet(chosen.images[index], chosen.labels[index], chosen.class_names)


def problem(known: ImageSet, novel: ImageSet, seed: int) -> tuple[ImageSet, ImageSet]:
    """Up to 20 known classes of 12, and 4 to 8 novel ones of 3 to 10 items."""
    g = torch.Generator().manual_seed(seed)
    few = min(KNOWN, known.n_classes)
    way = min(int(torch.randint(4, 9, (), generator=g)), novel.n_classes)
    sizes = torch.randint(3, 11, (way,), generator=g).tolist()
    old = draw(known, torch.randperm(known.n_classes, generator=g)[:few].tolist(), [KNOWN_ITEMS] * few, g)
    return old, draw(novel, torch.randperm(novel.n_classes, generator=g)[:way].tolist(), sizes, g)


def of_rule(pool: ImageSet, rule: str) -> ImageSet:
    """The classes of one rule."""
    return pool.of_classes([c for c, name in enumerate(pool.class_names) if name.startswith(rule)])


def worlds() -> dict[str, tuple[ImageSet, ImageSet, Encoder]]:
    """Known and novel sets, and what makes vectors of them."""
    glyphs, rules = load("glyphs"), load("rules")
    half = glyphs.known.n_classes // 2
    first, second = glyphs.known.of_classes(range(half)), glyphs.known.of_classes(range(half, glyphs.known.n_classes))
    plan = Plan(way=20, observations=5, augmentation=glyphs.facts.augmentation, context=Context(reporter=Reporter()))
    conv4 = MP(MP.preset("cpu")).fit(first, plan).encode
    g = torch.Generator().manual_seed(0)
    heaps = replace(second, labels=second.labels[torch.randperm(len(second), generator=g)])
    grey = replace(rules.novel, images=rules.novel.images.float().mean(1, keepdim=True).to(torch.uint8))
    everything = ImageSet(
        torch.cat([rules.known.images, rules.novel.images]),
        torch.cat([rules.known.labels, rules.novel.labels + rules.known.n_classes]),
        rules.known.class_names + rules.novel.class_names,
    )
    return {
        "letters": (second, glyphs.novel, pixels),
        "conv4": (second, glyphs.novel, conv4),
        "shuffled": (heaps, glyphs.novel, pixels),
        "other rule": (of_rule(everything, "colour"), of_rule(everything, "shape"), pixels),
        "far": (second, grey, conv4),
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: verdicts and the ACC really reached, a row a world."""
    verdicts = ("trustworthy", "doubtful", "no help")
    lines = [f"| world | {' | '.join(verdicts)} | ACC reached | distance | stability |", "| --- " * 7 + "|"]
    for world in dict.fromkeys(row["world"] for row in rows):
        mine = [row for row in rows if row["world"] == world]
        cells = [str(sum(row["verdict"] == verdict for row in mine)) for verdict in verdicts]
        for name in ("acc", "distance", "stability"):
            values = [row[name] for row in mine if row[name] is not None]
            cells.append(f"{min(values):.2f} to {max(values):.2f}")
        lines.append(f"| {world} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Draw, discover, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, help="print the table of these results instead")
    parser.add_argument("--draws", type=int, default=6)
    arguments = parser.parse_args()
    if arguments.table or not arguments.out:
        if not arguments.table:
            parser.error("--out is needed to measure")
        print(table(read_journal(arguments.table)))
        return
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.unlink(missing_ok=True)
    problems = worlds()
    for seed in range(arguments.draws):
        for world, (known, novel, encode) in problems.items():
            old, new = problem(known, novel, seed)
            old = replace(old, images=encode(old.images).clone())
            found, _ = discover_groups(old, encode(new.images).clone(), DiscoveryConfig(), Context(seed=seed))
            diagnosis = found.diagnosis
            row = {
                "world": world,
                "seed": seed,
                "classes": new.n_classes,
                "items": len(new),
                "found": found.count.k,
                "certain": found.count.certain,
                "acc": acc(new.labels, found.labels),
                "ari": ari(new.labels, found.labels),
                "verdict": diagnosis.verdict,
                "held_out_acc": found.representation_scores[found.representation],
                "representation": found.representation,
                "gain": diagnosis.gain,
                "distance": diagnosis.distance,
                "stability": diagnosis.stability,
                "overlap": diagnosis.overlap,
            }
            append_to_journal(arguments.out, row | describe_run(torch.device("cpu")))
            print(
                {name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()},
                flush=True,
            )


if __name__ == "__main__":
    main()
