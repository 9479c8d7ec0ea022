"""The tables of scores in the documents, from rows of results; `render.py` says which page has which.

What was not measured leaves its cell empty, its row or column out, or a sentence that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, stdev
from typing import Any

from medi.bench.candidates import FROM
from medi.bench.grid import ALL, Run
from medi.bench.published import look_up, published
from medi.bench.rows import scored
from medi.bench.run import settings_of
from medi.bench.tables import Line, summarise
from medi.core.errors import InputError
from medi.data.facts import BENCHMARKS
from medi.registry import COMPARED_METHODS, METHOD_NAMES, title_of

BEFORE = "sgd-0.1"
"""UNO's and SimGCD's preset on Omniglot before their rate was chosen."""
HEADLINE = ("svhn", "cifar10", "cifar100", "omniglot")
NOT_YET = "Not measured yet.\n"
TERMS: Mapping[str, Mapping[str, Any]] = {
    "nothing": {"balance": False},
    "sizes are equal": {"balance": True},
    "nothing, sizes are unequal": {"sizes": "unequal"},
}
"""What all methods of a comparison are told."""
TRIALS_NOTE = """# Trials on held-out known classes

One section a comparison, one row a candidate; made by `medi bench choose` and stored with all settings in this folder.
The first row has the highest mean ACC among the candidates that finished most splits. ACC is in percent; where there
are several numbers of observations, it is the mean over them. std: standard deviation over splits. *To the first*: mean
difference to the first row ± its standard error, over the splits that both finished (in brackets how many, where it is
not all). *Differs in*: the stored settings that are not the first row's; "no" where there is none, or was none then.
"""

Rows = Sequence[dict[str, Any]]
Cells = dict[str, str]
Find = Callable[..., Line | None]
"""A line of one setting by method and, where they are not the usual ones, regime, sampler and config."""
Splits = Mapping[tuple[Any, ...], Mapping[int | str, float]]
"""ACC in percent of one candidate by split and by number of observations."""


def headline(find: Find) -> Cells:
    """The README's columns: honest scores, the best in bold, and our own method where queries are seen together.

    All methods were told that classes are equally large.
    """
    honest = {method: find(method, balance=True) for method in ("kmeans", "mm", "mp", "medi")}
    top = max((fmean(line.acc) for line in honest.values() if line), default=None)
    return (
        {"chance": chance(*honest.values())}
        | {
            "K-means on pixels" if method == "kmeans" else title_of(method): bold(line)
            if line and fmean(line.acc) == top
            else spread(line)
            for method, line in honest.items()
        }
        | {
            "medi, transductive": spread(find("medi", "transductive")),
            "paper's best": papers_best(*honest.values()),
        }
    )


def of_method(method: str, find: Find) -> Cells:
    """A method of the paper in every regime, beside what the paper reports."""
    honest = find(method)
    return {
        "chance": chance(honest),
        title_of(method): bold(honest),
        "transductive": spread(find(method, "transductive")),
        "oracle": spread(find(method, "grouped")),
        "preset `paper`, CATA": spread(find(method, config="paper", sampler="cata")),
        "published, without CATA": papers(honest),
    }


def by_setting(rows: Rows, columns: Callable[[Find], Cells]) -> str:
    """A table with a row for each of the paper's eight settings."""
    lines = summarise(rows)
    settings = [(dataset, observations) for dataset in HEADLINE for observations in (5, 1)]
    table = []
    for dataset, observations in settings:
        way = BENCHMARKS[dataset].way
        if cells := columns(partial(find_line, lines, dataset, observations, way)):
            table.append({"setting": f"{BENCHMARKS[dataset].title} {way}-way {observations}-obs"} | cells)
    return markdown(table)


def find_line(
    lines: Sequence[Line], dataset: str, observations: int | str, way: int | None, method: str, regime: str = "honest",
    sampler: str = "uniform", config: str = "default", score: str = "episode", balance: bool | None = None,
    sizes: str = "equal",
) -> Line | None:  # fmt: skip
    """The line of a run, whatever its seeds; a method that takes no sampler has one line for all of them.

    Of a method that was run with and without what `balance` says, and None asked for, the one that was told nothing.
    """
    wanted = (dataset, method, config, observations, regime, score, sizes)
    found = [
        line
        for line in lines
        for run in [line.run]
        if (run.dataset, run.method, run.config, run.observations, run.regime, run.score, run.sizes) == wanted
        and way in (None, run.way)
        and run.sampler in (None, sampler)
        and balance in (None, run.balance)
        and line.acc  # none, where training diverged with every seed
    ]
    return min(found, key=lambda line: line.run.balance, default=None)


