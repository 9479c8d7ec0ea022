"""Differences that are paired by seed, beside scipy's paired t-test."""

from dataclasses import replace

import pytest
from scipy.stats import ttest_rel

from medi.bench.grid import Run
from paper.paired import Difference, paired_difference, render_gains, sampler_gains

RUN = Run("cifar10", "mp", "default", "uniform", 5, 5, "honest", "episode", 0)
CATA = replace(RUN, sampler="cata")
PLAIN_ACC, CATA_ACC = [0.60, 0.52, 0.71, 0.64], [0.63, 0.50, 0.75, 0.70]


def rows(run: Run, scores: list[float], first_seed: int = 0) -> list[dict]:
    return [
        replace(run, seed=seed).as_row() | {"acc": acc, "episodes": 600} for seed, acc in enumerate(scores, first_seed)
    ]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_mean_and_interval_are_those_of_scipys_paired_t_test(n):
    found = paired_difference(rows(CATA, CATA_ACC[:n]), rows(RUN, PLAIN_ACC[:n]))
    low, high = ttest_rel(CATA_ACC[:n], PLAIN_ACC[:n]).confidence_interval(0.95)
    assert found.n == n
    assert found.mean == pytest.approx((low + high) / 2)
    assert found.half_width == pytest.approx((high - low) / 2)


def test_one_seed_has_no_interval_and_none_no_difference():
    assert paired_difference(rows(CATA, [0.5]), rows(RUN, [0.25])) == Difference(0.25, None, 1)
    assert paired_difference(rows(CATA, [0.5]), rows(RUN, [0.25], first_seed=7)) is None


def test_rows_that_cannot_be_paired_are_refused():
    with pytest.raises(ValueError, match="rows of several settings"):
        paired_difference(rows(CATA, CATA_ACC) + rows(RUN, PLAIN_ACC), rows(RUN, PLAIN_ACC))
    with pytest.raises(ValueError, match="other questions cannot be paired"):
        paired_difference(rows(replace(CATA, observations=1), CATA_ACC), rows(RUN, PLAIN_ACC))


def test_what_cata_adds_is_found_for_every_setting_that_has_both_samplers():
    one = replace(CATA, observations=1)
    shorter = [row | {"episodes": 20} for row in rows(replace(CATA, way=3), CATA_ACC)]
    others = rows(one, CATA_ACC) + shorter + rows(replace(RUN, way=3), PLAIN_ACC)
    gains = sampler_gains(rows(RUN, PLAIN_ACC) + rows(CATA, CATA_ACC) + others)
    assert gains == {CATA: paired_difference(rows(CATA, CATA_ACC), rows(RUN, PLAIN_ACC))}
    assert f"| cifar10 | 5-way 5-obs | mp/default | honest | {gains[CATA].points()} | 4 |" in render_gains(gains)
