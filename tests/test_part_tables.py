"""The table of a method taken apart, from rows made up here."""

from dataclasses import replace

import part_tables
from markdown_cells import cells

from medi.bench.grid import Run

WHOLE = Run("omniglot", "mm", "whole", "uniform", 20, 5, "honest", "episode", 0, balance=True)
LESS = replace(WHOLE, config="no-inner-steps")


def rows(run: Run, *scores: float) -> list[dict]:
    fixed = {"nmi": 0.4, "ari": 0.3, "chance": 0.167, "acc_ci95": 0.01, "episodes": 200}
    return [replace(run, seed=seed).as_row() | fixed | {"acc": acc} for seed, acc in enumerate(scores)]


def test_the_first_settings_are_the_whole_and_the_others_have_their_difference_to_it():
    found = cells(part_tables.parts(rows(WHOLE, 0.5, 0.6, 0.7) + rows(LESS, 0.49, 0.58, 0.67), "mm"))
    assert [line["Omniglot"] for line in found] == ["16.7", "60.0 ± 10.0", "-2.0 ± 2.5"]  # 1 * t(0.975, 2) / sqrt(3)
    assert [line[""] for line in found] == ["chance", "whole", "no inner steps"]


def test_a_set_is_a_column_and_what_was_not_measured_is_left_empty():
    mine = rows(WHOLE, 0.5, 0.6) + rows(LESS, 0.5) + rows(replace(WHOLE, dataset="cifar10", way=5), 0.4)
    (_, whole, less) = cells(part_tables.parts(mine, "mm"))
    assert (whole["CIFAR-10"], less["CIFAR-10"]) == ("40.0", "")
    assert less["Omniglot"] == "+0.0"
    assert part_tables.parts([], "mm") == part_tables.NOT_YET
