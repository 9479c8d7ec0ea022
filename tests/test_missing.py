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
