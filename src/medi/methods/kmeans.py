"""K-means: the baseline without meta-learning, on pixels or on the features of a supervised network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from medi.data.imageset import ImageSet
from medi.methods.base import BagPartition, Plan
from medi.methods.embedding import EmbeddingMethod, PixelEmbedding
from medi.methods.pretraining import Pretraining, pretrain
from medi.nn.embed import Embedding, NetworkEmbedding
from medi.presets import Presets, read_presets


@dataclass(frozen=True)
class KMeans(EmbeddingMethod):
    """Settings of K-means.

    Attributes:
        pretraining: What a network learns from the known classes first; None clusters pixels.
    """

    presets: ClassVar[Presets] = read_presets("kmeans")

    pretraining: Pretraining | None = None

    @property
    def learns(self) -> bool:
        """Pixels are compared as they are."""
        return self.pretraining is not None

    def own_grouping(self) -> BagPartition:
        """K-means."""
        return self.group

    def learn(self, known: ImageSet, plan: Plan) -> Embedding:
        """Train the network where there is one; pixels need nothing."""
        if self.pretraining is None:
            return PixelEmbedding()
        return NetworkEmbedding(pretrain(known, plan, self.pretraining), self.pretraining.schedule.precision)
