"""What RS's loss pays for right clusters, when its rank statistics see nothing but that an image is like itself.

    python benchmarks/pair_incentive.py

All pairs of different images are then taken to be of two classes, those of one class as well, and every image lies in
its own cluster with the same probability. For a number of classes, and of images of each in a step, the lines give: the
probability that costs least (`best`); how much less it costs than equal probabilities for all clusters, which is what a
network falls back to (`gain`, in thousandths); and which share of the images may change their cluster between two views
before the agreement of views, at its weight and beside so many known images, costs more than that (`flips`). Nothing is
trained: the numbers follow from the formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from medi.methods.rs_loss import EPS

GRID = 400


@dataclass(frozen=True)
class Setting:
    """Classes, images of each in a step, known images in a step and weight of the agreement of views."""

    classes: int
    each: float
    known: int
    weight: float


SETTINGS = (
    Setting(5, 25.6, 64, 50.0),
    Setting(5, 12.8, 64, 50.0),
    Setting(5, 9.8, 79, 50.0),  # 128 of SVHN's 73,257 training images, of which 27,908 show novel digits
    Setting(5, 4, 32, 50.0),
    Setting(5, 4, 32, 5.0),
    Setting(2, 64, 64, 50.0),
    Setting(2, 32, 64, 50.0),
    Setting(2, 4, 32, 50.0),
    Setting(2, 4, 32, 5.0),
    Setting(5, 8, 32, 50.0),
    Setting(5, 8, 32, 0.5),
    Setting(3, 8, 32, 50.0),
)


def probabilities(own: float, classes: int) -> Tensor:
    """(classes, classes) of one image a class: `own` in its own cluster, the rest equally elsewhere."""
    other = (1 - own) / (classes - 1)
    return torch.full((classes, classes), other, dtype=torch.float64).fill_diagonal_(own)


def cost(own: float, setting: Setting) -> float:
    """The mean pair loss of a step in which every image lies in its own cluster with probability `own`."""
    p = probabilities(own, setting.classes)
    within, between = float(p[0] @ p[0]), float(p[0] @ p[1])
    itself = 1 / (setting.each * setting.classes)  # the share of pairs of an image with itself
    of_one = 1 / setting.classes - itself
    apart = of_one * math.log(1 - within + EPS) + (1 - 1 / setting.classes) * math.log(1 - between + EPS)
    return -itself * math.log(within + EPS) - apart


def best(setting: Setting) -> tuple[float, float, float]:
    """The best probability, its gain over equal ones, and the share of flips that takes it away."""
    k = setting.classes
    costs = {own: cost(own, setting) for own in torch.linspace(1 / k, 1, GRID + 1, dtype=torch.float64).tolist()}
    own = min(costs, key=lambda value: costs[value])
    gain = cost(1 / k, setting) - costs[own]
    p = probabilities(own, k)
    difference = float((p[0] - p[1]).square().mean())  # of two views in two clusters, as the mean over clusters
    novel = setting.each * k / (setting.each * k + setting.known)
    return own, gain, gain / (setting.weight * novel * difference)


def table() -> str:
    """All settings, as markdown."""
    lines = ["| classes | images of each | known images | weight | best | gain | flips |", "| --- " * 7 + "|"]
    for setting in SETTINGS:
        own, gain, flips = best(setting)
        size = f"{setting.classes} | {setting.each:g} | {setting.known} | {setting.weight:g}"
        lines.append(f"| {size} | {100 * own:.0f} % | {1000 * gain:.1f} | {100 * flips:.2g} % |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
