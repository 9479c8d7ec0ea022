"""How much of the paper's tables and figures the committed results hold, by what `medi bench paper` runs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tables import HEADLINE, Cells, is_of_before, markdown

from medi.bench.grid import Run
from medi.data.facts import BENCHMARKS

sys.path.append(str(Path(__file__).resolve().parents[1]))  # a script sees its own folder alone
from paper.parts import parts_of

SHOWN: Mapping[str, str] = {
    "ablation": "Table 1: MM and MP, with CATA and without ([CATA](../docs/cata.md))",
    "mp-published": "Table 1: MP by its published recipe ([MP](../docs/mp.md))",
    "mm-published": "Table 1: MM by its published recipe ([MM](../docs/mm.md))",
    "mm-parts": "not in the paper: MM taken apart ([MM](../docs/mm.md))",
    "kmeans": "Table 2: K-means ([rows](kmeans/table.md))",
    "abundant": "Table 3: everything observed ([baselines](../docs/baselines.md#everything-observed))",
    "few-observations": "Figures 2 and 5: few observations, nothing told "
    "([baselines](../docs/baselines.md#few-observations))",
    "few-observations-balanced": "the same, sizes told",
    "few-observations-unequal": "the same, sizes unequal",
    "records": "not in the paper: our own method ([medi](../docs/medi.md))",
}
"""What each part of `medi bench paper` is for."""


def coverage(rows: Sequence[Mapping[str, Any]]) -> str:
    """A row a part, a column a benchmark: the fewest seeds of its cells, or how many cells have any."""
    seeds = Counter(replace(run, seed=0) for run in {Run.of_row(dict(row)) for row in rows if not is_of_before(row)})
    parts = {part.name: part.runs for part in parts_of(HEADLINE, HEADLINE)}
    if parts.keys() != SHOWN.keys():
        raise ValueError(f"parts of the paper that are not described, or not there: {parts.keys() ^ SHOWN.keys()}")
    table: list[Cells] = []
    for name, shown in SHOWN.items():
        cells = {"in the paper": shown, "part": f"`{name}`"}
        for dataset in HEADLINE:
            cells[BENCHMARKS[dataset].title] = _state([seeds[run] for run in parts[name] if run.dataset == dataset])
        table.append(cells)
    return markdown(table)


def _state(seeds: Sequence[int]) -> str:
    if not seeds:
        return "not asked"
    measured = sum(n > 0 for n in seeds)
    if measured == len(seeds):
        return f"n = {min(seeds)}"
    return f"{measured} of {len(seeds)}" if measured else "none"
