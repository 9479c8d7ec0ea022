from convergence import convergence_table
from stability import stability_table
from theory_tables import TABLES, markdown_tables

from medi.runtime.files import append_to_journal


def estimate(n: int, tau: float, low: float, high: float) -> dict:
    return {"job": {"dimension": 2, "n": n}, "exact": 0.5, "tau": tau, "low": low, "high": high}


def training(seed: int, total: float) -> dict:
    losses = {"train": 0.1, "fresh": 0.2, "novel": 0.3, "beta": 0.01 * (seed + 1), "total": total, "max_loss": 1.0}
    return {"job": {"method": "mp", "n": 100, "seed": seed}, "losses": {"zero-one": losses}}


def test_errors_are_averaged_and_intervals_that_hold_the_truth_counted():
    rows = [estimate(10, 0.6, 0.4, 0.8), estimate(10, 0.4, 0.3, 0.45), estimate(20, 0.5, 0.5, 0.5)]
    assert convergence_table(rows) == [["dimensions", "n = 10", "n = 20"], ["2", "0.100 (1 of 2)", "0.000 (1 of 1)"]]


def test_a_vacuous_bound_is_shown_as_one():
    heading, cells = stability_table([training(0, 3.0), training(1, 5.0)])
    shown = dict(zip(heading, cells, strict=True))
    assert shown["bound"] == "4.0 > 1"
    assert shown["β found"] == "0.015 ± 0.007"
    assert shown["β needed"] == "0.0172"  # (1 - s) / (2 + 400 s), s = sqrt(log(20) / 200) = 0.1224
    assert stability_table([training(0, 0.4)])[1][-1] == "0.400 ± 0.000"


def test_tables_come_from_the_journals_of_a_folder(tmp_path, monkeypatch):
    for row in (estimate(10, 0.6, 0.4, 0.8), estimate(20, 0.5, 0.4, 0.6)):
        append_to_journal(tmp_path / "convergence.jsonl", row)
    monkeypatch.setattr("theory_tables.TABLES", {"convergence": TABLES["convergence"]})
    assert markdown_tables(tmp_path)["convergence"].splitlines() == [
        "| dimensions | n = 10 | n = 20 |",
        "| --- | --- | --- |",
        "| 2 | 0.100 (1 of 1) | 0.000 (1 of 1) |",
    ]
