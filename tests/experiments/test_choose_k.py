"""Estimates of the number of classes, ours and others, on classes that are plainly there."""

import choose_k
import numpy as np
import pytest
import torch
from medi.discovery.count import Pool
from rivals import constrained_kmeans, dtc_probe

from medi.metrics import acc


def world(classes: int, items: int, seed: int) -> Pool:
    """Classes far apart."""
    g = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(items)
    centres = 20 * torch.randn(classes, 8, generator=g, dtype=torch.float64)
    return Pool(centres[labels] + torch.randn(len(labels), 8, generator=g, dtype=torch.float64), labels)


def test_constrained_kmeans_keeps_anchors_and_finds_the_other_classes():
    pool = world(6, 8, 0)
    tied = pool.labels < 2
    free = pool.points[~tied]
    labels, centres = constrained_kmeans(
        free, pool.points[tied], pool.labels[tied], 4, torch.Generator().manual_seed(3)
    )
    assert acc(pool.labels[~tied], labels) > 0.7
    assert centres.shape == (6, 8)


def test_dtc_finds_the_number_of_classes_that_are_plainly_there():
    known, novel = world(10, 8, 0), world(5, 8, 1)
    found = [
        dtc_probe(novel.points, known.points, known.labels, np.arange(2, 12), torch.Generator().manual_seed(seed))
        for seed in range(5)
    ]
    assert abs(np.median(found) - 5) <= 1


def test_figures_of_a_method_are_those_of_its_answers(monkeypatch):
    answers = iter([5, 7, 4, 5])
    monkeypatch.setattr(choose_k, "dtc_probe", lambda *_: next(answers))
    found = choose_k.measure(world(14, 8, 0), world(6, 8, 1), way=5, size=5, episodes=4)
    assert found["dtc probe"]["mae"] == pytest.approx(0.75)
    assert found["dtc probe"]["within_20"] == pytest.approx(0.75)
    assert found["dtc probe"]["mean_answer"] == pytest.approx(5.25)
    assert found["silhouette"]["mae"] == 0
    assert 0 <= found["calibrated"]["interval_holds"] <= 1


def test_a_single_episode_has_no_deviation():
    found = choose_k.measure(world(14, 8, 0), world(6, 8, 1), way=5, size=5, episodes=1)
    assert found["silhouette"]["mae_std"] == 0


def test_tables_average_over_the_numbers_of_items():
    def row(method: str, size: int, mae: float, **more: float | None) -> dict:
        return {"dataset": "glyphs", "way": 5, "size": size, "method": method, "mae": mae, "within_20": 0.5} | more

    certain = {"interval_holds": 1.0, "certain": 0.5, "within_20_if_certain": 0.8}
    never = {"interval_holds": 0.8, "certain": 0.0, "within_20_if_certain": None}
    rows = [row("calibrated", 3, 1.0, **certain), row("calibrated", 5, 2.0, **never)]
    rows += [row("silhouette", 3, 4.0), row("dtc probe", 3, 5.0)]
    rows += [other | {"way": 10} for other in rows]
    _, _, *lines = choose_k.table(rows).splitlines()  # no line of 20 classes: there was no such bag
    assert lines == [f"| glyphs | {way} | 1.5 | 50 % | 4.0 | 50 % | 5.0 | 50 % |" for way in (5, 10)]
    assert "| glyphs | 90 % | 25 % | 80 % |" in choose_k.intervals(rows)
