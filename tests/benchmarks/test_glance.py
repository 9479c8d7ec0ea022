"""Numbers at a glance: every approach is measured, and nothing is measured twice."""

import sys

import glance
from blobs import blobs
from discover_draws import Source
from script import run

from medi.core.files import read_journal


def source() -> Source:
    points, labels = blobs(range(12), each=14)
    return Source(points, labels, points, labels, shared=True)


def test_every_approach_is_measured_in_both_pools_and_rows_that_are_there_are_not_made_again(
    tmp_path, capsys, monkeypatch, few_bags
):
    monkeypatch.setattr(glance, "sources", lambda *_: {"toys": source})
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", ["glance.py", "--out", str(tmp_path), "--draws", "1"])
        run(glance.main, "what it does")
    pure, mixed = (row["approaches"] for row in read_journal(tmp_path / "draws.jsonl"))
    assert pure.keys() - mixed.keys() == {"medi --only-novel", "medi, told"}
    assert mixed.keys() - pure.keys() == {"medi, names as groups"}
    for one in (*pure.values(), *mixed.values()):
        assert one["seconds"] >= 0
        assert 0 <= one["acc"] <= 1
    assert pure["whitened Ward, told"]["acc"] == pure["medi, told"]["acc"] == 1
    assert "| toys | mixed | 5 | 1 |" in (tmp_path / "table.md").read_text()
    assert capsys.readouterr().out.count("toys 5 7000") == 2
