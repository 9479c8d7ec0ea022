import subprocess
from dataclasses import replace

import pytest
import torch
from contracts import check_lines
from listening import Listener
from tiny import KMEANS_RUN, TINY, TINY_RUN

from medi.bench import run as bench_run
from medi.bench.rows import read_rows
from medi.bench.run import run_grid
from medi.bench.setup import Setup
from medi.core.errors import InputError
from medi.core.files import read_journal
from medi.core.progress import Silent

KMEANS, MP = (replace(run, dataset="glyphs") for run in (KMEANS_RUN, TINY_RUN))


@pytest.fixture(autouse=True)
def loaded(monkeypatch, glyphs):
    monkeypatch.setattr(bench_run, "load_dataset", lambda name, *_, **__: glyphs)


def go(runs, out, resume=False):
    return run_grid(runs, Setup(out, 5, torch.device("cpu"), Silent(), resume))


def test_every_run_is_a_row_with_all_that_it_came_from(tmp_path):
    rows = go([KMEANS, replace(MP, balance=True), replace(MP, regime="grouped")], tmp_path / "out")
    assert read_journal(tmp_path / "out" / "results.jsonl") == rows
    check_lines("row", tmp_path / "out" / "results.jsonl")
    assert [row["network"] for row in rows] == [None, "mlp", "mlp"]
    assert [row["sampler"] for row in rows] == [None, "uniform", "uniform"]
    assert [row["balance"] for row in rows] == [False, True, False]
    assert {row["sizes"] for row in rows} == {"equal"}


def test_runs_that_are_told_or_scored_otherwise_are_rows_of_their_own(tmp_path):
    runs = [replace(KMEANS, balance=True), KMEANS, replace(KMEANS, sizes="unequal"), replace(KMEANS, score="pooled")]
    told, untold, unequal, pooled = go(runs, tmp_path / "out")
    assert told["acc"] != untold["acc"] != unequal["acc"]
    assert (untold["episodes"], pooled["episodes"], pooled["acc_ci95"]) == (5, 1, None)
    assert go(runs[1:3], tmp_path / "out", resume=True) == [untold, unequal]


def test_a_row_has_the_whole_settings_and_what_was_changed(tmp_path):
    plain, changed = go([KMEANS, MP], tmp_path / "out")
    assert "set" not in plain
    assert changed["set"] == TINY
    assert changed["settings"]["schedule"]["steps"] == 4
    assert changed["settings"]["distance"] == "squared"


def test_results_of_other_settings_are_never_mixed(tmp_path):
    go([MP], tmp_path / "out")
    other = replace(MP, changes=TINY | {"schedule": {"steps": 5}})
    with pytest.raises(InputError, match="other settings"):
        go([other], tmp_path / "out", resume=True)
    assert len(go([MP, replace(MP, regime="grouped")], tmp_path / "out", resume=True)) == 2


def test_the_commit_says_when_the_code_was_changed_after_it(tmp_path, monkeypatch):
    package = tmp_path / "src" / "medi"
    package.mkdir(parents=True)
    code = package / "__init__.py"
    code.write_text("one")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(bench_run.medi, "__file__", str(code))
    asked_anew = bench_run.commit.__wrapped__
    clean = asked_anew()
    assert len(clean) == 40
    code.write_text("two")
    assert asked_anew() == f"{clean}-dirty"


FAST = {"from": "cpu", "network": "mlp"}
WILD = {
    "mp": FAST | {"schedule": {"steps": 50, "rate": 1e30}},
    "mm": FAST | {"tasks": 4, "schedule": {"steps": 2}, "inner": {"steps": 2, "rate": 1e30}},
}


@pytest.mark.parametrize("method", WILD)
def test_a_divergence_is_a_row_without_scores_and_the_grid_goes_on(tmp_path, method):
    wild = replace(MP, method=method, config="wild", changes=WILD[method])
    listener = Listener()
    run_grid([wild, KMEANS], Setup(tmp_path / "out", 5, torch.device("cpu"), listener))
    row, other = read_rows(tmp_path / "out" / "results.jsonl")
    assert (row["acc"], row["nmi"], row["ari"]) == (None, None, None)
    assert f"{method} diverged before step" in row["diverged"]
    assert any(row["diverged"] in line for line in listener.heard)
    assert other["acc"] > other["chance"]
    check_lines("row", tmp_path / "out" / "results.jsonl")
    assert go([wild, KMEANS], tmp_path / "out", resume=True) == [row, other]
