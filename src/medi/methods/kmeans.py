"""K-means: the baseline without meta-learning, on pixels or on the features of a supervised network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from medi.data.augment import to_float
from medi.data.imageset import ImageSet
from medi.methods.base import Learner, Method, Plan
from medi.methods.embedding import EmbeddingLearner, Grouping
from medi.methods.pretraining import Start, started
from medi.nets.embed import network_encoder
from medi.train.schedule import Schedule


@dataclass(frozen=True)
class KMeansConfig:
    """Settings of K-means.

    Attributes:
        network: None clusters pixels; a name in `medi.nets.NETWORKS` trains it on the known classes first.
        batch: Images in a gradient step.
        schedule: Length and rates of the supervised training.
        grouping: How features become clusters.
    """

    network: str | None = None
    batch: int = 256
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=3000, shape="onecycle", decay=5e-4))
    grouping: Grouping = field(default_factory=Grouping)


class KMeans(Method):
    """K-means on pixels (`default`) or on supervised features (`features`)."""

    name: ClassVar[str] = "kmeans"
    embeds: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, KMeansConfig]] = {
        "default": KMeansConfig(),
        "features": KMeansConfig(network="conv4"),
    }

    def __init__(self, config: KMeansConfig) -> None:
        self.settings = config

    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """Train the network where there is one; pixels need nothing."""
        config, context = self.settings, plan.context
        if config.network is None:
            return EmbeddingLearner(pixels, known, plan, config.grouping)
        start = Start(network=config.network, batch=config.batch, schedule=config.schedule)
        network, seconds = started(known, start, plan)
        encoder = network_encoder(network, context.device, config.schedule.precision)
        return EmbeddingLearner(encoder, known, plan, config.grouping, config.network, seconds)


def pixels(images: Tensor) -> Tensor:
    """Images (n, …) as rows of numbers (n, d)."""
    return to_float(images).flatten(1)
