"""`benchmarks/restarts.py`: what it notes is what RS does, and the page's table is that of the committed results."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from studies import benchmark

from medi.bench.choose import hold_out
from medi.bench.grid import ALL, Run
from medi.bench.rows import read_rows
from medi.data.benchmarks import Benchmark
from medi.methods.adapting import Stage
from medi.methods.rs import RS
from medi.methods.rs_config import CPU
from medi.train.loop import Desk
from medi.train.schedule import Schedule

ROOT = Path(__file__).resolve().parent.parent
FOUND = json.loads((ROOT / "results" / "diagnose" / "restarts.json").read_text())


def test_it_notes_every_training_and_what_comes_of_the_best(glyphs: Benchmark, monkeypatch):
    start = replace(CPU.start, schedule=Schedule(steps=5))
    config = replace(CPU, start=start, stage=Stage(1, 20, 5, Schedule(steps=1)), restarts=3, steady=1.0)
    monkeypatch.setattr(RS, "configs", {"small": config})
    monkeypatch.setattr("medi.methods.rs.UNMERGED", 0.0)
    run = Run("glyphs", "rs", "small", None, 3, ALL, "honest", "pooled", 0)
    found = benchmark("restarts").measure(hold_out(glyphs, [0, 1, 2], ALL), run, Desk())
    fits = [training["agreement"] for training in found["trainings"]]
    assert len(fits) == 3
    assert found["kept"] == fits.index(max(fits))
    assert found["result"] not in found["trainings"]
    assert all(0 <= training["acc"] <= 1 for training in (*found["trainings"], found["result"]))


def test_the_pages_table_is_what_the_committed_results_give():
    assert benchmark("restarts").table(FOUND) in (ROOT / "docs" / "baselines.md").read_text()


@pytest.mark.parametrize(
    ("file", "config", "of"),
    [
        ("earlier/results", "svhn-eights", lambda row: row["trainings"][0]),
        ("abundant/results", "default", lambda row: row["trainings"][row["kept"]]),
    ],
)
def test_its_figures_of_novel_digits_are_those_of_the_rows(file, config, of):
    rows = {
        f"novel, seed {row['seed']}": row["acc"]
        for row in read_rows(ROOT / "results" / f"{file}.jsonl")
        if (row["dataset"], row["method"], row["config"], row["observations"]) == ("svhn", "rs", config, ALL)
    }
    assert rows == {
        row["digits"]: pytest.approx(of(row)["acc"], abs=1e-4)
        for row in FOUND["rows"]
        if row["digits"].startswith("novel")
    }


def test_its_figures_of_held_out_digits_are_those_of_the_trials():
    trials = {
        (row["config"], ", ".join(row["held_out"])): row["acc"]
        for row in read_rows(ROOT / "results" / "abundant" / "threes.jsonl")
    }
    for row in FOUND["rows"][:2]:
        first, kept = row["trainings"][0], row["trainings"][row["kept"]]
        for config, training in (("", first), ("-restarts", kept), ("-steady", row["result"])):
            assert trials[f"svhn-eights{config}", row["digits"]] == pytest.approx(training["acc"], abs=1e-3)
