"""The tables of pools, from rows made up here."""

import pool_page
from markdown_cells import cells

from medi.bench.grid import CLASSES, POOLS, Run

SAID = ("line_confidence", "novel_right", "novel_called_known", "known_named", "acc", "confidence")


def rows(method, dataset="glyphs", way=20, **scores):
    asked = Run(dataset, method, "default", None, way, 5, "honest", "episode", 0, grouping="posterior")
    fixed = dict.fromkeys(SAID, 0.5) | {"episodes": 10, "acc_observed": 0.6, "number_near": 0.1, "interval_holds": 0.8}
    named = [{"pool": pool, "classes": classes} for pool in POOLS for classes in CLASSES]
    return [asked.as_row() | one | fixed | scores for one in named]


def test_a_cell_has_its_three_settings_and_chance_where_the_number_is_told():
    plain, _, chance = cells(pool_page.tables(rows("plain") + rows("kmeans", "cifar10", 5))["right"])
    assert (plain["letters"], plain.get("CIFAR-10", ""), plain["n"]) == ("60 / 60 / 60", "", "1 x 10")
    assert 15 < float(chance["letters"]) < 30  # a hundred items in twenty groups
    assert 35 < float(chance["CIFAR-10"]) < 50  # 25 in five


def test_what_is_said_is_compared_on_the_sets_that_all_were_run_on():
    both = rows("plain") + rows("plain", "svhn", 5, acc_observed=0.0) + rows("kmeans")
    plain, kmeans = cells(pool_page.tables(both)["said"])
    assert plain["right lines"] == kmeans["right lines"] == "60"
