from dataclasses import replace

import pytest
import torch

from medi.bench import paper
from medi.bench import run as bench_run
from medi.bench.figures import COMPARED
from medi.bench.grid import ALL, Run
from medi.bench.paper import Part, parts_of, run_paper, what_is_left
from medi.bench.published import published
from medi.methods import METHODS
from medi.runtime.files import read_journal
from medi.runtime.progress import Silent

KMEANS = Run("glyphs", "kmeans", "default", None, 5, 5, "honest", "episode", 0)


def test_the_parts_ask_for_every_number_that_the_paper_prints():
    parts = parts_of(paper.DATASETS, ("svhn", "omniglot"))
    runs = [run for part in parts for run in part.runs]
    assert len(runs) > len(METHODS)
    cells = {(run.dataset, run.observations, run.method, run.sampler) for run in parts[0].runs if published(run)}
    assert len(cells) == 8 * 4  # eight settings, MM and MP with CATA and without
    for dataset in paper.DATASETS:
        for observations in (5, 1):
            for part in parts[2:5]:
                few = {run.method for run in part.runs if (run.dataset, run.observations) == (dataset, observations)}
                assert few == set(COMPARED)
    assert [{(run.balance, run.sizes) for run in part.runs} for part in parts[2:5]] == [
        {(False, "equal")},
        {(True, "equal")},
        {(False, "unequal")},
    ]
    abundant = {(run.dataset, run.method) for run in parts[5].runs if run.observations == ALL}
    assert abundant == {(dataset, method) for dataset in ("svhn", "omniglot") for method in COMPARED}
    assert {run.method for run in parts[6].runs} == {"medi"}


def test_no_run_is_asked_for_twice_within_a_part():
    for part in parts_of(paper.DATASETS, ("svhn",)):
        assert len(set(part.runs)) == len(part.runs)


def test_what_is_left_is_judged_by_what_is_there():
    mp = replace(KMEANS, method="mp", sampler="uniform")
    other = replace(KMEANS, dataset="rules")
    done = {KMEANS: {"seconds": 120.0}}
    assert "nothing" in what_is_left([KMEANS], done)
    assert "about 2 min" in what_is_left([KMEANS, replace(KMEANS, seed=1)], done)
    assert "about 2 min" in what_is_left([other], done)  # another dataset says a little of this one
    assert "no estimate" in what_is_left([mp], done)


@pytest.fixture
def small(monkeypatch, glyphs):
    monkeypatch.setattr(bench_run, "load_dataset", lambda name, *_: glyphs)
    monkeypatch.setattr(paper, "load", lambda name, device: glyphs)
    pooled = replace(KMEANS, score="pooled")
    parts = [Part("one", (KMEANS,)), Part("two", (pooled, replace(pooled, observations=1)), drawn="pooled")]
    monkeypatch.setattr(paper, "parts_of", lambda datasets, abundant: parts)


def test_tables_and_figures_are_written_and_a_second_call_runs_nothing(tmp_path, small):
    options = {"seeds": range(2), "episodes": 3, "device": torch.device("cpu"), "reporter": Silent()}
    written = run_paper(["glyphs"], tmp_path / "out", resume=False, **options)
    assert [path.name for path in written] == ["one.md", "two.md", "two.png"]
    rows = read_journal(tmp_path / "out" / "results.jsonl")
    assert [row["seed"] for row in rows] == [0, 0, 0, 1, 1, 1]  # one seed over everything first
    tables = [path.read_bytes() for path in written]
    assert run_paper(["glyphs"], tmp_path / "out", resume=True, **options) == written
    assert [path.read_bytes() for path in written][:2] == tables[:2]
    assert len(read_journal(tmp_path / "out" / "results.jsonl")) == 6
