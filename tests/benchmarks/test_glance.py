"""Numbers at a glance: how pools are scored, that every approach is measured, and that nothing is measured twice."""

import sys

import glance
import numpy as np
import pytest
from blobs import blobs, known_blobs
from discover_draws import Draw, Source
from glance import figures
from script import run

from medi.core.files import read_journal


def source() -> Source:
    points, labels = blobs(range(12), each=14)
    return Source(points, labels, points, labels, shared=True)


def sorted_pool(truth: list[int], one_offs: int) -> Draw:
    """A draw of which only the truth matters; the last items are one-offs."""
    one_off = np.arange(len(truth)) >= len(truth) - one_offs
    nothing = np.zeros((0, 1), np.float32)
    pool = np.zeros((len(truth), 1), np.float32)
    return Draw(known_blobs(1), pool, np.array(truth), one_off, (nothing, np.zeros(0, int)), nothing)


def test_what_became_of_a_pool():
    problem = sorted_pool([0, 0, 0, 1, 1, -2, -2, -3, 2, 3], one_offs=2)
    labels = np.array([0, 0, -2, 1, 1, -2, -3, -3, -1, 1])
    assert figures(problem, labels, names_known=True) == {
        "acc": pytest.approx(4 / 5),
        "all right": pytest.approx(7 / 10),
        "groups": 2,
        "classes": 2,
        "known named": pytest.approx(2 / 3),
        "new called known": pytest.approx(1 / 5),
        "one-offs alone": pytest.approx(1 / 2),
    }


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
