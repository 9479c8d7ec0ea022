"""MCL: cluster by the likelihood that pairs share a cluster, guided by a learnt similarity (Hsu et al. 2019)."""

from __future__ import annotations

from typing import ClassVar

from medi.methods.inner_steps import pair_loss
from medi.methods.similarity import PairLoss, PairMethod


class MCL(PairMethod):
    """Clustering by the likelihood of pairs: the binary cross-entropy of p_i . p_j, as in MM."""

    name: ClassVar[str] = "mcl"
    loss: ClassVar[PairLoss] = staticmethod(pair_loss)
