"""`medi bench paper`: in a clone it works, elsewhere it says what it needs."""

import pytest

import medi
from medi.core.files import read_journal

SMALL = ("--dataset", "rules", "--part", "kmeans", "--episodes", "3", "--device", "cpu")


def test_in_a_clone_it_writes_rows_and_tables(medi_, tmp_path):
    done = medi_("bench", "paper", *SMALL, "--seeds", "1", "--jobs", "2", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert {row["observations"] for row in read_journal(tmp_path / "out" / "results.jsonl")} == {5, 1}
    assert done.out == f"wrote {tmp_path / 'out' / 'paper' / 'kmeans.md'}\n"


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """As if this were an installed package, used in an empty folder."""
    monkeypatch.setattr(medi, "__file__", str(tmp_path / "lib" / "site-packages" / "medi" / "__init__.py"))
    monkeypatch.chdir(tmp_path)


def test_an_installed_wheel_says_in_one_line_what_is_needed_and_where_it_looked(medi_, tmp_path, installed):
    done = medi_("bench", "paper", *SMALL, "--out", tmp_path / "out")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert str(tmp_path / "lib" / "paper") in done.err
    assert not (tmp_path / "out").exists()
