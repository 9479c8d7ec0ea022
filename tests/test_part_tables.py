"""What parts of a method are worth, from rows made up here."""

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
