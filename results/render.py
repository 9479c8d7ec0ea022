"""Write the tables in the documents and under `results/` from the committed `results.jsonl` files.

    make results          (or: python results/render.py)

`tests/test_results.py` fails where a committed table is not what this writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from medi.bench.grid import Run
from medi.bench.rows import read_rows
from medi.bench.tables import Line, read_results, render, summarise
from medi.data.facts import BENCHMARKS
from medi.theory.tables import markdown_tables

ROOT = Path(__file__).resolve().parent.parent
HEADLINE = ("svhn", "cifar10", "cifar100", "omniglot")
MARKS = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)
Find = Callable[[str, str | None, str], Line]
"""A line of one setting by method, sampler and regime."""


def headline(find: Find) -> dict[str, str]:
    """The README's columns: K-means and MP by episodes."""
    honest = find("mp", "uniform", "honest")
    return {
        "chance": f"{100 * honest.chance:.1f}",
        "K-means on pixels": spread(find("kmeans", None, "honest")),
        "MP": f"**{spread(honest)}**",
        "MP, transductive": spread(find("mp", "uniform", "transductive")),
        "MP, oracle": spread(find("mp", "uniform", "grouped")),
        "paper's MP without CATA": honest.cells()[-1],
    }


def ablation(find: Find) -> dict[str, str]:
    """The paper's Table 1 for MP: with CATA and without."""
    return {
        f"{regime}: {name}": spread(find("mp", sampler, regime))
        for regime in ("honest", "grouped")
        for name, sampler in (("uniform", "uniform"), ("CATA", "cata"))
    } | {
        f"paper: {name}": find("mp", sampler, "grouped").cells()[-1]
        for name, sampler in (("uniform", "uniform"), ("CATA", "cata"))
    }


def by_setting(lines: list[Line], columns: Callable[[Find], dict[str, str]]) -> str:
    """A table with a row for each of the paper's eight settings."""
    found = {line.run: line for line in lines}
    rows = []
    for dataset in HEADLINE:
        for observations in (5, 1):
            way = BENCHMARKS[dataset].way

            def find(
                method: str,
                sampler: str | None,
                regime: str,
                dataset: str = dataset,
                way: int = way,
                observations: int = observations,
            ) -> Line:
                return found[Run(dataset, method, "default", sampler, way, observations, regime, "episode", 0)]

            rows.append({"setting": f"{BENCHMARKS[dataset].title} {way}-way {observations}-obs"} | columns(find))
    return markdown(rows)


def choices(folder: Path) -> str:
    """How each candidate did on held-out known classes, honest, over the splits that all of a dataset's finished."""
    scores: dict[tuple[str, str], dict[int, float]] = {}
    for row in read_rows(folder / "choices.jsonl"):
        if row["regime"] == "honest" and row["observations"] == 5:
            scores.setdefault((row["dataset"], row["config"]), {})[row["split"]] = 100 * row["acc"]
    rows = []
    for dataset in BENCHMARKS:
        mine = {config: splits for (name, config), splits in scores.items() if name == dataset}
        shared = set.intersection(*map(set, mine.values())) if mine else set()
        means = {config: fmean(splits[split] for split in shared) for config, splits in mine.items()}
        for config in sorted(means, key=lambda config: -means[config]):
            rows.append(
                {
                    "dataset": BENCHMARKS[dataset].title,
                    "candidate": f"`{config}`",
                    "ACC": f"{means[config]:.1f}",
                    "splits": str(len(shared)),
                    "ACC, all its splits": f"{fmean(mine[config].values()):.1f}",
                    "all its splits": str(len(mine[config])),
                }
            )
    return markdown(rows)


def markdown(rows: list[dict[str, str]]) -> str:
    """A Markdown table of rows that share their columns."""
    head = "| " + " | ".join(rows[0]) + " |\n|" + " --- |" * len(rows[0]) + "\n"
    return head + "".join("| " + " | ".join(row.values()) + " |\n" for row in rows)


def spread(line: Line) -> str:
    """Mean ± deviation over seeds."""
    cells = line.cells()
    return f"{cells[6]} ± {cells[7]}"


def files() -> dict[Path, str]:
    """What every generated file should hold."""
    contents = {
        folder / "table.md": render(summarise(read_results(folder)), "md")
        for folder in sorted(path.parent for path in (ROOT / "results").glob("*/results.jsonl"))
    }
    mp = ROOT / "results" / "mp"
    lines = summarise(read_results(mp))
    tables = {
        "README.md": by_setting(lines, headline),
        "docs/cata.md": by_setting(lines, ablation),
        "docs/results.md": choices(mp),
        "docs/medi.md": choices(ROOT / "results" / "medi"),
    }
    for name, table in tables.items():
        document = ROOT / name
        contents[document] = MARKS.sub(lambda marks, t=table: marks[1] + t + marks[2], document.read_text())
    contents[ROOT / "docs" / "theory.md"] = theory(ROOT / "docs" / "theory.md")
    return contents


def theory(page: Path) -> str:
    """The page with every table between its marks."""
    text = page.read_text()
    for name, table in markdown_tables(ROOT / "results" / "theory").items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        text, found = marks.subn(lambda marks, table=table: marks[1] + table + marks[2], text)
        if found != 1:
            raise ValueError(f"{page} has {found} places for the table {name}, not one")
    return text


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
