"""Settings of DTC, and the named ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from medi.data.facts import CROPPED, FLIPPED, Augmentation
from medi.methods import starts
from medi.methods.adapting import Stage
from medi.methods.starts import Start
from medi.train.schedule import Drops, Schedule


def _on_bag(epochs: int, rate: float, decay: float = 0.0) -> Stage:
    schedule = Schedule(steps=1, rate=rate, optimiser="sgd", decay=decay)
    return Stage(epochs=epochs, batch=256, least=100, schedule=schedule)


@dataclass(frozen=True)
class DTCConfig:
    """Settings of DTC.

    Attributes:
        start: What the network learns from known classes.
        stage: Training on the observations.
        consistency: Weight of the squared difference between the assignments of two augmentations.
        warm_up: Share of the training before that difference counts.
        ramp: Share of what is left in which its weight is reached.
        refresh: Passes over the bag between two new targets.
        first: Training towards the targets of the start alone, before all this; None for none.
        by_cluster: Divide the divergence by the number of clusters too.
        augmentation: Random changes of images; None for the dataset's own.
    """

    start: Start = field(default_factory=Start)
    stage: Stage = field(default_factory=lambda: _on_bag(epochs=30, rate=0.01, decay=5e-4))
    consistency: float = 10.0
    warm_up: float = 0.1
    ramp: float = 1.0
    refresh: int = 5
    first: Stage | None = None
    by_cluster: bool = False
    augmentation: Augmentation | None = None


FIVE_CLASSES = Start(schedule=Schedule(steps=1500, shape="onecycle", decay=5e-4))
"""15 to 20 epochs of CIFAR-10 and SVHN."""
CPU = DTCConfig(
    starts.CPU,
    stage=Stage(epochs=20, batch=100, least=30, schedule=Schedule(steps=1, rate=0.01, optimiser="sgd")),
)


def _full(
    steps: int,
    epochs: int = 100,
    rate: float = 0.05,
    network: str = "resnet18",
    refresh: int = 5,
    augmentation: Augmentation = FLIPPED,
) -> DTCConfig:
    """The published recipe with a start of so many steps: 180 epochs. The rates of the start are ours."""
    start = Drops(steps=steps, rate=0.1, optimiser="sgd", decay=1e-4, at=(0.5, 0.75))
    return DTCConfig(
        Start("classes", network, batch=128, schedule=start),
        first=_constant(10, 0.1, "sgd", batch=128),
        stage=_constant(epochs, rate, "sgd", batch=128),
        warm_up=0.0,
        ramp=5 / epochs,
        refresh=refresh,
        by_cluster=True,
        augmentation=augmentation,
    )


def _constant(epochs: int, rate: float, optimiser: Literal["adam", "sgd"], batch: int) -> Stage:
    return Stage(epochs, batch, schedule=Schedule(steps=1, rate=rate, optimiser=optimiser, shape="constant"))


CONFIGS: Mapping[str, DTCConfig] = MappingProxyType(
    {
        "default": DTCConfig(),
        "cifar10": DTCConfig(FIVE_CLASSES),
        "svhn": DTCConfig(FIVE_CLASSES, _on_bag(epochs=30, rate=0.002)),
        "svhn-fast": DTCConfig(FIVE_CLASSES, _on_bag(epochs=30, rate=0.01)),
        "svhn-faster": DTCConfig(FIVE_CLASSES, _on_bag(epochs=30, rate=0.05)),
        "characters": DTCConfig(
            starts.CHARACTERS, Stage(epochs=60, batch=256, least=150, schedule=Schedule(steps=1)), consistency=100.0
        ),
        "characters-sgd": DTCConfig(starts.CHARACTERS, consistency=100.0),
        "cpu-short": replace(CPU, stage=replace(CPU.stage, least=10)),
        "cpu": CPU,
        "cpu-long": replace(CPU, stage=replace(CPU.stage, least=100)),
        "full": _full(35_000),
        "full-svhn": _full(28_000, epochs=60, rate=0.001, augmentation=CROPPED),
        "full-cifar100": _full(56_000, network="conv5-wide", refresh=10),
        "full-omniglot": DTCConfig(
            starts.CHARACTERS_FULL,
            first=_constant(10, 1e-3, "adam", batch=100),
            stage=_constant(90, 1e-3, "adam", batch=100),
            consistency=100.0,
            warm_up=0.0,
            ramp=5 / 90,
            refresh=1,
            by_cluster=True,
        ),
    }
)
CHOSEN: Mapping[str, str] = MappingProxyType(
    {"glyphs": "cpu", "rules": "cpu", "cifar10": "cifar10", "svhn": "svhn-fast", "omniglot": "characters-sgd"}
)
RECIPES: Mapping[str, str] = MappingProxyType({name: f"full-{name}" for name in ("svhn", "cifar100", "omniglot")})
