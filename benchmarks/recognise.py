"""How often is a new picture called "none", rightly and wrongly?

    python benchmarks/recognise.py --out results/discover/recognise.json [--only whole,rules] [--draws 4]
    python benchmarks/recognise.py --table results/discover/recognise.json

whole   discover, then recognise new items of known classes, of discovered ones, and of classes that are neither;
        1, 3 or 5 items of each novel class, their number given, and 5 with the number estimated.
rules   what could decide about "none", compared on known classes alone: of the known classes of each draw some play
        novel and some play neither, and all else is done as if the others were all there is.

`--name before` keeps the part `whole` under that name: so the same was measured on an earlier version. Letters and
digits are compared by pixels, CIFAR images (`medi data fetch cifar10`, `cifar100`) by features of the default encoder.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn.functional import avg_pool2d

from medi.bench.run import describe_run
from medi.cluster.groups import group_means
from medi.data.augment import to_float
from medi.data.benchmarks import load
from medi.data.imageset import ImageSet
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.discovery.grouping import group
from medi.discovery.held_out import Choice, choose, fit, make_splits
from medi.discovery.recogniser import Recognised
from medi.discovery.representations import Representation, class_means
from medi.photos.cache import PhotoCache
from medi.photos.encode_folder import read_photos
from medi.photos.encoders import DEFAULT, load_encoder
from medi.runtime.context import Context
from medi.runtime.progress import Silent

OBSERVATIONS = (1, 3, 5)
MISSED = 0.05
FIGURES = ("none of known", "none of novel", "none of neither")


@dataclass(frozen=True)
class World:
    """Vectors of many classes, and how many of them play which part.

    Attributes:
        pool: Vectors of all classes.
        known: Known classes, and the items of each that are learnt from.
        novel: Classes to be discovered.
        neither: Classes that nobody has seen.
        new: Further items of every class, which are to be recognised.
    """

    pool: ImageSet
    known: tuple[int, int]
    novel: int
    neither: int
    new: int


def worlds() -> dict[str, World]:
    """The sets measured on."""
    return {
        "digits": World(digits(), (6, 40), 2, 2, 40),
        "letters": World(letters(), (20, 12), 5, 10, 8),
        "CIFAR-10": World(photos("cifar10", 10, 80), (6, 40), 2, 2, 35),
        "CIFAR-100": World(photos("cifar100", 40, 40), (20, 25), 5, 15, 15),
    }


def digits() -> ImageSet:
    """scikit-learn's handwritten digits, 8 x 8 pixels."""
    data = load_digits()
    return ImageSet(
        torch.from_numpy(data.data).float(), torch.from_numpy(data.target).long(), tuple(map(str, range(10)))
    )


def letters() -> ImageSet:
    """Generated letters, 16 x 16 pixels."""
    glyphs = load("glyphs")
    both = ImageSet(
        torch.cat([glyphs.known.images, glyphs.novel.images]),
        torch.cat([glyphs.known.labels, glyphs.novel.labels + glyphs.known.n_classes]),
        glyphs.known.class_names + glyphs.novel.class_names,
    )
    return replace(both, images=avg_pool2d(to_float(both.images), 2).flatten(1))


def photos(name: str, classes: int, each: int) -> ImageSet:
    """Features of the default encoder of the first photos of some classes, drawn once, read as `medi` reads files."""
    benchmark = load(name)
    pool = ImageSet(
        torch.cat([benchmark.known.images, benchmark.novel.images]),
        torch.cat([benchmark.known.labels, benchmark.novel.labels + benchmark.known.n_classes]),
        benchmark.known.class_names + benchmark.novel.class_names,
    )
    drawn = torch.randperm(pool.n_classes, generator=torch.Generator().manual_seed(0))[:classes]
    pool = pool.of_classes(drawn.tolist())
    encoder = load_encoder(DEFAULT, torch.device("cpu"))
    paths, labels = [], []
    with TemporaryDirectory() as folder:
        for label in range(classes):
            for index in (pool.labels == label).nonzero().squeeze(1)[:each].tolist():
                paths.append(f"{index}.png")
                labels.append(label)
                Image.fromarray(pool.images[index].permute(1, 2, 0).numpy()).save(Path(folder) / paths[-1])
        cache = PhotoCache(encoder.identity, Silent())
        read = read_photos(Path(folder), paths, encoder, cache, Silent(), title="")
    return ImageSet(read.arrays, torch.tensor(labels), pool.class_names)


