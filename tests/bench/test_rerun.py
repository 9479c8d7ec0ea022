"""`medi bench rerun`: the same digits again, and what differs is said."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from listening import Listener
from tiny import KMEANS_RUN, TINY_RUN, tiny_benchmark

from medi.bench import run as bench_run
from medi.bench.rerun import Comparison, read_row, rerun, run_of
from medi.bench.run import run_grid
from medi.bench.setup import Setup
from medi.core.errors import InputError
from medi.core.progress import Silent

CPU = torch.device("cpu")


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows of K-means and of a candidate of MP."""
    monkeypatch.setattr(bench_run, "load_dataset", tiny_benchmark)
    run_grid([KMEANS_RUN, TINY_RUN], Setup(tmp_path / "out", 3, CPU, Silent()))
    return tmp_path / "out" / "results.jsonl"


@pytest.mark.parametrize("line", [1, 2])
def test_a_row_is_repeated_to_the_last_digit_by_the_settings_it_stores(results: Path, line: int) -> None:
    comparison = rerun(read_row(f"{results}:{line}"), None, CPU, Silent())
    assert comparison.same
    assert comparison.agrees
    assert comparison.after["settings"] == comparison.before["settings"]


def test_settings_are_the_rows_own_even_where_the_preset_has_others_now(results: Path) -> None:
    row = read_row(f"{results}:1")
    row["settings"]["grouping"]["unit"] = True
    assert rerun(row, None, CPU, Silent()).after["settings"] == row["settings"]


def test_a_row_of_an_earlier_version_is_repeated_by_its_preset_and_that_is_said(results: Path) -> None:
    row, listener = read_row(f"{results}:1"), Listener()
    row["settings"] = {"network": None}
    assert run_of(row, listener) == KMEANS_RUN
    assert "earlier version" in listener.heard[0]
    with pytest.raises(InputError, match="no longer has the settings 'lost'"):
        run_of(row | {"config": "lost"}, listener)


def test_the_result_stays_where_a_folder_is_named(results: Path, tmp_path: Path) -> None:
    rerun(read_row(f"{results}:1"), tmp_path / "again", CPU, Silent())
    assert len((tmp_path / "again" / "results.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("acc", "width", "same", "agrees"),
    [(0.5, 0.02, True, True), (0.51, 0.02, False, True), (0.53, 0.02, False, False), (0.5001, None, False, False)],
)
def test_acc_agrees_within_the_interval_over_episodes(acc, width, same, agrees) -> None:
    row = {"acc": 0.5, "nmi": 0.1, "ari": 0.1, "acc_ci95": width}
    comparison = Comparison(row, row | {"acc": acc})
    assert (comparison.same, comparison.agrees) == (same, agrees)


@pytest.mark.parametrize(("right", "same", "agrees"), [(0.6, True, True), (0.61, False, True), (0.7, False, False)])
def test_right_lines_of_pools_are_compared_as_well(right, same, agrees) -> None:
    row = {"acc": 0.5, "nmi": 0.1, "ari": 0.1, "acc_ci95": 0.02, "acc_observed": 0.6, "grouping": "posterior"}
    comparison = Comparison(row, row | {"acc_observed": right})
    assert (comparison.same, comparison.agrees) == (same, agrees)
    assert f"{100 * right:.3f}" in comparison.text


def test_other_code_of_a_users_own_method_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_run, "load_dataset", tiny_benchmark)
    program = "from medi.methods.kmeans import KMeans\nclass Own(KMeans):\n    pass\n"
    own = tmp_path / "own.py"
    own.write_text(program)
    run = replace(KMEANS_RUN, method=f"{own}:Own")
    (row,) = run_grid([run], Setup(tmp_path / "out", 3, CPU, Silent()))
    again = rerun(row, None, CPU, Silent())
    own.write_text(program + "# edited\n")
    edited = rerun(row, None, CPU, Silent())
    assert again.same
    assert edited.same
    assert set(edited.text.splitlines()) - set(again.text.splitlines()) == {"Made with other code than before."}


@pytest.mark.parametrize("line", ["", ":0", ":x", ":3"])
def test_a_row_that_is_not_there_is_refused(results: Path, line: str) -> None:
    for text in (f"{results}{line}", f"none.jsonl{line}"):
        with pytest.raises(InputError, match=re.escape(text)):
            read_row(text)


def test_a_trial_on_held_out_classes_is_no_row_to_repeat(results: Path) -> None:
    row = json.loads(results.read_text().splitlines()[0]) | {"held_out": ["a"], "split": 0}
    results.write_text(json.dumps(row) + "\n")
    with pytest.raises(InputError, match="medi bench choose"):
        read_row(f"{results}:1")
