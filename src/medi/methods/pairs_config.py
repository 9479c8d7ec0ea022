"""Settings of KCL and MCL, and the named ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from medi.methods.bag_training import Stage
from medi.train.schedule import Drops, Schedule


@dataclass(frozen=True)
class Similarity:
    """How the similarity network is trained.

    Attributes:
        network: A name in `medi.nets.NETWORKS`.
        classes: Known classes in a gradient step; all of them where there are fewer.
        each: Images of each.
        schedule: Length and rates.
    """

    network: str = "resnet18"
    classes: int = 20
    each: int = 5
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=3000, shape="onecycle"))


@dataclass(frozen=True)
class PairConfig:
    """Settings of KCL and MCL.

    Attributes:
        similarity: The network that judges pairs.
        start: Where the clustering network's weights come from: the similarity network, or nowhere.
        hidden: Size of the layer between features and clusters.
        stage: Training on the observations.
    """

    similarity: Similarity = field(default_factory=Similarity)
    start: Literal["similarity", "random"] = "similarity"
    hidden: int = 512
    stage: Stage = field(default_factory=lambda: Stage(epochs=30, batch=200, least=300))


CPU = PairConfig(
    Similarity("conv4", classes=10, schedule=Schedule(steps=150, rate=2e-3, shape="onecycle")),
    hidden=128,
    stage=Stage(epochs=20, batch=100, least=150),
)


def _full(network: str, known: int, classes: int) -> PairConfig:
    """The published recipe for so many known images: 50 and 150 epochs, batches of 20 classes x 5 and of 100."""
    return PairConfig(
        Similarity(network, schedule=Drops(steps=50 * known // (5 * min(20, classes)), at=(0.6, 0.8))),
        start="random",
        stage=Stage(epochs=150, batch=100, schedule=Drops(steps=1, at=(2 / 3,))),
    )


CONFIGS: Mapping[str, PairConfig] = MappingProxyType(
    {
        "default": PairConfig(),
        "cifar100": PairConfig(stage=Stage(epochs=30, batch=200, least=500)),
        # Five known classes: more images of each.
        "photos": PairConfig(Similarity(classes=5, each=20, schedule=Schedule(steps=2000, shape="onecycle"))),
        "characters": PairConfig(
            Similarity("conv4-wide", schedule=Schedule(steps=5000, shape="onecycle")),
            stage=Stage(epochs=120, batch=200, least=500),
        ),
        "cpu-short": replace(CPU, stage=replace(CPU.stage, least=40)),
        "cpu": CPU,
        "full": _full("resnet18", 25_000, 5),
        "full-cifar100": _full("resnet18", 40_000, 80),
        "full-omniglot": _full("conv4-wide", 19_280, 964),
    }
)
CHOSEN: Mapping[str, str] = MappingProxyType(
    {
        "glyphs": "cpu",
        "rules": "cpu",
        "cifar10": "photos",
        "cifar100": "cifar100",
        "svhn": "photos",
        "omniglot": "characters",
    }
)
RECIPES: Mapping[str, str] = MappingProxyType({"cifar100": "full-cifar100", "omniglot": "full-omniglot"})