def on_equal_terms(rows: Rows) -> str:
    """Every method on every set, told the same: nothing, that classes are equally large, and where they are not.

    Five observations, pooled, tasks by CATA. ≈ stands beside a method whose loss assumes equal sizes, told or not.
    """
    lines = summarise(rows)
    if not lines:
        return NOT_YET
    methods = [name for name in METHOD_NAMES if any(line.run.method == name for line in lines)]
    assuming = {line.run.method for line in lines if line.assumed}
    titles = {name: title_of(name) + " ≈" * (name in assuming) for name in methods}
    table = []
    for dataset in [name for name in BENCHMARKS if any(line.run.dataset == name for line in lines)]:
        for told, options in TERMS.items():
            found = {
                name: find_line(lines, dataset, 5, None, name, sampler="cata", score="pooled", **options)
                for name in methods
            }
            seeds = sorted({len(line.acc) for line in found.values() if line})
            if seeds:
                n = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
                table.append(
                    {"set": BENCHMARKS[dataset].title, "told": told, "n": n, "chance": chance(*found.values())}
                    | {titles[name]: spread(line) for name, line in found.items()}
                )
    return markdown(table)


def kmeans(rows: Rows) -> str:
    """K-means on pixels, pooled and told nothing, beside the paper's; Omniglot's characters also all at once."""
    lines, table = summarise(rows), list[Cells]()
    facts = [BENCHMARKS[dataset] for dataset in HEADLINE]
    for one, way in [*((one, one.way) for one in facts), (BENCHMARKS["omniglot"], BENCHMARKS["omniglot"].novel)]:
        cells = {"setting": f"{one.title} {way}-way"}
        for count in (5, 1):
            line = find_line(lines, one.name, count, way, "kmeans", score="pooled", balance=False)
            cells |= {
                f"{count}-obs": spread(line),
                f"{count}-obs, chance": chance(line),
                f"{count}-obs, paper": papers(line),
            }
        table.append(cells)
    return markdown(table)


def abundant(rows: Rows) -> str:
    """Every compared method with all novel images observed, over what the paper and the authors report.

    † stands beside what was not run with today's preset.
    """
    lines, table = summarise(rows), list[Cells]()
    of_before = {replace(Run.of_row(row), seed=0) for row in rows if is_of_before(row)}
    columns = {"K-means": ("kmeans", "default"), "K-means on features": ("kmeans", "features")}
    columns |= {title_of(method): (method, "default") for method in COMPARED_METHODS if method != "kmeans"}
    for dataset in HEADLINE:
        found: dict[str, Line] = {}
        for title, (method, config) in columns.items():
            for name in (config, BEFORE):
                line = find_line(lines, dataset, ALL, None, method, config=name, sampler="cata", score="pooled")
                if line and title not in found:
                    found[title] = line
        ours, of_paper, of_authors = Cells(), Cells(), Cells()
        for title, line in found.items():
            ours[title] = spread(line) + " †" * (line.run.config == BEFORE or line.run in of_before)
            of_paper[title] = papers(line)
            of_authors[title] = value.percent() if (value := look_up("authors", dataset, line.run.method)) else ""
        head = {"set": BENCHMARKS[dataset].title, "chance": chance(*found.values())}
        for name, cells in {"us": ours, "paper": of_paper, "authors": of_authors}.items():
            if any(cells.values()):
                table.append((head if name == "us" else {}) | {"by": name} | dict.fromkeys(columns, "") | cells)
    return markdown(table)


def is_of_before(row: Mapping[str, Any]) -> bool:
    """Whether a row has other settings than its preset today, changed by `--set` or since.

    A setting that it lacks, or has as None, did not exist then.
    """
    if "settings" not in row:
        return False
    changes = row.get("set", {})
    try:
        today = settings_of(replace(Run.of_row(dict(row)), changes=changes if FROM in changes else {}))
    except InputError:  # there is no such preset any more
        return True
    return differ(row["settings"], today)


def differ(before: Any, today: Any) -> bool:
    """Whether stored settings have another value than those of today, at any depth."""
    if isinstance(before, dict) and isinstance(today, dict):
        return any(differ(value, today[name]) for name, value in before.items() if name in today)
    if isinstance(before, list) and isinstance(today, list) and len(before) == len(today):
        return any(map(differ, before, today))
    return before not in (None, today)


def trials(rows: Rows) -> str:
    """Every comparison of candidates on held-out known classes, a section each."""
    comparisons: dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        everything = row["observations"] == ALL
        key = (row["dataset"], row["method"], everything, len(row["held_out"]), row["regime"])
        comparisons.setdefault(key, {}).setdefault(row["config"], []).append(row)
    order = list(BENCHMARKS)
    sections = [
        comparison(key, comparisons[key]) for key in sorted(comparisons, key=lambda key: (order.index(key[0]), *key))
    ]
    return "\n".join([TRIALS_NOTE, *sections])


