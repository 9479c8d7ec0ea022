"""Losses of pairs of items: which pairs are alike, and what it costs to cluster them otherwise."""

from __future__ import annotations

import torch
from torch import Tensor

EPS = 1e-7
"""Keeps RS's logarithms of probabilities finite, as published."""
LEAST_FOR_PRODUCTS = -20.0
"""Logarithms of probabilities above which sums of products are safe, their squares in second derivatives included: on a
CPU up to thirty times as fast as sums of exponentials. A GPU would have to wait for the answer."""
MARGIN = 2.0
"""KCL pushes dissimilar pairs apart until their divergence is as large."""


def rank_pairs(features: Tensor, top: int) -> Tensor:
    """Which items (…, n, d) share the same set of `top` largest features: (…, n, n) of ones and zeros."""
    largest = features.topk(min(top, features.shape[-1])).indices
    member = torch.zeros_like(features).scatter(-1, largest, 1.0)
    return (member @ member.mT > largest.shape[-1] - 0.5).to(features.dtype)


def label_pairs(labels: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Which items share their label (…, n): (…, n, n) of ones and zeros."""
    return (labels[..., :, None] == labels[..., None, :]).to(dtype)


def likelihood_loss(logits: Tensor, similar: Tensor) -> Tensor:
    """Eq. 3 of the paper, MCL's loss: binary cross-entropy of p_i . p_j over all ordered pairs, i = j included.

    Of logits (…, n, clusters) and pair labels (…, n, n), ones and zeros, the mean over pairs, (…). A single cluster
    tells nothing apart: it costs nothing.
    """
    if logits.shape[-1] == 1:
        return 0 * logits.sum((-2, -1))
    together, apart = pair_log_probabilities(logits)
    return -(similar * together + (1 - similar) * apart).mean((-2, -1))


def pair_log_probabilities(logits: Tensor) -> tuple[Tensor, Tensor]:
    """log(p_i . p_j) and log(1 - p_i . p_j), (…, n, n) each, p the softmax of logits (…, n, clusters), two or more.

    Both are logarithms of sums without a difference in them, 1 - p_i . p_j = Σ_k p_ik (1 - p_jk): however certain the
    outputs are, values keep their digits and wrong pairs keep their gradient.
    """
    log_p = logits.log_softmax(-1)
    own = torch.eye(logits.shape[-1], dtype=torch.bool, device=logits.device)
    log_others = log_p[..., None, :].masked_fill(own, -torch.inf).logsumexp(-1)  # log(1 - p), summed over the others
    seconds = (log_p, log_others)
    if logits.device.type == "cpu" and min(float(one.detach().min()) for one in seconds) > LEAST_FOR_PRODUCTS:
        together, apart = ((log_p.exp() @ of_second.exp().mT).log() for of_second in seconds)
    else:
        together, apart = ((log_p[..., :, None, :] + of_second[..., None, :, :]).logsumexp(-1) for of_second in seconds)
    return together, apart


def divergence_loss(logits: Tensor, similar: Tensor) -> Tensor:
    """KCL's loss: mean over ordered pairs of D = KL(p_i || p_j) where similar and max(0, 2 - D) where not.

    Of logits (n, k) and pair labels (n, n), ones and zeros; p_i takes no gradient.
    """
    log_p = logits.log_softmax(-1)
    fixed = log_p.detach()
    p = fixed.exp()
    divergence = (p * fixed).sum(-1, keepdim=True) - p @ log_p.mT
    return torch.where(similar > 0.5, divergence, (MARGIN - divergence).relu()).mean()


def two_view_loss(p: Tensor, other: Tensor, similar: Tensor) -> Tensor:
    """RS's loss: binary cross-entropy of p_i . p'_j, of two views' probabilities (n, k), over all ordered pairs."""
    together = (p @ other.mT).clamp(max=1)  # it may round up
    # Added, as published: a clamp would take the gradient away from pairs that are all but certain, and wrong.
    return -(similar * (together + EPS).log() + (1 - similar) * (1 - together + EPS).log()).mean()
