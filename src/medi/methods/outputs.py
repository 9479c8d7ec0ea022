"""Clusters that are the outputs of a network: its largest one, or under what is known of the classes' sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from medi.cluster.balanced import assign_balanced, equal_share_offsets
from medi.methods.base import Assignment, Clustering


class OutputClustering(Clustering):
    """Clusters read off logits.

    Where every class has equally many observations, each output gets an offset that gives all clusters the same share
    of the observations' probability; items that are asked about get the same offsets. The observations themselves are
    shared out equally.

    Args:
        logits: (episodes, n, k) of the bag.
        equal_sizes: Every class has equally many items in the bag.
    """

    def __init__(self, logits: Tensor, *, equal_sizes: bool) -> None:
        self.offsets = equal_share_offsets(logits) if equal_sizes else torch.zeros_like(logits[:, :1])
        self.labels, self.confidence = self.share_out(logits) if equal_sizes else self.answer(logits)

    def answer(self, logits: Tensor) -> Assignment:
        """The most probable cluster of each item with logits (episodes, m, k), by itself."""
        confidence, labels = (logits + self.offsets).softmax(-1).max(-1)
        return Assignment(labels, confidence)

    @staticmethod
    def share_out(logits: Tensor) -> Assignment:
        """The most probable clusters of equal size for items with logits (episodes, m, k), seen together."""
        logs = (logits + equal_share_offsets(logits)).log_softmax(-1)
        labels = assign_balanced(-logs, method="exact")
        return Assignment(labels, logs.gather(2, labels[:, :, None]).squeeze(2).exp())
