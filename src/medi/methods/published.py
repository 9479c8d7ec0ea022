"""Pretraining that DTC, RS, UNO and SimGCD share."""

from __future__ import annotations

from medi.methods.pretraining import Pretraining
from medi.train.schedule import Schedule

CPU = Pretraining("classes", "conv4", batch=128, schedule=Schedule(steps=80, rate=3e-3, shape="onecycle"))
CHARACTERS_FULL = Pretraining(
    "prototypes", "conv4-wide", batch=200, schedule=Schedule(steps=20_000, shape="halve", halve_every=4000)
)


def characters(steps: int) -> Pretraining:
    """On Omniglot, all learn from prototypes first; so many steps."""
    return Pretraining("prototypes", "conv4-wide", batch=400, schedule=Schedule(steps))


def classes_full(known: int) -> Pretraining:
    """As UNO's authors do it: 200 epochs of so many known images."""
    schedule = Schedule(200 * known // 256, 0.1, "sgd", decay=1e-4, shape="onecycle")
    return Pretraining("classes", batch=256, schedule=schedule)
