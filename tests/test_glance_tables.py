"""The tables of numbers at a glance, from rows made up here."""

from statistics import stdev

import glance_tables
from markdown_cells import cells

ONE = {"acc": 0.5, "all right": 0.6, "groups": 4, "classes": 5, "seconds": 2.0}
SURE = {"bins": {"lines": [4, 6], "confidence": [1.0, 5.0], "right": [1, 6]}}


def row(pool: str, name: str = "garden", draw: int = 0, **approaches: dict) -> dict:
    ours = {"medi": ONE | SURE} | ({"medi --only-novel": ONE | SURE} if pool == "pure" else {})
    return {"set": name, "groups": 5, "draw": draw, "pool": pool, "approaches": ours | approaches}


def lines(rows: list[dict], pool: str) -> dict[str, dict[str, str]]:
    """The lines of a table of the page by their first cell."""
    return {line[""]: line for line in cells(glance_tables.page_tables(rows)[pool])}


def test_a_set_has_a_column_and_the_best_guess_is_bold():
    rows = [
        row("pure", HDBSCAN=ONE | {"seconds": 0.01}),
        row("mixed", HDBSCAN=ONE | {"acc": 0.7, "groups": 9}),
        row("mixed", "cifar10", HDBSCAN=ONE | {"acc": 0.3}),
    ]
    found = lines(rows, "mixed")
    ours, theirs = found["MEDI"], found["HDBSCAN"]
    assert list(ours)[1:3] == ["garden", "CIFAR-10"]
    assert (ours["garden"], theirs["garden"]) == ("50", "**70**")
    assert (ours["CIFAR-10"], theirs["CIFAR-10"]) == ("**50**", "30")
    assert (ours["number off by"], theirs["number off by"]) == ("**20**", "50")
    assert [line["time"] for line in lines(rows, "pure").values()] == ["1", "1/200"]


def test_what_was_not_measured_is_no_number():
    rows = [row("pure"), row("mixed", HDBSCAN=ONE | {"one-offs alone": 0.5})]
    found = lines(rows, "mixed")
    assert found["HDBSCAN"]["one-offs alone"] == "50"
    assert found["MEDI"]["one-offs alone"] == ""
    assert "known named" not in found["HDBSCAN"]
    assert set(glance_tables.page_tables([]).values()) == {glance_tables.NOT_YET}


def test_every_case_has_its_spread_and_the_difference_on_the_same_draws():
    rows = [row("mixed", draw=draw, Ward=ONE | {"acc": acc}) for draw, acc in enumerate([0.4, 0.7])]
    ours, ward = cells(glance_tables.cases_table(rows))
    assert (ours["approach"], ours["ACC"], ours["all photos right"]) == ("medi", "50 ± 0", "60 ± 0")
    assert (ours["stated"], ours["right"]) == ("60", "70")
    assert ward["ACC"] == f"55 ± {100 * stdev([0.4, 0.7]):.0f}"
    assert ward["less `medi`'s"] == f"+5.0 ± {stdev([-10, 20]) / 2**0.5:.1f}"
    assert "stated" not in ward or ward["stated"] == ""
