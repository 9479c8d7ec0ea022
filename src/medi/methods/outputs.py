"""Clusters that are the outputs of a network: its largest one, or under what is known of the classes' sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from medi.kmeans.balanced import assign_balanced, equal_share_offsets
from medi.methods.base import Assignment, Clustering


class OutputClustering(Clustering):
    """Clusters read off the logits (episodes, n, k) of a bag.

    Where every class has equally many observations, these are shared out equally, and items that are asked about get
    `even_prior`.
    """

    def __init__(self, logits: Tensor, *, equal_sizes: bool) -> None:
        self.offsets = even_prior(logits) if equal_sizes else torch.zeros_like(logits[:, :1])
        self.labels, self.confidence = self.share_out(logits) if equal_sizes else self.answer(logits)

    def answer(self, logits: Tensor) -> Assignment:
        """The most probable cluster of each item with logits (episodes, m, k), by itself."""
        confidence, labels = (logits + self.offsets).softmax(-1).max(-1)
        return Assignment(labels, confidence)

    @staticmethod
    def share_out(logits: Tensor) -> Assignment:
        """The most probable clusters of equal size for items with logits (episodes, m, k), seen together."""
        logs = (logits + equal_share_offsets(logits)).log_softmax(-1)
        labels = assign_balanced(-logs)
        return Assignment(labels, logs.gather(2, labels[:, :, None]).squeeze(2).exp())


def even_prior(logits: Tensor) -> Tensor:
    """What to add to later logits where clusters are equally large: (episodes, 1, k), by Bayes' rule.

    The network takes each cluster to be as frequent as its share of the observations (episodes, n, k) is. Offsets that
    made those shares equal would be as large as the network is sure of what it was trained on, and drown later items.
    """
    return -logits.log_softmax(-1).logsumexp(-2, keepdim=True)
