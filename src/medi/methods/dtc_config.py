"""Settings of DTC, and the named ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from medi.data.facts import CROPPED, FLIPPED, Augmentation
from medi.methods import pretraining
from medi.methods.bag_training import Stage
from medi.methods.pretraining import Start
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
SGD_START = Start(schedule=Schedule(steps=4000, rate=0.1, optimiser="sgd", decay=5e-4, shape="onecycle"))
CPU = DTCConfig(
    pretraining.CPU,
    stage=Stage(epochs=20, batch=100, least=30, schedule=Schedule(steps=1, rate=0.01, optimiser="sgd")),
)


def _long(steps: int, network: str = "resnet18") -> Start:
    """A start as long as the authors': 180 epochs of the known images. The rates are ours."""
    schedule = Drops(steps=steps, rate=0.1, optimiser="sgd", decay=1e-4, at=(0.5, 0.75))
    return Start("classes", network, batch=128, schedule=schedule)


def _full(
    start: Start,
    stage: Stage,
    *,
    first: int = 10,
    decay: float = 0.0,
    refresh: int = 5,
    augmentation: Augmentation | None = None,
) -> DTCConfig:
    """What the authors do to the observations, after some start.

    Args:
        start: What the network learns from known classes.
        stage: The main training.
        first: Epochs towards the first targets.
        decay: Weight decay there.
        refresh: Epochs between two new targets.
        augmentation: None for the dataset's own.
    """
    return DTCConfig(
        start,
        first=_constant(first, 0.1, "sgd", batch=128, decay=decay),
        stage=stage,
        warm_up=0.0,
        ramp=5 / stage.epochs,
        refresh=refresh,
        by_cluster=True,
        augmentation=augmentation,
    )


def _constant(epochs: int, rate: float, optimiser: Literal["adam", "sgd"], batch: int, decay: float = 0.0) -> Stage:
    return Stage(epochs, batch, schedule=Schedule(1, rate, optimiser, decay, shape="constant"))


ON_DIGITS = _constant(60, 0.001, "sgd", batch=128)


CONFIGS: Mapping[str, DTCConfig] = MappingProxyType(
    {
        "default": DTCConfig(),
        "cifar10": DTCConfig(FIVE_CLASSES),
        "svhn": DTCConfig(FIVE_CLASSES, _on_bag(epochs=30, rate=0.002)),
        "svhn-fast": DTCConfig(FIVE_CLASSES, _on_bag(epochs=30, rate=0.01)),
        "svhn-faster": DTCConfig(FIVE_CLASSES, _on_bag(epochs=30, rate=0.05)),
        "svhn-settled": DTCConfig(SGD_START, _on_bag(epochs=30, rate=0.01)),
        "svhn-two-stages": _full(FIVE_CLASSES, ON_DIGITS),
        "svhn-settled-two-stages": _full(SGD_START, ON_DIGITS),
        "svhn-cropped-two-stages": _full(SGD_START, ON_DIGITS, augmentation=CROPPED),
        "characters": DTCConfig(
            pretraining.CHARACTERS,
            Stage(epochs=60, batch=256, least=150, schedule=Schedule(steps=1)),
            consistency=100.0,
        ),
        "characters-sgd": DTCConfig(pretraining.CHARACTERS, consistency=100.0),
        "characters-slow": DTCConfig(pretraining.CHARACTERS, _on_bag(epochs=30, rate=0.001), consistency=100.0),
        "characters-late": DTCConfig(pretraining.CHARACTERS_LONG, consistency=100.0),
        "characters-late-slow": DTCConfig(
            pretraining.CHARACTERS_LONG, _on_bag(epochs=30, rate=0.001), consistency=100.0
        ),
        "characters-late-slower": DTCConfig(
            pretraining.CHARACTERS_LONG, _on_bag(epochs=30, rate=1e-4), consistency=100.0
        ),
        "cpu-short": replace(CPU, stage=replace(CPU.stage, least=10)),
        "cpu": CPU,
        "cpu-long": replace(CPU, stage=replace(CPU.stage, least=100)),
        "full": _full(_long(35_000), _constant(100, 0.05, "sgd", batch=128)),
        "full-cifar10": _full(
            _long(35_000), _constant(100, 0.05, "sgd", batch=128, decay=1e-4), decay=1e-4, augmentation=FLIPPED
        ),
        "full-svhn": _full(_long(28_000), ON_DIGITS, augmentation=CROPPED),
        "full-cifar100": _full(
            _long(56_000, "conv5-wide"),
            Stage(100, 128, schedule=Drops(1, 0.05, "sgd", 1e-5, at=(0.2, 0.4, 0.6, 0.8), drop=0.5)),
            first=30,
            decay=1e-5,
            refresh=10,
            augmentation=FLIPPED,
        ),
        "full-omniglot": DTCConfig(
            pretraining.CHARACTERS_FULL,
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
    {
        "glyphs": "cpu",
        "rules": "cpu",
        "cifar10": "cifar10",
        "svhn": "svhn-settled-two-stages",
        "omniglot": "characters-late-slow",
    }
)
RECIPES: Mapping[str, str] = MappingProxyType(
    {name: f"full-{name}" for name in ("cifar10", "svhn", "cifar100", "omniglot")}
)