def draw(world: World, observations: int, seed: int) -> tuple[ImageSet, ImageSet, ImageSet]:
    """Known items, observations of novel classes, and new items, all under the pool's class numbers.

    Of the pool's classes, in a random order, the first are known, the next novel, the last neither.
    """
    g = torch.Generator().manual_seed(seed)
    order = torch.randperm(world.pool.n_classes, generator=g)[: world.known[0] + world.novel + world.neither].tolist()
    parts: tuple[list[Tensor], ...] = ([], [], [])
    for place, c in enumerate(order):
        members = (world.pool.labels == c).nonzero().squeeze(1)
        members = members[torch.randperm(len(members), generator=g)]
        parts[2].append(members[: world.new])
        if place < world.known[0]:
            parts[0].append(members[world.new :][: world.known[1]])
        elif place < world.known[0] + world.novel:
            parts[1].append(members[world.new :][:observations])
    pool = world.pool.of_classes(order)
    old = {c: i for i, c in enumerate(order)}
    sets = []
    for part in parts:
        index = torch.cat(part)
        labels = torch.tensor([old[c] for c in world.pool.labels[index].tolist()])
        sets.append(ImageSet(world.pool.images[index], labels, pool.class_names))
    known = ImageSet(sets[0].images, sets[0].labels, pool.class_names[: world.known[0]])
    return known, sets[1], sets[2]


def score(
    world: World, answers: Sequence[Recognised], truth: Sequence[int], names: Sequence[str], groups: Sequence[int]
) -> dict[str, float | None]:
    """Shares of the new items: called none, by what they are, and right among those answered."""
    known, novel = world.known[0], world.known[0] + world.novel
    none: dict[str, list[bool]] = {"known": [], "novel": [], "neither": []}
    right = []
    for answer, c in zip(answers, truth, strict=True):
        kind = "known" if c < known else "novel" if c < novel else "neither"
        none[kind].append(answer.kind == "none")
        if kind != "neither" and answer.kind != "none":
            said = groups[int(answer.label)] if answer.kind == "novel" else names.index(answer.label)
            right.append(said == c)
    return {f"none of {kind}": sum(values) / len(values) for kind, values in none.items()} | {
        "right of answered": sum(right) / len(right) if right else None
    }


def whole(world: World, observations: int, seed: int, *, given: bool) -> dict[str, Any]:
    """One discovery, and what it recognises."""
    known, observed, new = draw(world, observations, seed)
    settings = DiscoveryConfig(classes=world.novel if given else "auto", resamples=1)
    found, recogniser = discover_groups(known, observed.images, settings, Context(seed=seed))
    truth = observed.labels.tolist()
    groups = [
        Counter(c for c, g in zip(truth, found.labels, strict=True) if g == number).most_common(1)[0][0]
        for number in range(found.count.k)
    ]
    answers = recogniser.recognise(new.images)
    return {
        "representation": found.representation,
        "groups": found.count.k,
        **score(world, answers, new.labels.tolist(), known.class_names, groups),
    }


def among_known(name: str, world: World, seed: int) -> World:
    """The known classes of a draw as a world of their own."""
    known, _, _ = draw(world, 1, seed)
    if world.known[0] < 10:
        return World(known, (4, 25), 1, 1, 15)
    learn = world.known[1] * 6 // 10
    return World(known, (12, learn), 4, 4, world.known[1] - learn)


# A rule says how little an item belongs, from corrected squared distances (n, c) to all means, infinite ones not there;
# it may learn that from the distances of members and of strangers.
Strange = Callable[[Tensor], Tensor]
Rule = Callable[[Tensor, Tensor], Strange]


def by_distance(_members: Tensor, _strangers: Tensor) -> Strange:
    """The distance to the nearest mean."""
    return lambda distances: distances.amin(1).clamp(min=1e-12).log()


def by_others(_members: Tensor, _strangers: Tensor) -> Strange:
    """That, times what it is of the mean distance to the next five."""
    return lambda distances: nearest_and_others(distances) @ torch.tensor([2.0, -1.0], dtype=torch.float64)


