"""Published numbers, the paper's and the baselines' authors' (`published.json`), as fractions like ours."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from medi.bench.grid import ALL, Run

ALL_CHARACTERS = "omniglot/659-way"
"""What the paper's K-means may cluster where its table says 20-way; its numbers stand beside either."""
LEARNT = "features"
"""The preset of K-means on learnt features: with everything observed, the paper has these."""


class Published(NamedTuple):
    """A published ACC: mean and, where one is given, standard deviation."""

    mean: float
    std: float | None

    def percent(self) -> str:
        """As tables show it."""
        return f"{100 * self.mean:.1f}" + (f" ± {100 * self.std:.1f}" if self.std is not None else "")


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(files("medi.bench").joinpath("published.json").read_text(encoding="utf-8"))
    return tables


def published(run: Run) -> Published | None:
    """What the paper reports for a run's setting; None where it reports nothing."""
    if run.observations == ALL:
        on_pixels = run.method == "kmeans" and run.config != LEARNT
        return None if on_pixels else look_up("abundant", run.dataset, run.method)
    setting, task = f"{run.dataset}/{run.way}-way", f"{run.observations}-obs"
    if run.method == "kmeans":
        return look_up("kmeans", task, "omniglot/20-way" if setting == ALL_CHARACTERS else setting)
    column = run.method if run.sampler == "cata" else f"{run.method}_without_cata"
    return look_up("ablation", f"{setting}/{task}", column)


def look_up(table: str, row: str, column: str) -> Published | None:
    """A cell of a published table, where there is one."""
    contents = _tables()[table]
    if row not in contents["rows"] or column not in contents["columns"]:
        return None
    mean, std = contents["rows"][row][contents["columns"].index(column)]
    return Published(mean / 100, None if std is None else std / 100)
