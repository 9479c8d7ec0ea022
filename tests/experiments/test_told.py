"""What is done with known sizes is measured on held-out known classes."""

import told
import torch
from tiny import tiny_benchmark

from medi.core.progress import Silent
from medi.nn.context import Context


def test_every_rule_is_asked_of_the_same_outputs(monkeypatch):
    quick = {"pretraining": {"network": "mlp", "schedule": {"steps": 2}}, "stage": {"epochs": 1, "least_steps": 2}}
    monkeypatch.setattr(told, "PERCEPTRON", quick | {"hidden": 8, "projection": 4})
    context = Context(torch.device("cpu"), 0, None, Silent())
    row = told.measure(tiny_benchmark(), "uno", 0, context, bags=2)
    assert set(row["acc"]) == set(told.RULES)
    assert all(0.5 <= acc <= 1 for acc in row["acc"].values())  # of two classes
    heading, line = told.told_table([row])
    assert len(line) == len(heading)