def by_likelihood(members: Tensor, strangers: Tensor) -> Strange:
    """The likelihood ratio of stranger and member, log-linear in the nearest distance and in that of the others."""
    facts = torch.cat([nearest_and_others(members, 999), nearest_and_others(strangers, 999)]).numpy()
    answers = np.repeat([0, 1], [len(members), len(strangers)])
    model = LogisticRegression(C=10.0, class_weight="balanced").fit(facts, answers)
    return lambda distances: torch.from_numpy(model.decision_function(nearest_and_others(distances, 999).numpy()))


def nearest_and_others(distances: Tensor, others: int = 5) -> Tensor:
    """Logarithms (n, 2) of the nearest distance and of the mean of the next few."""
    ordered = distances.topk(min(others + 1, distances.shape[1]), dim=1, largest=False).values
    there = ordered[:, 1:].isfinite()
    rest = torch.where(there, ordered[:, 1:], 0).sum(1) / there.sum(1).clamp(min=1)
    return torch.stack([ordered[:, 0], rest], 1).clamp(min=1e-12).log()


RULES: dict[str, Rule] = {"distance": by_distance, "and others": by_others, "likelihood ratio": by_likelihood}


@dataclass(frozen=True)
class Evidence:
    """Corrected squared distances (…, h + c) to groups and known classes.

    Attributes:
        members: Of further items of the grouped classes.
        strangers: The same with the groups of their own class struck out.
        known: Of further items of the known classes.
    """

    members: Tensor
    strangers: Tensor
    known: Tensor


def evidence(choice: Choice, observations: int) -> Iterable[Evidence]:
    """What held-out known classes show when a handful of each is grouped."""
    from medi.discovery.rejection import DRAWS, corrected_distances, handful

    generator = torch.Generator().manual_seed(0)
    for split in choice.splits:
        represent: Representation = split.candidates.all[choice.representation]
        held, labels, h = represent(split.held_out.images), split.held_out.labels, split.held_out.n_classes
        back, classes = represent(split.kept_back.images), class_means(split.learnt_from, represent)
        counts = torch.bincount(split.learnt_from.labels)
        for _ in range(DRAWS):
            has = torch.zeros(h, h + len(counts), dtype=torch.bool)

            def grouping(points: Tensor, own: Tensor, has: Tensor = has) -> Any:
                groups = group(points, len(has), choice.clustering, torch.Generator().manual_seed(0))
                has[own, torch.from_numpy(groups)] = True
                return groups

            groups, sizes, asked = handful(held, labels, observations, grouping, generator)
            centres, behind = torch.cat([groups, classes]), torch.cat([sizes, counts])
            members = corrected_distances(held[asked], centres, behind)
            strangers = members.masked_fill(has[labels[asked]], torch.inf)
            yield Evidence(members, strangers, corrected_distances(back, centres, behind))


def padded(parts: Sequence[Tensor]) -> Tensor:
    """Distances to differently many means below one another; those that are not there are infinite."""
    width = max(part.shape[1] for part in parts)
    return torch.cat([torch.nn.functional.pad(part, (0, width - part.shape[1]), value=torch.inf) for part in parts])


def rules(world: World, observations: int, seed: int) -> list[dict[str, Any]]:
    """Each rule, with its limits where it gives up `MISSED` of the members, on items of the same discovery."""
    from medi.discovery.rejection import corrected_distances

    known, observed, new = draw(world, observations, seed)
    settings, context = DiscoveryConfig(classes=world.novel, method="kmeans"), Context(seed=seed)
    choice = choose(make_splits(known, settings, context), context)
    represent = fit(choice.representation, known, settings, context)
    points, k = represent(observed.images), world.novel
    labels = torch.from_numpy(group(points, k, choice.clustering, torch.Generator().manual_seed(seed)))
    groups = group_means(points, labels, k)
    centres = torch.cat([groups, class_means(known, represent)])
    distances = corrected_distances(
        represent(new.images), centres, torch.cat([torch.bincount(labels), torch.bincount(known.labels)])
    )
    parts = list(evidence(choice, observations))
    strangers = padded([part.strangers for part in parts])
    rows = []
    for name, rule in RULES.items():
        none = torch.zeros(len(distances), dtype=torch.bool)
        for members, mine in (
            (padded([part.members for part in parts]), distances.argmin(1) < k),
            (padded([part.known for part in parts]), distances.argmin(1) >= k),
        ):
            strange = rule(members, strangers)
            none |= mine & (strange(distances) > strange(members).quantile(1 - MISSED))
        answers = [Recognised("none" if is_none else "novel", "0", 1.0) for is_none in none.tolist()]
        row = score(world, answers, new.labels.tolist(), known.class_names, range(k))
        rows.append({"rule": name} | {figure: row[figure] for figure in FIGURES})
    return rows


