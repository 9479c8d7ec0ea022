"""The tables of the documents, from rows of results; `render.py` says which page has which.

What was not measured leaves its cell empty, its row or column out, or a sentence that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean, stdev
from typing import Any

from medi.bench.figures import COMPARED, title_of
from medi.bench.grid import ALL, Run, expand
from medi.bench.published import best_published, published, published_by_authors
from medi.bench.tables import Line, summarise
from medi.data.facts import BENCHMARKS
from medi.methods import METHODS

HEADLINE = ("svhn", "cifar10", "cifar100", "omniglot")
NOT_YET = "Not measured yet.\n"

Rows = Sequence[dict[str, Any]]
Cells = dict[str, str]
Find = Callable[..., Line | None]
"""A line of one setting by method, regime and, where they are not `uniform` and `default`, sampler and config."""


def headline(leader: str, find: Find) -> Cells:
    """The README's columns: honest scores, the best in bold, and the other regimes of the method that leads."""
    honest = {method: find(method, "honest") for method in ("kmeans", "mm", "mp", "medi")}
    top = max((fmean(line.acc) for line in honest.values() if line), default=None)
    titles = {"kmeans": "K-means on pixels"}
    return (
        {"chance": chance(*honest.values())}
        | {
            titles.get(method, title_of(method)): bold(line) if line and fmean(line.acc) == top else spread(line)
            for method, line in honest.items()
        }
        | {
            f"{title_of(leader)}, transductive": spread(find(leader, "transductive")),
            f"{title_of(leader)}, oracle": spread(find(leader, "grouped")),
            "paper's best": papers_best(honest["mp"]),
        }
    )


def records(find: Find) -> Cells:
    """Our own method in every regime, beside MP and the best that the paper reports."""
    ours = {regime: find("medi", regime) for regime in ("honest", "transductive", "grouped")}
    if not any(ours.values()):
        return {}
    return {
        "chance": chance(*ours.values()),
        "medi": bold(ours["honest"]),
        "medi, transductive": spread(ours["transductive"]),
        "medi, oracle": spread(ours["grouped"]),
        "MP": spread(find("mp", "honest")),
        "paper's best": papers_best(*ours.values()),
    }


def ablation(method: str, find: Find) -> Cells:
    """The paper's Table 1 for a method: with CATA and without."""
    samplers = (("uniform", "uniform"), ("CATA", "cata"))
    return {
        f"{regime}: {name}": spread(find(method, regime, sampler))
        for regime in ("honest", "grouped")
        for name, sampler in samplers
    } | {f"paper: {name}": papers(find(method, "grouped", sampler)) for name, sampler in samplers}


def of_mm(find: Find) -> Cells:
    """MM in every regime, beside MP."""
    honest = find("mm", "honest")
    return {
        "chance": chance(honest),
        "MM": bold(honest),
        "MM with CATA": spread(find("mm", "honest", "cata")),
        "MM, transductive": spread(find("mm", "transductive")),
        "MM, oracle": spread(find("mm", "grouped")),
        "MP": spread(find("mp", "honest")),
        "paper's MM without CATA": papers(honest),
        "paper's MM": papers(find("mm", "honest", "cata")),
    }


def literal(find: Find) -> Cells:
    """The paper's own settings of MM, as far as they were trained."""
    honest = find("mm", "honest", config="paper")
    return {
        "chance": chance(honest),
        "config `paper`, honest": spread(honest),
        "transductive": spread(find("mm", "transductive", config="paper")),
        "config `default`, honest": spread(find("mm", "honest")),
        "published, without CATA": papers(honest),
    }


def compared(regime: str, find: Find) -> Cells:
    """Every compared method, a column each."""
    found = {method: find(method, regime) for method in COMPARED}
    if not any(found.values()):
        return {}
    return {"chance": chance(*found.values())} | {title_of(method): spread(line) for method, line in found.items()}


def few(lines: Sequence[Line], regime: str) -> str:
    """Every compared method scored `pooled` with a few observations, and how many seeds each has."""
    mine = [line for line in lines if line.run.score == "pooled" and line.run.regime == regime]
    counts = {method: seeds([line for line in mine if line.run.method == method]) for method in COMPARED}
    note = ", ".join(f"{title_of(method)} {count}" for method, count in counts.items() if count)
    return by_setting(mine, partial(compared, regime), score="pooled") + (f"\nSeeds: {note}.\n" if note else "")


