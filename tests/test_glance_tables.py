"""The tables of numbers at a glance, from rows made up here."""

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
