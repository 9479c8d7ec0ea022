"""The lengths of the baselines on the generated sets are what trials on held-out known glyphs say."""

from pathlib import Path
from statistics import fmean

import pytest

from medi.bench.rows import read_rows
from medi.methods import METHODS

TRIALS = read_rows(Path(__file__).resolve().parents[2] / "results" / "baselines" / "choices.jsonl")
TOLERANCE = 0.02
"""A shorter candidate is as good where it loses no more."""


def steps_of(row: dict) -> int:
    return max(row["settings"]["stage"]["least"], row["settings"]["stage"]["epochs"])


@pytest.mark.parametrize("method", ["kcl", "mcl", "dtc", "rs"])
def test_the_shortest_that_is_as_good_as_the_best_was_chosen(method):
    trials = [row for row in TRIALS if row["method"] == method]
    steps = {row["config"]: steps_of(row) for row in trials}
    splits = {config: {row["split"] for row in trials if row["config"] == config} for config in steps}
    shared = set.intersection(*splits.values())
    acc = {
        config: fmean(row["acc"] for row in trials if row["config"] == config and row["split"] in shared)
        for config in steps
    }
    as_good = [config for config in acc if acc[config] >= max(acc.values()) - TOLERANCE]
    chosen = METHODS[method].chosen
    assert chosen["glyphs"] == chosen["rules"] == min(as_good, key=steps.__getitem__)