def by_setting(
    lines: Sequence[Line],
    columns: Callable[[Find], Cells],
    observations: tuple[int, ...] = (5, 1),
    score: str = "episode",
) -> str:
    """A table with a row for each of the paper's eight settings, or for those with so many observations."""
    found = {line.run: line for line in lines}
    rows = []
    for dataset in HEADLINE:
        for each in observations:
            way = BENCHMARKS[dataset].way

            def find(
                method: str,
                regime: str,
                sampler: str = "uniform",
                config: str = "default",
                dataset: str = dataset,
                way: int = way,
                each: int = each,
            ) -> Line | None:
                drawn = sampler if METHODS[method].takes_sampler else None
                return found.get(Run(dataset, method, config, drawn, way, each, regime, score, 0))

            if cells := columns(find):
                rows.append({"setting": f"{BENCHMARKS[dataset].title} {way}-way {each}-obs"} | cells)
    return markdown(rows)


def by_episodes(rows: Rows) -> str:
    """ACC of every run that was scored by episodes in the honest regime, ± half the 95 % interval over them."""
    table: dict[tuple[str, int], Cells] = {}
    for row in sorted(rows, key=lambda row: (row["dataset"], -row["observations"], COMPARED.index(row["method"]))):
        if (row["score"], row["regime"]) == ("episode", "honest"):
            title = BENCHMARKS[row["dataset"]].title
            setting = f"{title} {row['way']}-way {row['observations']}-obs"
            cells = table.setdefault(
                (row["dataset"], row["observations"]), {"setting": setting, "chance": f"{100 * row['chance']:.1f}"}
            )
            cells[title_of(row["method"])] = f"{100 * row['acc']:.1f} ± {100 * row['acc_ci95']:.1f}"
    return markdown(list(table.values()))


def abundant(rows: Rows) -> str:
    """Every compared method with all novel images observed: asked about others, and on the observed ones themselves."""
    asked = {line.run: line for line in summarise(rows)}
    told = [row | {"acc": row["acc_observed"]} for row in rows if row.get("acc_observed") is not None]
    observed = {line.run: line for line in summarise(told)}
    datasets = [name for name in HEADLINE if any(run.dataset == name for run in asked)]
    if not datasets:
        return NOT_YET
    table = []
    for method in COMPARED:
        cells = {"method": title_of(method)}
        for dataset in datasets:
            run, title = everything(dataset, method), BENCHMARKS[dataset].title
            of_paper, of_authors = published(run), published_by_authors(dataset, method)
            cells |= {
                f"{title}, asked": spread(asked.get(run)),
                f"{title}, observed": spread(observed.get(run)),
                f"{title}, paper": of_paper.percent() if of_paper else "",
                f"{title}, authors": of_authors.percent() if of_authors else "",
            }
        table.append(cells | {"seeds": seeds([asked.get(everything(dataset, method)) for dataset in datasets])})
    chances = {
        f"{BENCHMARKS[name].title}, asked": chance(*(asked.get(everything(name, method)) for method in COMPARED))
        for name in datasets
    }
    return markdown([dict.fromkeys(table[0], "") | {"method": "chance"} | chances, *table])


def everything(dataset: str, method: str) -> Run:
    """The run that observes all novel images of a dataset."""
    samplers = {method: "uniform" if METHODS[method].takes_sampler else None}
    (run,) = expand(
        datasets=[dataset], methods=[method], samplers=samplers, config="default", way=None,
        observations=[ALL], regimes=["honest"], score="pooled", seeds=[0],
    )  # fmt: skip
    return run


def markdown(rows: Sequence[Cells]) -> str:
    """A Markdown table; a column without any content is left out."""
    if not rows:
        return NOT_YET
    columns = [
        name for name in dict.fromkeys(name for row in rows for name in row) if any(row.get(name) for row in rows)
    ]
    lines = [columns, ["---"] * len(columns), *([row.get(name, "") for name in columns] for row in rows)]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def spread(line: Line | None) -> str:
    """Mean ± deviation over seeds; of a single seed there is none."""
    if line is None:
        return ""
    mean = f"{100 * fmean(line.acc):.1f}"
    return f"{mean} ± {100 * stdev(line.acc):.1f}" if len(line.acc) > 1 else mean


def bold(line: Line | None) -> str:
    """`spread` in bold."""
    return f"**{spread(line)}**" if line else ""


def chance(*lines: Line | None) -> str:
    """What random clusters get on the questions of these lines."""
    return next((f"{100 * line.chance:.1f}" for line in lines if line), "")


def seeds(lines: Sequence[Line | None]) -> str:
    """How many seeds lines have, from the fewest to the most."""
    counts = sorted({len(line.acc) for line in lines if line})
    return " to ".join(dict.fromkeys(str(count) for count in (*counts[:1], *counts[-1:])))


def papers(line: Line | None) -> str:
    """What the paper reports for a line."""
    return line.paper.percent() if line and line.paper else ""


def papers_best(*lines: Line | None) -> str:
    """The most that the paper reports for the setting of these lines, by any of its methods."""
    run = next((line.run for line in lines if line), None)
    value = best_published(run.dataset, run.way, int(run.observations)) if run else None
    return value.percent() if value else ""