def table(results: dict[str, Any]) -> str:
    """Markdown of everything measured: means and standard deviations over draws, in per cent."""
    lines = []
    figures = (*FIGURES, "right of answered")
    for part in [name for name in ("before", "whole") if name in results]:
        lines += [f"\n{part}\n", "| set | items of a novel class | " + " | ".join(figures) + " |", "| --- " * 6 + "|"]
        rows = results[part]["rows"]
        for key in dict.fromkeys((row["set"], row["observations"], row["given"]) for row in rows):
            mine = [row for row in rows if (row["set"], row["observations"], row["given"]) == key]
            said = f"{key[1]}" if key[2] else f"{key[1]}, number estimated"
            lines.append(f"| {key[0]} | {said} | " + " | ".join(cell(mine, figure) for figure in figures) + " |")
    if "rules" in results:
        lines += ["\nrules\n", "| set | rule | " + " | ".join(FIGURES) + " |", "| --- " * 5 + "|"]
        rows = results["rules"]["rows"]
        for name in [*dict.fromkeys(row["set"] for row in rows), "all"]:
            for rule in RULES:
                mine = [row for row in rows if name in (row["set"], "all") and row["rule"] == rule]
                lines.append(f"| {name} | {rule} | " + " | ".join(cell(mine, figure) for figure in FIGURES) + " |")
        for rule in list(RULES)[1:]:
            lines.append(f"\n{rule} less distance: {', '.join(difference(rows, rule, figure) for figure in FIGURES)}")
    return "\n".join(lines) + "\n"


def cell(rows: Sequence[dict[str, Any]], figure: str) -> str:
    """Mean and standard deviation in per cent."""
    values = [100 * row[figure] for row in rows if row[figure] is not None]
    return f"{fmean(values):.0f} ± {stdev(values):.0f}"


def difference(rows: Sequence[dict[str, Any]], rule: str, figure: str) -> str:
    """Mean paired difference and its standard error."""
    first, second = ([100 * row[figure] for row in rows if row["rule"] == name] for name in (rule, "distance"))
    apart = [a - b for a, b in zip(first, second, strict=True)]
    return f"{figure} {fmean(apart):+.1f} (standard error {stdev(apart) / len(apart) ** 0.5:.1f})"


def main() -> None:
    """Draw, discover, recognise, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, help="print the tables of these results instead")
    parser.add_argument("--only", default="whole,rules")
    parser.add_argument("--name", default="whole", help="what the part `whole` is called in the results")
    parser.add_argument("--draws", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.table or not arguments.out:
        if not arguments.table:
            parser.error("--out is needed to measure")
        print(table(json.loads(arguments.table.read_text())))
        return
    torch.set_num_threads(1)
    places: dict[str, list[dict[str, Any]]] = {}
    for name, world in worlds().items():
        for seed in range(arguments.draws):
            for observations, given in [(n, True) for n in OBSERVATIONS] + [(OBSERVATIONS[-1], False)]:
                case = {"set": name, "seed": seed, "observations": observations, "given": given}
                if "whole" in arguments.only:
                    row = case | whole(world, observations, seed, given=given)
                    places.setdefault(arguments.name, []).append(row)
                if "rules" in arguments.only and given:
                    found = rules(among_known(name, world, seed), observations, seed)
                    places.setdefault("rules", []).extend(case | row for row in found)
            print(name, seed, flush=True)
    results = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    run = describe_run(torch.device("cpu")) | {"threads": 1, "draws": arguments.draws}
    results |= {part: run | {"rows": rows} for part, rows in places.items()}
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
