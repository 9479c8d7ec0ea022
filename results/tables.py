"""The tables of the documents, from rows of results; `render.py` says which page has which.

What was not measured leaves its cell empty, its row or column out, or a sentence that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from statistics import fmean, stdev
from typing import Any

from medi.bench.figures import COMPARED, title_of
from medi.bench.grid import ALL, Run, expand
from medi.bench.published import best_published, published, published_by_authors
from medi.bench.tables import Line, summarise
from medi.data.facts import BENCHMARKS
from medi.methods import METHODS
from medi.methods.medi import READINGS, WINNERS

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


CHOICES_NOTE = """
ACC and std (standard deviation) are over a candidate's own splits; those with most splits come first. *To the first*:
mean difference to the first candidate ± its standard error, over the splits that both finished (in brackets how many,
where it is not all of the first's).
"""
SEVERAL_NOTE = "Where there are several numbers of observations, all but their own columns are of their mean.\n"
BOLD_NOTE = "In bold: what `default` stands for.\n"
BOLD_RECIPE_NOTE = "In bold: what `default` stands for; on the benchmarks, its recipe with any reading.\n"

Trials = Mapping[tuple[int, int], Mapping[int | str, float]]
"""ACC in percent of one candidate by split and seed, and by number of observations."""


def choices(rows: Rows, regime: str = "honest") -> str:
    """How candidates did on held-out known classes: those tried on most splits first, then by ACC."""
    groups: dict[tuple[str, str, bool], dict[str, dict[tuple[int, int], dict[int | str, float]]]] = {}
    for row in rows:
        if row["regime"] == regime:
            candidates = groups.setdefault((row["dataset"], row["method"], row["observations"] == ALL), {})
            trials = candidates.setdefault(row["config"], {}).setdefault((row["split"], row["seed"]), {})
            trials[row["observations"]] = 100 * row["acc"]
    methods = {method for _, method, _ in groups}
    counts = {
        c for candidates in groups.values() for splits in candidates.values() for of in splits.values() for c in of
    }
    table = []
    for group in sorted(groups, key=lambda group: (list(BENCHMARKS).index(group[0]), *group[1:])):
        dataset, method, _ = group
        candidates = {config: means for config, trials in groups[group].items() if (means := finished(trials))}
        ranked = sorted(candidates, key=lambda config: (-len(candidates[config]), -fmean(candidates[config].values())))
        for config in ranked:
            splits, trials = candidates[config], groups[group][config]
            name = f"**`{config}`**" if chosen(dataset, method, config) else f"`{config}`"
            table.append(
                {
                    "dataset": BENCHMARKS[dataset].title,
                    "method": title_of(method) if len(methods) > 1 else "",
                    "candidate": name,
                    "ACC": f"{fmean(splits.values()):.1f}",
                }
                | (of_counts([trials[split] for split in splits], counts) if len(counts) > 1 else {})
                | {
                    "std": f"{stdev(splits.values()):.1f}" if len(splits) > 1 else "",
                    "splits": str(len(splits)),
                    "to the first": difference(splits, candidates[ranked[0]]),
                }
            )
    notes = [CHOICES_NOTE] if any(cells["to the first"] for cells in table) else []
    if notes and len(counts - {ALL}) > 1:
        notes.append(SEVERAL_NOTE)
    if notes and any(cells["candidate"].startswith("**") for cells in table):
        notes.append(BOLD_RECIPE_NOTE if "medi" in methods else BOLD_NOTE)
    return markdown(table) + "".join(notes)


def finished(trials: Trials) -> dict[tuple[int, int], float]:
    """A candidate's ACC by split: the mean over its numbers of observations, where all of them are there."""
    counts = {count for of_split in trials.values() for count in of_split}
    return {split: fmean(of_split.values()) for split, of_split in trials.items() if of_split.keys() == counts}


def of_counts(trials: Sequence[Mapping[int | str, float]], counts: Collection[int | str]) -> Cells:
    """Mean ACC of a candidate's splits for every number of observations, the most first and `all` at the end."""
    ordered = sorted(counts, key=lambda count: (count == ALL, 0 if count == ALL else -int(count)))
    return {
        "all" if count == ALL else f"{count}-obs": f"{fmean(of[count] for of in trials):.1f}"
        if count in trials[0]
        else ""
        for count in ordered
    }


def chosen(dataset: str, method: str, config: str) -> bool:
    """Whether `default` stands for a candidate; of `medi`, which then trains for longer, whether for its recipe."""
    if method == "medi" and dataset in WINNERS:
        recipe, _ = WINNERS[dataset]
        return config in {f"{recipe}-{reading}" for reading in READINGS}
    candidate = METHODS[method].configs.get(config)
    return candidate is not None and candidate == METHODS[method].config("default", dataset)


def difference(splits: Mapping[tuple[int, int], float], first: Mapping[tuple[int, int], float]) -> str:
    """The mean difference on shared splits ± its standard error; splits differ more than candidates do."""
    shared = splits.keys() & first.keys()
    if splits is first or not shared:
        return ""
    by_split = [splits[split] - first[split] for split in shared]
    error = f" ± {stdev(by_split) / len(shared) ** 0.5:.1f}" if len(shared) > 1 else ""
    return f"{round(fmean(by_split), 1) + 0.0:+.1f}{error}" + (f" ({len(shared)})" if shared != first.keys() else "")


def lengths(rows: Rows) -> str:
    """How the baselines' last stages of different lengths did on held-out known glyphs."""
    scores: dict[tuple[str, str, int, str], dict[int, float]] = {}
    for row in rows:
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
