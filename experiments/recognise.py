"""How often is a new picture called "none", rightly and wrongly?

    python experiments/recognise.py --out results/discover/recognise.json [--only whole,rules] [--draws 4]
    python experiments/recognise.py --table results/discover/recognise.json

whole   discover, then recognise new items of known classes, of discovered ones, and of classes that are neither;
        1, 3 or 5 items of each novel class with their number given, and 5 with the number estimated.
rules   rules that could decide about "none", compared on known classes alone: of the known classes of each draw some
        play novel and some play neither.

With `--name before` the part `whole` is kept under that name: to compare with an earlier version. Letters and digits
are compared by pixels, CIFAR images (`medi data fetch cifar10`, `cifar100`) by features of the default encoder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from common import Parser, markdown, mean_of, positive, read_json, run, some_of, write_json
from recognise_worlds import World, among_known, draw, score, worlds
from rejection_rules import RULES, compare_rules

from medi.bench.run import describe_run
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.errors import InputError
from medi.runtime.context import Context
from medi.runtime.files import make_folder

OBSERVATIONS = (1, 3, 5)
FIGURES = ("none of known", "none of novel", "none of neither")


def recognise(world: World, observations: int, seed: int, *, given: bool) -> dict[str, Any]:
    """One discovery, and what it recognises; the number of novel classes is given or estimated."""
    known, observed, new = draw(world, observations, seed)
    config = DiscoveryConfig(classes=world.novel if given else "auto", resamples=1)
    found, recogniser = discover_groups(known, observed.images, config, Context(seed=seed))
    truth = observed.labels.tolist()
    groups = [
        Counter(label for label, g in zip(truth, found.labels, strict=True) if g == number).most_common(1)[0][0]
        for number in range(found.count.k)
    ]
    answers = recogniser.recognise(new.images)
    return {
        "representation": found.representation,
        "groups": found.count.k,
        **score(world, answers, new.labels.tolist(), known.class_names, groups),
    }


def table(results: dict[str, Any]) -> str:
    """Markdown of everything measured: means and standard deviations over draws, in percent."""
    parts = []
    figures = (*FIGURES, "right of answered")
    for part in [name for name in ("before", "whole") if name in results]:
        rows = results[part]["rows"]
        lines = [["set", "items of a novel class", *figures]]
        for key in dict.fromkeys((row["set"], row["observations"], row["given"]) for row in rows):
            mine = [row for row in rows if (row["set"], row["observations"], row["given"]) == key]
            items = f"{key[1]}" if key[2] else f"{key[1]}, number estimated"
            lines.append([key[0], items, *(cell(mine, figure) for figure in figures)])
        parts.append(f"\n{part}\n\n{markdown(lines)}")
    if "rules" in results:
        rows = results["rules"]["rows"]
        lines = [["set", "rule", *FIGURES]]
        for name in [*dict.fromkeys(row["set"] for row in rows), "all"]:
            for rule in RULES:
                mine = [row for row in rows if name in (row["set"], "all") and row["rule"] == rule]
                lines.append([name, rule, *(cell(mine, figure) for figure in FIGURES)])
        parts.append(f"\nrules\n\n{markdown(lines)}")
        for rule in list(RULES)[1:]:
            parts.append(f"\n{rule} less distance: {', '.join(difference(rows, rule, figure) for figure in FIGURES)}\n")
    if not parts:
        raise InputError("these are no figures of recognise.py: give a file that --out wrote.")
    return "".join(parts)


def cell(rows: Sequence[dict[str, Any]], figure: str) -> str:
    """Mean and standard deviation in percent."""
    return mean_of([100 * row[figure] for row in rows if row[figure] is not None], digits=0)


def difference(rows: Sequence[dict[str, Any]], rule: str, figure: str) -> str:
    """Mean paired difference from the rule `distance`, and its standard error."""
    first, second = ([100 * row[figure] for row in rows if row["rule"] == name] for name in (rule, "distance"))
    apart = [a - b for a, b in zip(first, second, strict=True)]
    return f"{figure} {fmean(apart):+.1f} (standard error {stdev(apart) / len(apart) ** 0.5:.1f})"


def main(parser: Parser) -> None:
    """Draw, discover, recognise and count."""
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, help="print the tables of these results instead")
    parser.add_argument("--only", type=some_of(("whole", "rules")), default=["whole", "rules"])
    parser.add_argument("--name", default="whole", help="what the part `whole` is called in the results")
    parser.add_argument("--draws", type=positive, default=4)
    options = parser.parse_args()
    if options.table:
        print(table(read_json(options.table)), end="")
        return
    if not options.out:
        raise InputError("nowhere to write results: give --out FILE.json.")
    make_folder(options.out.parent)
    torch.set_num_threads(1)
    measured: dict[str, list[dict[str, Any]]] = {}
    for name, world in worlds().items():
        for seed in range(options.draws):
            for observations, given in [(n, True) for n in OBSERVATIONS] + [(OBSERVATIONS[-1], False)]:
                case = {"set": name, "seed": seed, "observations": observations, "given": given}
                if "whole" in options.only:
                    row = case | recognise(world, observations, seed, given=given)
                    measured.setdefault(options.name, []).append(row)
                if "rules" in options.only and given:
                    found = compare_rules(among_known(world, seed), observations, seed)
                    measured.setdefault("rules", []).extend(case | row for row in found)
            print(name, seed, flush=True)
    about = describe_run(torch.device("cpu")) | {"threads": 1, "draws": options.draws}
    results = read_json(options.out) if options.out.exists() else {}
    results |= {part: about | {"rows": rows} for part, rows in measured.items()}
    write_json(options.out, results)
    print(table(results), end="")


if __name__ == "__main__":
    run(main, __doc__)