def comparison(key: tuple[Any, ...], candidates: Mapping[str, Rows]) -> str:
    """One section: candidates tried on most splits first, then by ACC."""
    dataset, method, everything, held_out, regime = key
    splits = {name: finished(of_name) for name, of_name in candidates.items()}
    splits = {name: of_name for name, of_name in splits.items() if of_name}
    means = {name: {split: fmean(of.values()) for split, of in of_name.items()} for name, of_name in splits.items()}
    ranked = sorted(means, key=lambda name: (-len(means[name]), -fmean(means[name].values())))
    counts = sorted({row["observations"] for of_name in candidates.values() for row in of_name}, key=str, reverse=True)
    table = [
        {"candidate": f"`{name}`", "ACC": f"{fmean(means[name].values()):.1f}"}
        | (of_counts(splits[name], counts) if len(counts) > 1 else {})
        | {
            "std": f"{stdev(means[name].values()):.1f}" if len(means[name]) > 1 else "",
            "splits": str(len(means[name])),
            "to the first": difference(means[name], means[ranked[0]]),
            "differs in": ", ".join(changes(candidates[name][-1]["settings"], candidates[ranked[0]][-1]["settings"])),
        }
        for name in ranked
    ]
    every = [row for of_name in candidates.values() for row in of_name]
    episodes = " or ".join(map(str, sorted({row["episodes"] for row in every})))
    devices = " and ".join(sorted({row["device"] for row in every}))
    shown = "everything observed" if everything else " and ".join(map(str, counts)) + " observations"
    return (
        f"## {BENCHMARKS[dataset].title}, {title_of(method)}, {regime}, {shown}, {held_out} classes held out\n\n"
        f"Chance {100 * fmean(row['chance'] for row in every):.1f}; tasks a split: {episodes}; {devices}.\n\n"
        f"{markdown(table)}"
    )


def finished(rows: Rows) -> Splits:
    """ACC of a candidate's splits for which all its numbers of observations are there."""
    splits: dict[tuple[Any, ...], dict[int | str, float]] = {}
    for row in scored(rows):
        splits.setdefault((*row["held_out"], row["seed"]), {})[row["observations"]] = 100 * row["acc"]
    counts = {row["observations"] for row in rows}
    return {split: of_split for split, of_split in splits.items() if of_split.keys() == counts}


def of_counts(splits: Splits, counts: Sequence[int | str]) -> Cells:
    """Mean ACC over splits for every number of observations that a candidate was tried with."""
    return {
        f"{count}-obs": f"{fmean(of[count] for of in splits.values()):.1f}"
        for count in counts
        if all(count in of for of in splits.values())
    }


def difference(splits: Mapping[Any, float], first: Mapping[Any, float]) -> str:
    """The mean difference on shared splits ± its standard error; splits differ more than candidates do."""
    shared = splits.keys() & first.keys()
    if splits is first or not shared:
        return ""
    by_split = [splits[split] - first[split] for split in shared]
    error = f" ± {stdev(by_split) / len(shared) ** 0.5:.1f}" if len(shared) > 1 else ""
    return f"{round(fmean(by_split), 1) + 0.0:+.1f}{error}" + (f" ({len(shared)})" if shared != first.keys() else "")


def changes(settings: Any, first: Any, name: str = "") -> list[str]:
    """What differs between stored settings, by name; a missing setting is "no", unless the other is as good as none."""
    if isinstance(settings, list) and isinstance(first, list):
        settings, first = ({str(number): value for number, value in enumerate(part)} for part in (settings, first))
    if isinstance(settings, dict) and isinstance(first, dict):
        names = dict.fromkeys([*first, *settings])
        return [
            change
            for one in names
            for change in changes(settings.get(one), first.get(one), f"{name}.{one}".lstrip("."))
        ]
    if settings == first or not (settings or first):
        return []
    if isinstance(settings, dict):
        return [f"with {name}"]
    return [f"no {name}" if settings in (None, False) else f"{name} {settings}"]


def markdown(rows: Sequence[Cells]) -> str:
    """A Markdown table; a column without any content is left out."""
    if not rows:
        return NOT_YET
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [name for name in names if any(row.get(name) for row in rows)]
    lines = [columns, ["---"] * len(columns), *([row.get(name, "") for name in columns] for row in rows)]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def spread(line: Line | None) -> str:
    """Mean ± standard deviation over seeds; of a single seed there is none."""
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


def papers(line: Line | None) -> str:
    """What the paper reports for a line."""
    value = published(line.run) if line else None
    return value.percent() if value else ""


def papers_best(*lines: Line | None) -> str:
    """The most that the paper reports for the setting of these lines, by any of its methods."""
    run = next((line.run for line in lines if line), None)
    row = f"{run.dataset}/{run.way}-way/{run.observations}-obs" if run else ""
    of_paper = (
        look_up("ablation", row, f"{method}{which}") for method in ("mm", "mp") for which in ("", "_without_cata")
    )
    value = max(filter(None, of_paper), key=lambda one: one.mean, default=None)
    return value.percent() if value else ""
