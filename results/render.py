"""Write the tables in the documents and under `results/` from the committed `results.jsonl` files.

    make results          (or: python results/render.py)

`tests/test_results.py` fails where a committed table is not what this writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import fmean

from medi.bench.grid import Run
from medi.bench.rows import read_rows
from medi.bench.tables import Line, read_results, render, summarise
from medi.data.facts import BENCHMARKS
from medi.methods import METHODS
from medi.theory.tables import markdown_tables

ROOT = Path(__file__).resolve().parent.parent
HEADLINE = ("svhn", "cifar10", "cifar100", "omniglot")
Find = Callable[..., Line]
"""A line of one setting by method, sampler, regime and, where it is not `default`, config."""


def headline(find: Find) -> dict[str, str]:
    """The README's columns: K-means, MM and MP by episodes."""
    honest = find("mp", "uniform", "honest")
    return {
        "chance": f"{100 * honest.chance:.1f}",
        "K-means on pixels": spread(find("kmeans", None, "honest")),
        "MM": spread(find("mm", "uniform", "honest")),
        "MP": f"**{spread(honest)}**",
        "MP, transductive": spread(find("mp", "uniform", "transductive")),
        "MP, oracle": spread(find("mp", "uniform", "grouped")),
        "paper's MP without CATA": honest.cells()[-1],
    }


def ablation(method: str, find: Find) -> dict[str, str]:
    """The paper's Table 1 for a method: with CATA and without."""
    samplers = (("uniform", "uniform"), ("CATA", "cata"))
    return {
        f"{regime}: {name}": spread(find(method, sampler, regime))
        for regime in ("honest", "grouped")
        for name, sampler in samplers
    } | {f"paper: {name}": find(method, sampler, "grouped").cells()[-1] for name, sampler in samplers}


def of_mm(find: Find) -> dict[str, str]:
    """MM in every regime, beside MP."""
    regimes = {regime: find("mm", "uniform", regime) for regime in ("honest", "transductive", "grouped")}
    return {
        "chance": f"{100 * regimes['honest'].chance:.1f}",
        "MM": f"**{spread(regimes['honest'])}**",
        "MM with CATA": spread(find("mm", "cata", "honest")),
        "MM, transductive": spread(regimes["transductive"]),
        "MM, oracle": spread(regimes["grouped"]),
        "MP": spread(find("mp", "uniform", "honest")),
        "paper's MM without CATA": regimes["honest"].cells()[-1],
        "paper's MM": find("mm", "cata", "honest").cells()[-1],
    }


def literal(find: Find) -> dict[str, str]:
    """The paper's own settings of MM, as far as they were trained."""
    honest = find("mm", "uniform", "honest", "paper")
    return {
        "chance": f"{100 * honest.chance:.1f}",
        "config `paper`, honest": spread(honest),
        "transductive": spread(find("mm", "uniform", "transductive", "paper")),
        "config `default`, honest": spread(find("mm", "uniform", "honest")),
        "published, without CATA": honest.cells()[-1],
    }


def by_setting(
    lines: list[Line], columns: Callable[[Find], dict[str, str]], observations: tuple[int, ...] = (5, 1)
) -> str:
    """A table with a row for each of the paper's eight settings, or for those with so many observations."""
    found = {line.run: line for line in lines}
    rows = []
    for dataset in HEADLINE:
        for each in observations:
            way = BENCHMARKS[dataset].way

            def find(
                method: str,
                sampler: str | None,
                regime: str,
                config: str = "default",
                dataset: str = dataset,
                way: int = way,
                each: int = each,
            ) -> Line:
                return found[Run(dataset, method, config, sampler, way, each, regime, "episode", 0)]

            rows.append({"setting": f"{BENCHMARKS[dataset].title} {way}-way {each}-obs"} | columns(find))
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


def few(lines: list[Line], dataset: str) -> str:
    """Every method that was scored `pooled` on a dataset, with one and with five observations."""
    found = {line.run: line for line in lines}
    way = BENCHMARKS[dataset].way

    def cell(method: str, observations: int, regime: str) -> str:
        sampler = "uniform" if METHODS[method].takes_sampler else None
        line = found.get(Run(dataset, method, "default", sampler, way, observations, regime, "pooled", 0))
        return spread(line) if line else ""

    return markdown(
        [
            {"method": method}
            | {
                f"{each}-obs, {regime}": cell(method, each, regime)
                for each in (5, 1)
                for regime in ("honest", "grouped")
            }
            for method in ("kmeans", "kcl", "mcl", "dtc", "rs", "mp")
        ]
    )


def lengths(folder: Path) -> str:
    """How the baselines' last stages of different lengths did on held-out known glyphs."""
    scores: dict[tuple[str, str, int, str], dict[int, float]] = {}
    for row in read_rows(folder / "choices.jsonl"):
        stage = row["settings"]["stage"]
        steps = max(stage["least"], stage["epochs"])  # a pass over one of these bags is a single step
        scores.setdefault((row["dataset"], row["method"], steps, row["config"]), {})[row["split"]] = 100 * row["acc"]
    return markdown(
        [
            {
                "dataset": BENCHMARKS[dataset].title,
                "method": method.upper(),
                "candidate": f"`{config}`",
                "steps": str(steps),
                "ACC": f"{fmean(of_splits.values()):.1f}",
                "of each split": " ".join(f"{of_splits[split]:.1f}" for split in sorted(of_splits)),
            }
            for (dataset, method, steps, config), of_splits in sorted(scores.items())
        ]
    )


def markdown(rows: list[dict[str, str]]) -> str:
    """A Markdown table of rows that share their columns."""
    head = "| " + " | ".join(rows[0]) + " |\n|" + " --- |" * len(rows[0]) + "\n"
    return head + "".join("| " + " | ".join(row.values()) + " |\n" for row in rows)


def spread(line: Line) -> str:
    """Mean ± deviation over seeds; of a single seed there is none."""
    cells = line.cells()
    return f"{cells[6]} ± {cells[7]}" if cells[7] else cells[6]


def files() -> dict[Path, str]:
    """What every generated file should hold."""
    contents = {
        folder / "table.md": render(summarise(read_results(folder)), "md")
        for folder in sorted(path.parent for path in (ROOT / "results").glob("*/results.jsonl"))
    }
    results = ROOT / "results"
    lines = [line for name in ("mp", "mm") for line in summarise(read_results(results / name))]
    pages = {
        "README.md": {"results": by_setting(lines, headline)},
        "docs/cata.md": {
            "results": by_setting(lines, partial(ablation, "mp")),
            "results of MM": by_setting(lines, partial(ablation, "mm")),
        },
        "docs/mm.md": {
            "results": by_setting(lines, of_mm),
            "literal": by_setting(lines, literal, observations=(5,)),
            "choices": choices(results / "mm"),
        },
        "docs/results.md": {"results": choices(results / "mp")},
        "docs/baselines.md": {
            "results": lengths(results / "baselines"),
            "few": few([*lines, *summarise(read_results(results / "few"))], "cifar10"),
        },
        "docs/medi.md": {"results": choices(results / "medi")},
        "docs/theory.md": markdown_tables(results / "theory"),
    }
    return contents | {ROOT / name: with_tables(ROOT / name, tables) for name, tables in pages.items()}


def with_tables(page: Path, tables: Mapping[str, str]) -> str:
    """The page with every table between its marks."""
    text = page.read_text()
    for name, table in tables.items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        text, found = marks.subn(lambda marks, table=table: marks[1] + table + marks[2], text)
        if found != 1:
            raise ValueError(f"{page} has {found} places for the table {name}, not one")
    return text


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
