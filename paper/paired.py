"""What one setting has over another: the same seeds ask both the same questions, so differences are paired by seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any, NamedTuple

from scipy.stats import t

from medi.bench.grid import Run

CONFIDENCE = 0.95


class Difference(NamedTuple):
    """Mean difference in ACC, half its 95 % interval (Student's t; None with a single seed), number of seeds."""

    mean: float
    half_width: float | None
    n: int

    def points(self) -> str:
        """In percent points, as tables show it."""
        mean = f"{round(100 * self.mean, 1) + 0.0:+.1f}"  # never -0.0
        return mean + (f" ± {100 * self.half_width:.1f}" if self.half_width is not None else "")


def paired_difference(rows: Iterable[Mapping[str, Any]], others: Iterable[Mapping[str, Any]]) -> Difference | None:
    """How much more ACC the rows of one setting have than those of another, over the seeds that both have.

    Args:
        rows: Of one setting, a row a seed; of a repeated run the last counts.
        others: Of another setting, asked the same questions.

    Returns:
        The difference, None where no seed is shared.
    """
    first, second = (_by_seed(some) for some in (rows, others))
    shared = sorted(first.keys() & second.keys())
    for seed in shared:
        asked, otherwise = (_questions(some[seed]) for some in (first, second))
        if asked != otherwise:
            raise ValueError(f"seed {seed} asked {asked} and {otherwise}: other questions cannot be paired")
    differences = [first[seed]["acc"] - second[seed]["acc"] for seed in shared]
    if not differences:
        return None
    n, half_width = len(differences), None
    if n > 1:
        half_width = float(t.ppf((1 + CONFIDENCE) / 2, n - 1)) * stdev(differences) / n**0.5
    return Difference(fmean(differences), half_width, n)


def _by_seed(rows: Iterable[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    latest = {Run.of_row(dict(row)): row for row in rows if row["acc"] is not None}  # None where training diverged
    found = {run.seed: row for run, row in latest.items()}
    if len(found) < len(latest):
        raise ValueError("rows of several settings cannot be paired by seed: give those of one")
    return found


def _questions(row: Mapping[str, Any]) -> tuple[Any, ...]:
    run = Run.of_row(dict(row))
    return run.dataset, run.way, run.observations, run.score, run.sizes, row["episodes"]


def sampler_gains(rows: Iterable[Mapping[str, Any]]) -> dict[Run, Difference]:
    """What CATA's tasks have over uniform ones, by run without its seed, where rows of both are there.

    Rows that were scored on other numbers of episodes are not paired.
    """
    groups: dict[tuple[Run, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((replace(Run.of_row(dict(row)), seed=0), row["episodes"]), []).append(row)
    gains = {
        run: paired_difference(some, groups.get((replace(run, sampler="uniform"), episodes), ()))
        for (run, episodes), some in groups.items()
        if run.sampler == "cata"
    }
    return {run: gain for run, gain in gains.items() if gain is not None}


def render_gains(gains: Mapping[Run, Difference]) -> str:
    """A Markdown table of what CATA adds."""
    heading = ["dataset", "task", "method", "regime", "CATA - uniform", "n"]
    lines = [
        [run.dataset, f"{run.way}-way {run.observations}-obs", f"{run.method}/{run.config}", run.regime,
         gain.points(), str(gain.n)]
        for run, gain in gains.items()
    ]  # fmt: skip
    table = "".join("| " + " | ".join(cells) + " |\n" for cells in [heading, ["---"] * len(heading), *lines])
    return f"{table}\nIn percent points, paired by seed, ± half the 95 % interval (Student's t over n seeds).\n"
