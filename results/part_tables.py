"""What a part of a method, or of what it is told, is worth: ACC with it and without, paired by seed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tables import NOT_YET, Cells, Find, Rows, by_setting, chance, find_line, markdown, spread

from medi.bench.grid import Run
from medi.bench.published import published
from medi.bench.tables import summarise
from medi.data.facts import BENCHMARKS
from medi.registry import COMPARED_METHODS, title_of

sys.path.append(str(Path(__file__).resolve().parents[1]))  # a script sees its own folder alone
from paper.paired import paired_difference, sampler_gains


def parts(rows: Rows, method: str) -> str:
    """A line for each of the settings in the order in which they were run; the first is the whole.

    Of the others it has the difference to the whole, paired by seed.
    """
    if not rows:
        return NOT_YET
    whole, *others = dict.fromkeys(row["config"] for row in rows)
    table: list[Cells] = [{"": name.removeprefix("small-").replace("-", " ")} for name in ("chance", whole, *others)]
    for dataset in [name for name in BENCHMARKS if any(row["dataset"] == name for row in rows)]:
        title = BENCHMARKS[dataset].title
        mine = [row for row in rows if row["dataset"] == dataset]
        of_whole, *of_others = ([row for row in mine if row["config"] == name] for name in (whole, *others))
        line = find_line(summarise(mine), dataset, 5, None, method, config=whole)
        differences = [paired_difference(one, of_whole) for one in of_others]
        column = [chance(line), spread(line), *(one.points() if one else "" for one in differences)]
        for cells, cell in zip(table, column, strict=True):
            cells[title] = cell
    return markdown(table)


def cata(rows: Rows) -> str:
    """MP and MM with uniform tasks and with CATA's, what CATA's add, and what they add in the paper."""
    gains = sampler_gains(rows)

    def columns(find: Find) -> Cells:
        cells = {"chance": chance(find("mp"))}
        for method in ("mp", "mm"):
            uniform, with_cata = (find(method, sampler=sampler) for sampler in ("uniform", "cata"))
            gain = gains.get(with_cata.run) if with_cata else None
            of_paper = [published(line.run) for line in (with_cata, uniform) if line]
            added = [one.mean for one in of_paper if one]
            cells |= {
                f"{title_of(method)}, uniform": spread(uniform),
                f"{title_of(method)}, cata": spread(with_cata),
                f"{title_of(method)}: added": gain.points() if gain else "",
                f"{title_of(method)}: added in the paper": f"{100 * (added[0] - added[1]):+.1f}" if added[1:] else "",
            }
        return cells

    return by_setting(rows, columns)


def told(rows: Rows) -> str:
    """What "all classes are equally large" adds to each method, pooled, tasks by CATA.

    * stands beside what another version of a method had when it was told nothing.
    """
    kinds: dict[Run, dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        run = Run.of_row(row)
        kinds.setdefault(replace(run, seed=0), {})[run.seed] = row

    def columns(find: Find) -> Cells:
        cells = Cells()
        for method in COMPARED_METHODS:
            line = find(method, sampler="cata", score="pooled", balance=True)
            with_it = kinds[line.run] if line else {}
            without = kinds.get(replace(line.run, balance=False), {}) if line else {}
            gain = paired_difference(with_it.values(), without.values())
            pairs = [(row, without[seed]) for seed, row in with_it.items() if seed in without]
            other = any(row.get("method_version") != untold.get("method_version") for row, untold in pairs)
            cells[title_of(method)] = gain.points() + " *" * other if gain else ""
        return cells if any(cells.values()) else {}

    return by_setting(rows, columns)
