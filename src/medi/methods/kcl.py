"""KCL: cluster by the KL divergence between the outputs of pairs, guided by a learnt similarity (Hsu et al. 2018)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from medi.methods.similarity import PairLoss, PairMethod

MARGIN = 2.0
"""Dissimilar pairs are pushed apart until their divergence is as large."""


def contrastive_loss(logits: Tensor, similar: Tensor) -> Tensor:
    """Mean over ordered pairs of D = KL(p_i || p_j) where similar and max(0, 2 - D) where not; p_i takes no gradient.

    Args:
        logits: (n, k).
        similar: (n, n) of ones and zeros.
    """
    log_p = logits.log_softmax(-1)
    fixed = log_p.detach()
    p = fixed.exp()
    divergence = (p * fixed).sum(-1, keepdim=True) - p @ log_p.mT
    return torch.where(similar > 0.5, divergence, (MARGIN - divergence).relu()).mean()


class KCL(PairMethod):
    """Clustering by the divergence of pairs."""

    name: ClassVar[str] = "kcl"
    loss: ClassVar[PairLoss] = staticmethod(contrastive_loss)
