"""MCL: cluster by the likelihood that pairs share a cluster, guided by a learnt similarity (Hsu et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from medi.methods.pair_losses import likelihood_loss
from medi.methods.similarity import PairLoss, PairMethod


@dataclass(frozen=True)
class MCL(PairMethod):
    """Clustering by the likelihood of pairs: the binary cross-entropy of p_i . p_j, as in MM."""

    version: ClassVar[int | str] = 2  # 1 clamped the probabilities of pairs

    loss: ClassVar[PairLoss] = staticmethod(likelihood_loss)
