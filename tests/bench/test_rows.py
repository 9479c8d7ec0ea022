"""Rows that were damaged, or made by somebody: refused by number and field, or shown."""

import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd import odd_values

from medi.bench.figures import draw_comparison
from medi.bench.grid import Run
from medi.bench.rerun import read_row, run_of
from medi.bench.tables import read_results, render
from medi.core.errors import InputError
from medi.core.progress import Silent
from medi.schemas import schema

RESULTS = Path(__file__).resolve().parents[2] / "results"
ROWS = [json.loads(path.read_text().splitlines()[0]) for path in sorted(RESULTS.glob("*/results.jsonl"))]
FIELDS = sorted(schema("row")["properties"])


@settings(max_examples=150, deadline=None)
@given(row=st.sampled_from(ROWS), field=st.sampled_from(FIELDS), value=odd_values())
def test_a_row_with_anything_else_in_it_is_refused_or_shown(row, field, value):
    with TemporaryDirectory() as folder, suppress(InputError):
        path = Path(folder) / "results.jsonl"
        path.write_text(json.dumps(row | {field: value}) + "\n")
        rows = read_results(path)
        for form in ("md", "csv", "latex"):
            assert "nan" not in render(rows, form)
        with suppress(InputError):
            plt.close(draw_comparison(rows, "episode", None, None, "equal"))
        Run.of_row(rows[0])
        run_of(read_row(f"{path}:1"), Silent())


@pytest.mark.parametrize("depth", [80, 900, 5_000])
def test_a_row_that_is_nested_deeply_is_refused_by_its_line(tmp_path, depth):
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(ROWS[0] | {"settings": "@"}).replace('"@"', '{"a":' * depth + "1" + "}" * depth) + "\n")
    with pytest.raises(InputError, match="line 1"):
        read_results(path)


def test_a_row_of_pools_needs_what_the_table_of_pools_shows(tmp_path):
    path = tmp_path / "results.jsonl"
    row = next(row for row in ROWS if "grouping" not in row)
    path.write_text(json.dumps(row | {"grouping": "posterior"}) + "\n")
    with pytest.raises(InputError, match="compared_by"):
        read_results(path)
