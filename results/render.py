"""Write the tables in the README, in docs/theory.md and under `results/` from the committed results.

    make results          (or: python results/render.py)

`tests/test_results.py` fails where a committed table is not what this writes.
"""

from __future__ import annotations

import re
from pathlib import Path

from medi.bench.grid import Run
from medi.bench.tables import Line, read_results, render, summarise
from medi.data.facts import BENCHMARKS
from medi.theory.tables import markdown_tables

ROOT = Path(__file__).resolve().parent.parent
HEADLINE = ("svhn", "cifar10", "cifar100", "omniglot")
MARKS = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)
HEAD = """\
| setting | chance | K-means on pixels | MP | MP, transductive | MP, oracle | paper's MP without CATA |
| --- | --- | --- | --- | --- | --- | --- |
"""


def headline(lines: list[Line]) -> str:
    """The README's table: a row a setting, MP and K-means by episodes."""
    found = {line.run: line for line in lines}
    rows = []
    for dataset in HEADLINE:
        for observations in (5, 1):
            way = BENCHMARKS[dataset].way

            def line(
                method: str, regime: str, dataset: str = dataset, way: int = way, observations: int = observations
            ) -> Line:
                sampler = None if method == "kmeans" else "uniform"
                return found[Run(dataset, method, "default", sampler, way, observations, regime, "episode", 0)]

            honest = line("mp", "honest")
            cells = [
                f"{BENCHMARKS[dataset].title} {way}-way {observations}-obs",
                f"{100 * honest.chance:.1f}",
                spread(line("kmeans", "honest")),
                f"**{spread(honest)}**",
                spread(line("mp", "transductive")),
                spread(line("mp", "grouped")),
                honest.cells()[-1],
            ]
            rows.append("| " + " | ".join(cells) + " |\n")
    return HEAD + "".join(rows)


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
    readme = ROOT / "README.md"
    table = headline(summarise(read_results(ROOT / "results" / "mp")))
    contents[readme] = MARKS.sub(lambda marks: marks[1] + table + marks[2], readme.read_text())
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
