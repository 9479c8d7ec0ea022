"""Write the tables in the documents and under `results/` from the committed `results.jsonl` files.

    make results          (or: python results/render.py)

`tests/test_results.py` fails where a committed table is not what this writes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import tables
import trials

from medi.bench.rows import read_rows
from medi.bench.tables import read_results, render, summarise
from medi.data.facts import BENCHMARKS

sys.path.append(str(Path(__file__).resolve().parents[1] / "experiments" / "theory"))
from theory_tables import markdown_tables

ROOT = Path(__file__).resolve().parent.parent
COMPARISON = "![Bars of ACC for seven methods on the four benchmarks](images/comparison.png)\n"


def files() -> dict[Path, str]:
    """What every generated file should hold."""
    contents = {
        folder / "table.md": render(summarise(read_results(folder)), "md")
        for folder in sorted(path.parent for path in (ROOT / "results").glob("*/results.jsonl"))
    }
    lines = summarise(rows_of("mp", "mm", "medi"))
    by_setting = partial(tables.by_setting, lines)
    leader = "medi" if any(line.run.method == "medi" for line in lines) else "mp"
    pooled = summarise(rows_of("mp", "mm", "few"))
    tried = rows_of("baselines", "few", "abundant", file="choices.jsonl")
    of_medi = rows_of("medi", file="choices.jsonl")
    drawn = (ROOT / "docs" / "images" / "comparison.png").exists()
    pages = {
        "README.md": {"results": by_setting(partial(tables.headline, leader))},
        "docs/cata.md": {
            "results": by_setting(partial(tables.ablation, "mp")),
            "results of MM": by_setting(partial(tables.ablation, "mm")),
        },
        "docs/mm.md": {
            "results": by_setting(tables.of_mm),
            "literal": by_setting(tables.literal, observations=(5,)),
            "choices": trials.choices(rows_of("mm", file="choices.jsonl")),
        },
        "docs/results.md": {"results": trials.choices(rows_of("mp", file="choices.jsonl"))},
        "docs/baselines.md": {
            "episodes": tables.by_episodes(rows_of("baselines")),
            "episodes of the benchmarks": tables.by_episodes(rows_of("few")),
            "results": trials.lengths([row for row in tried if BENCHMARKS[row["dataset"]].generated]),
            "choices": trials.choices([row for row in tried if not BENCHMARKS[row["dataset"]].generated]),
            "threes": trials.choices(rows_of("abundant", file="threes.jsonl")),
            "few": tables.few(pooled, "honest"),
            "oracle": tables.few(pooled, "grouped"),
            "comparison": COMPARISON if drawn else "Not drawn yet.\n",
            "abundant": tables.abundant(rows_of("abundant")),
        },
        "docs/medi.md": {
            "results": trials.choices(of_medi),
            "transductive": trials.choices(of_medi, regime="transductive"),
            "records": by_setting(tables.records),
        },
        "docs/theory.md": markdown_tables(ROOT / "results" / "theory"),
    }
    return contents | {ROOT / name: with_tables(ROOT / name, marked) for name, marked in pages.items()}


def rows_of(*folders: str, file: str = "results.jsonl") -> list[dict[str, Any]]:
    """The rows of some folders, none of one without such a file; of a run in several the last folder's counts."""
    return [row for folder in folders for row in read_rows(ROOT / "results" / folder / file)]


def with_tables(page: Path, marked: Mapping[str, str]) -> str:
    """The page with every table between its marks."""
    text = page.read_text()
    for name, table in marked.items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        text, found = marks.subn(lambda marks, table=table: marks[1] + table + marks[2], text)
        if found != 1:
            raise ValueError(f"{page} has {found} places for the table {name}, not one")
    return text


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
