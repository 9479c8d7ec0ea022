"""`benchmarks/pair_incentive.py`: costs against whole steps of pairs, and the page's table."""

from pathlib import Path

import pytest
import torch
from studies import benchmark

from medi.methods.rs_loss import shared_cluster_loss

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(("classes", "each", "own"), [(5, 4, 0.7), (2, 8, 0.6), (3, 2, 1 / 3)])
def test_the_cost_is_that_of_a_whole_step(classes, each, own):
    study = benchmark("pair_incentive")
    p = study.probabilities(own, classes).repeat(each, 1)
    whole = shared_cluster_loss(p, p, torch.eye(len(p), dtype=p.dtype))
    assert study.cost(own, study.Setting(classes, each, 64, 5.0)) == pytest.approx(float(whole))


def test_fewer_images_of_a_class_pay_more_for_right_clusters():
    study = benchmark("pair_incentive")
    gains = [study.best(study.Setting(5, each, 64, 5.0))[1] for each in (32, 16, 8, 4, 2)]
    assert gains == sorted(gains)
    assert gains[0] > 0


def test_the_table_on_the_page_is_the_scripts():
    assert benchmark("pair_incentive").table() in (ROOT / "docs" / "baselines.md").read_text()
