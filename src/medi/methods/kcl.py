"""KCL: cluster by the KL divergence between the outputs of pairs, guided by a learnt similarity (Hsu et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from medi.methods.pair_losses import divergence_loss
from medi.methods.similarity import PairLoss, PairMethod


@dataclass(frozen=True)
class KCL(PairMethod):
    """Clustering by the divergence of pairs."""

    loss: ClassVar[PairLoss] = staticmethod(divergence_loss)
