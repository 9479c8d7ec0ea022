"""The commands of results/missing.md run what is missing, and nothing that is there."""

import shlex

import missing
import pytest
import render

from medi.bench.candidates import NamedSettings
from medi.bench.grid import Run
from medi.bench.grid_options import runs_asked

ROWS = render.rows_of_today()


def runs_of(command):
    """The runs that a command of `medi bench run` asks for."""
    words = shlex.split(command)
    asked = {name.removeprefix("--"): value for name, value in zip(words[4::2], words[5::2], strict=True)}
    first, seeds, config = int(asked.pop("first-seed", 0)), int(asked.pop("seeds")), asked.pop("config", "default")
    return runs_asked(NamedSettings(config, {}), range(first, first + seeds), **asked)


@pytest.fixture(scope="module")
def asked():
    lines = [line for line in missing.page(ROWS).splitlines() if line.startswith("$ medi bench run")]
    return [run for line in lines for run in runs_of(line)]


def test_what_is_missing_is_asked_for_once(asked):
    parts = {part.name: part for part in (*missing.parts_of(missing.HEADLINE, missing.HEADLINE), *missing.more_parts())}
    by_options = {run for part in parts.values() for run in part.at(range(3)) if not any(r.changes for r in part.runs)}
    there = {Run.of_row(row) for row in ROWS if not missing.is_of_before(row)}
    assert by_options - there <= set(asked) <= by_options
    assert len(set(asked)) == len(asked)


def test_of_what_is_whole_nothing_is_asked():
    everything = [part.at(range(3)) for part in missing.parts_of(missing.HEADLINE, missing.HEADLINE)]
    rows = [run.as_row() for runs in everything for run in runs]
    assert "mp-published" not in missing.page(rows)
    some = [row for row in rows if row["method"] != "uno"]
    lacking = [line for line in missing.page(some).splitlines() if "--score pooled --balance off" in line]
    assert {run.method for line in lacking if "20,100" not in line for run in runs_of(line)} == {"uno"}


def test_cells_are_put_together_and_nothing_else_with_them():
    one = {"dataset": ("a",), "method": ("x",), "observations": (5,), "regime": ("honest",)}
    one |= {"classes": ("given",), "pool": ("pure",)}
    cells = [one | {"dataset": (name,), "method": (method,)} for name in "ab" for method in "xy"]
    (merged,) = missing.merged(cells)
    assert (merged["dataset"], merged["method"]) == (("a", "b"), ("x", "y"))
    assert len(missing.merged(cells[:3])) == 2
