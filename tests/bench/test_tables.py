import csv
import io
import json
from dataclasses import replace

import pytest

from medi.bench.grid import Run
from medi.bench.tables import METHOD_COLUMNS, read_results, render, summarise, tables_of
from medi.core.errors import InputError
from medi.core.files import append_to_journal

RUN = Run("cifar10", "mp", "default", "uniform", 5, 5, "honest", "episode", 0)
UNEQUAL, TOLD, GROUPED = replace(RUN, sizes="unequal"), replace(RUN, balance=True), replace(RUN, regime="grouped")


def row(run: Run, acc: float) -> dict:
    return run.as_row() | {"acc": acc, "nmi": 0.4, "ari": 0.3, "chance": 0.313, "acc_ci95": 0.01, "episodes": 600}


ROWS = [row(RUN, 0.60), row(replace(RUN, seed=1), 0.64), row(GROUPED, 0.70), row(replace(RUN, dataset="glyphs"), 0.90)]


def shown(rows: list[dict]) -> list[dict[str, str]]:
    return [dict(zip(METHOD_COLUMNS, line.cells(), strict=True)) for line in summarise(rows)]


def test_mean_deviation_and_n_are_over_seeds():
    honest, grouped, _ = shown(ROWS)
    assert (honest["ACC"], honest["std"], honest["n"]) == ("62.0", "2.8", "2")  # sqrt(2) * 0.02, the sample's
    assert (grouped["std"], grouped["n"]) == ("", "1")


def test_the_oracle_stands_beside_its_setting_and_nowhere_else_whatever_that_was_told():
    honest, grouped, glyphs = summarise(ROWS)
    assert honest.oracle == grouped.oracle == 0.70
    assert glyphs.oracle is None
    assert summarise([row(TOLD, 0.6), row(GROUPED, 0.7)])[0].oracle == 0.7


def test_the_papers_number_stands_beside_ours_or_is_said_not_to_be_published():
    honest, _, glyphs = shown(ROWS)
    assert honest["paper"] == "57.9 ± 0.1"
    assert glyphs["paper"] == "not published"


def test_a_method_that_assumes_equal_sizes_is_not_shown_as_one_that_does_not():
    untold, told = (
        row(replace(RUN, method="uno", balance=on), 0.5) | {"assumes_equal_sizes": True} for on in (False, True)
    )
    assert sorted(one["balance"] for one in shown([untold, told, *ROWS])) == ["assumed", "no", "no", "no", "yes"]


def test_what_was_told_and_unequal_sizes_are_lines_of_their_own():
    cells = shown([row(RUN, 0.5), row(TOLD, 0.7), row(UNEQUAL, 0.4) | {"ece": 0.126}])
    assert [(one["balance"], one["sizes"], one["ACC"], one["ECE"]) for one in cells] == [
        ("yes", "equal", "70.0", ""),
        ("no", "equal", "50.0", ""),
        ("no", "unequal", "40.0", "0.13"),
    ]


def test_the_last_row_of_a_repeated_run_counts():
    (line,) = summarise([row(RUN, 0.5), row(RUN, 0.6)])
    assert line.acc == (0.6,)


def test_a_row_of_an_earlier_version_is_of_equal_sizes():
    old = {name: value for name, value in row(RUN, 0.6).items() if name != "sizes"}
    assert summarise([old])[0].run == RUN


def test_csv_reads_back():
    table = list(csv.DictReader(io.StringIO(render(ROWS, "csv"))))
    assert table == shown(ROWS)


def test_markdown_and_latex_have_a_row_a_line_and_escape_what_they_must():
    odd = [row(replace(RUN, method="mp_x"), 0.5)]
    assert render(odd, "md").count("\n|") == 2
    latex = render(ROWS, "latex")
    assert latex.count(r"\\") == 4
    assert r"57.9 $\pm$ 0.1" in latex
    assert r"mp\_x" in render(odd, "latex")


def test_results_are_found_in_a_folder_and_below_it_and_in_the_order_of_folders(tmp_path):
    for name, result in zip("ab", ROWS, strict=False):
        (tmp_path / name).mkdir()
        append_to_journal(tmp_path / name / "results.jsonl", result)
    assert read_results(tmp_path) == ROWS[:2]
    assert read_results(tmp_path / "b", tmp_path / "a") == [ROWS[1], ROWS[0]]
    (tmp_path / "empty").mkdir()
    for nothing in ("empty", "none"):
        with pytest.raises(InputError, match=f"no results in {tmp_path / nothing}"):
            read_results(tmp_path / "a", tmp_path / nothing)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("acc", None), ("acc", "x"), ("acc", True), ("acc", float("nan")), ("nmi", ...), ("regime", "oracular"),
        ("sampler", 3), ("way", [1]), ("seed", "a"), ("observations", "x"), ("episodes", ...),
        ("score", "episode,pooled"), ("sizes", "odd"), ("diverged", 3),
    ],
)  # fmt: skip
def test_a_row_that_bench_run_did_not_write_is_refused_by_file_row_and_field(tmp_path, field, value):
    broken = {k: v for k, v in (row(RUN, 0.5) | {field: value}).items() if v is not ...}
    (tmp_path / "results.jsonl").write_text(f"{json.dumps(ROWS[0])}\n{json.dumps(broken)}\n")
    with pytest.raises(InputError, match=rf"results\.jsonl, row 2: {field} is"):
        read_results(tmp_path)


def test_a_diverged_training_has_no_scores_and_is_counted_beside_the_seeds_that_have(tmp_path):
    nothing = dict.fromkeys(("acc", "nmi", "ari", "acc_ci95"))
    append_to_journal(tmp_path / "results.jsonl", row(replace(RUN, seed=1), 0.5) | nothing | {"diverged": "loss nan"})
    append_to_journal(tmp_path / "results.jsonl", ROWS[0])
    (line,) = summarise(read_results(tmp_path))
    assert (line.acc, line.diverged) == ((0.6,), 1)


def pool_row(run, acc, **more):
    lines = {"acc_observed": acc, "line_confidence": 0.5, "line_ece": 0.1, "number": 4.0, "novel_right": acc}
    return row(run, acc) | lines | {"ece": 0.2, "compared_by": "pixels"} | more


def test_pools_have_a_table_of_their_own_and_say_nothing_of_what_was_not_there():
    pure = replace(RUN, grouping="posterior")
    mixed = replace(pure, classes="auto", pool="mixed")
    found = {"known_named": 0.25, "number_near": 1.0, "interval_holds": 1.0}
    rows = [row(RUN, 0.3), pool_row(pure, 0.5), pool_row(replace(pure, seed=1), 0.7), pool_row(mixed, 0.4, **found)]
    alone, pools = tables_of(rows)
    assert alone.columns == METHOD_COLUMNS
    first, second = (dict(zip(pools.columns, cells, strict=True)) for cells in pools.cells)
    names = ("number", "ACC", "std", "n", "known named", "within 20 %")
    assert [first[name] for name in names] == ["given", "60.0", "14.1", "2", "", ""]
    assert [second[name] for name in names] == ["auto", "40.0", "", "1", "25.0", "100.0"]
    assert [len(tables_of(some)) for some in (rows[:1], rows[1:], [])] == [1, 1, 0]
