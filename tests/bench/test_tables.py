import csv
import io
import json
from dataclasses import replace

import pytest

from medi.bench.grid import Run
from medi.bench.tables import COLUMNS, read_results, render, summarise
from medi.errors import InputError
from medi.runtime.files import append_to_journal

RUN = Run("cifar10", "mp", "default", "uniform", 5, 5, "honest", "episode", 0)


def row(run: Run, acc: float) -> dict:
    return run.as_row() | {
        "acc": acc,
        "nmi": 0.4,
        "ari": 0.3,
        "chance": 0.313,
        "acc_ci95": 0.01,
        "episodes": 600,
    }


def rows() -> list[dict]:
    return [
        row(RUN, 0.60),
        row(replace(RUN, seed=1), 0.64),
        row(replace(RUN, regime="grouped"), 0.70),
        row(replace(RUN, dataset="glyphs", way=20), 0.90),
    ]


def test_mean_deviation_and_n_are_over_seeds():
    honest = summarise(rows())[0]
    cells = dict(zip(COLUMNS, honest.cells(), strict=True))
    assert cells["ACC"] == "62.0"
    assert cells["std"] == "2.8"  # sqrt(2) * 0.02, the sample's
    assert cells["n"] == "2"


def test_the_oracle_stands_beside_its_setting_and_nowhere_else():
    honest, grouped, glyphs = summarise(rows())
    assert honest.oracle == grouped.oracle == 0.70
    assert glyphs.oracle is None


def test_the_papers_number_stands_beside_ours_or_is_said_not_to_be_published():
    honest, _, glyphs = (dict(zip(COLUMNS, line.cells(), strict=True)) for line in summarise(rows()))
    assert honest["paper"] == "57.9 ± 0.1"
    assert glyphs["paper"] == "not published"


def test_one_seed_has_no_deviation():
    assert dict(zip(COLUMNS, summarise(rows())[2].cells(), strict=True))["std"] == ""


def test_a_method_that_assumes_equal_sizes_is_not_shown_as_one_that_does_not():
    assuming = {"assumes_equal_sizes": True}
    untold, told = (row(replace(RUN, method="uno", balance=balance), 0.5) | assuming for balance in (False, True))
    shown = [dict(zip(COLUMNS, line.cells(), strict=True))["balance"] for line in summarise([untold, told, *rows()])]
    assert sorted(shown) == ["assumed", "no", "no", "no", "yes"]
    assert "assumed:" in render(summarise([untold]), "md")
    assert "assumed:" not in render(summarise([told, *rows()]), "md")


def test_the_last_row_of_a_repeated_run_counts():
    (line,) = summarise([row(RUN, 0.5), row(RUN, 0.6)])
    assert line.acc == (0.6,)


def test_csv_reads_back():
    lines = summarise(rows())
    table = list(csv.DictReader(io.StringIO(render(lines, "csv"))))
    assert [r["ACC"] for r in table] == ["62.0", "70.0", "90.0"]
    assert tuple(table[0]) == COLUMNS


def test_markdown_and_latex_have_a_row_a_line_and_escape_what_they_must():
    lines = summarise([row(replace(RUN, method="mp_x"), 0.5)])
    assert render(lines, "md").count("\n|") == 2
    latex = render(summarise(rows()), "latex")
    assert latex.count(r"\\") == 4
    assert r"57.9 $\pm$ 0.1" in latex
    assert r"mp\_x" in render(lines, "latex")


def test_results_are_found_in_a_folder_and_below_it(tmp_path):
    for name, result in zip("ab", rows(), strict=False):
        (tmp_path / name).mkdir()
        append_to_journal(tmp_path / name / "results.jsonl", result)
    assert len(read_results(tmp_path)) == 2
    assert len(read_results(tmp_path / "a")) == 1
    assert read_results(tmp_path / "b", tmp_path / "a") == [rows()[1], rows()[0]]
    with pytest.raises(InputError, match=f"no results in {tmp_path / 'c'}"):
        read_results(tmp_path / "a", tmp_path / "c")


def test_of_a_run_in_several_folders_the_last_ones_counts(tmp_path):
    for name, acc in (("old", 0.5), ("new", 0.6)):
        (tmp_path / name).mkdir()
        append_to_journal(tmp_path / name / "results.jsonl", row(RUN, acc))
    (line,) = summarise(read_results(tmp_path / "old", tmp_path / "new"))
    assert line.acc == (0.6,)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("acc", None), ("acc", "x"), ("acc", True), ("nmi", ...), ("regime", "oracular"), ("sampler", 3), ("way", [1]),
        ("seed", "a"), ("observations", "x"), ("episodes", ...), ("score", "episode,pooled"),
    ],
)  # fmt: skip
def test_a_row_that_bench_run_did_not_write_is_refused_by_file_row_and_field(tmp_path, field, value):
    append_to_journal(tmp_path / "results.jsonl", row(RUN, 0.5))
    broken = {k: v for k, v in (row(RUN, 0.5) | {field: value}).items() if v is not ...}
    append_to_journal(tmp_path / "results.jsonl", broken)
    with pytest.raises(InputError, match=rf"results\.jsonl, row 2: {field} is"):
        read_results(tmp_path)


def test_a_score_that_is_no_number_is_refused(tmp_path):
    (tmp_path / "results.jsonl").write_text(json.dumps(row(RUN, float("nan"))) + "\n")
    with pytest.raises(InputError, match="acc is nan"):
        read_results(tmp_path)


def test_no_results_is_an_error_with_the_cure(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="no results in"):
            read_results(folder)


def test_what_was_told_and_unequal_sizes_are_lines_of_their_own():
    told, unequal = replace(RUN, balance=True), replace(RUN, sizes="unequal")
    lines = summarise([row(RUN, 0.5), row(told, 0.7), row(unequal, 0.4) | {"ece": 0.126}])
    cells = [dict(zip(COLUMNS, line.cells(), strict=True)) for line in lines]
    assert [(one["balance"], one["sizes"], one["ACC"], one["ECE"]) for one in cells] == [
        ("yes", "equal", "70.0", ""),
        ("no", "equal", "50.0", ""),
        ("no", "unequal", "40.0", "0.13"),
    ]
    assert "unequal: 1 to twice" in render(lines, "md")
    assert "unequal: 1 to twice" not in render(lines[:2], "md")


def test_the_oracle_stands_beside_a_run_whatever_that_was_told():
    told = replace(RUN, balance=True)
    assert summarise([row(told, 0.6), row(replace(RUN, regime="grouped"), 0.7)])[0].oracle == 0.7


def test_a_row_of_an_earlier_version_is_of_equal_sizes():
    old = {name: value for name, value in row(RUN, 0.6).items() if name != "sizes"}
    assert summarise([old])[0].run == RUN
