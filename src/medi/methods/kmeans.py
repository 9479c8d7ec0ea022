"""K-means: the baseline without meta-learning, on pixels or on the features of a supervised network."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from medi.data.imageset import ImageSet
from medi.methods.base import Plan
from medi.methods.dtc import DTC
from medi.methods.embedding import EmbeddingMethod, PixelEmbedding
from medi.methods.pretraining import Pretraining, pretrain
from medi.nets.embed import Embedding, NetworkEmbedding


@dataclass(frozen=True)
class KMeans(EmbeddingMethod):
    """Settings of K-means.

    Attributes:
        pretraining: What a network learns from the known classes first; None clusters pixels.
    """

    pretraining: Pretraining | None = None

    @property
    def learns(self) -> bool:
        """Pixels are compared as they are."""
        return self.pretraining is not None

    def learn(self, known: ImageSet, plan: Plan) -> Embedding:
        """Train the network where there is one; pixels need nothing."""
        if self.pretraining is None:
            return PixelEmbedding()
        return NetworkEmbedding(pretrain(known, plan, self.pretraining), self.pretraining.schedule.precision)


KMeans.presets = MappingProxyType(
    {
        "default": KMeans(),
        "cpu": KMeans(),
        # What DTC starts from, so that both share a training.
        "features": KMeans(DTC.presets["default"].pretraining),
        **{f"features-{name}": KMeans(DTC.presets[name].pretraining) for name in ("cifar10", "svhn", "omniglot")},
        **{f"features-{name}": KMeans(DTC.presets["cpu"].pretraining) for name in ("glyphs", "rules")},
    }
)
