"""The tables of trials on held-out known classes, by which settings were chosen, from rows of results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean, stdev

from tables import Cells, Rows, markdown

from medi.bench.figures import title_of
from medi.bench.grid import ALL
from medi.data.facts import BENCHMARKS
from medi.methods import METHODS
from medi.methods.medi import READINGS, WINNERS

CHOICES_NOTE = """
ACC and std (standard deviation) are over a candidate's own splits; those with most splits come first. *To the first*:
mean difference to the first candidate ± its standard error, over the splits that both finished (in brackets how many,
where it is not all of the first's).
"""
SEVERAL_NOTE = "Where there are several numbers of observations, all but their own columns are of their mean.\n"
BOLD_NOTE = "In bold: what `default` stands for.\n"
BOLD_RECIPE_NOTE = "In bold: what `default` stands for; on the benchmarks, its recipe with any reading.\n"

Split = tuple[tuple[str, ...], int]
"""The classes that were held out, and the seed."""
Trials = Mapping[Split, Mapping[int | str, float]]
"""ACC in percent of one candidate by split, and by number of observations."""


def choices(rows: Rows, regime: str = "honest") -> str:
    """How candidates did on held-out known classes: those tried on most splits first, then by ACC."""
    groups: dict[tuple[str, str, bool], dict[str, dict[Split, dict[int | str, float]]]] = {}
    for row in rows:
        if row["regime"] == regime:
            candidates = groups.setdefault((row["dataset"], row["method"], row["observations"] == ALL), {})
            split = tuple(row["held_out"]), row["seed"]
            trials = candidates.setdefault(row["config"], {}).setdefault(split, {})
            trials[row["observations"]] = 100 * row["acc"]
    methods = {method for _, method, _ in groups}
    counts = {
        c for candidates in groups.values() for splits in candidates.values() for of in splits.values() for c in of
    }
    table = []
    for group in sorted(groups, key=lambda group: (list(BENCHMARKS).index(group[0]), *group[1:])):
        dataset, method, everything = group
        candidates = {config: means for config, trials in groups[group].items() if (means := finished(trials))}
        ranked = sorted(candidates, key=lambda config: (-len(candidates[config]), -fmean(candidates[config].values())))
        for config in ranked:
            splits, trials = candidates[config], groups[group][config]
            name = f"**`{config}`**" if chosen(dataset, method, config, everything) else f"`{config}`"
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


def finished(trials: Trials) -> dict[Split, float]:
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


def chosen(dataset: str, method: str, config: str, everything: bool) -> bool:
    """Whether `default` stands for a candidate; of `medi`, which then trains for longer, whether for its recipe."""
    if method == "medi" and dataset in WINNERS:
        recipe, _ = WINNERS[dataset]
        return config in {f"{recipe}-{reading}" for reading in READINGS}
    candidate = METHODS[method].presets.get(config)
    return candidate is not None and candidate == METHODS[method].preset("default", dataset, everything=everything)


def difference(splits: Mapping[Split, float], first: Mapping[Split, float]) -> str:
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
