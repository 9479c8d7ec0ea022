"""Cross-entropy of a linear layer on a network: the step that supervised training repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.jobs import ranks
from medi.nn import Network
from medi.nn.cuda_graph import replayed
from medi.nn.norm import forward_together

StepLoss = Callable[..., Tensor]
"""From images (n, …), floats, and labels (n,), and where labels are shared also other labels and shares (n,) each."""


class Classifier(nn.Module):
    """A network and a head on its features."""

    def __init__(self, network: Network, head: nn.Module) -> None:
        super().__init__()
        self.network, self.head = network, head


class _LabelLoss(nn.Module):
    """The loss of a step as a function of tensors alone, so that it can be recorded."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, mine: Tensor, labels: Tensor, *shared: Tensor) -> Tensor:
        features = forward_together(self.model.network, mine, len(labels))
        # The head is small, and exponentials want all their digits.
        with torch.autocast(features.device.type, enabled=False):
            logits = self.model.head(features.to(next(self.model.head.parameters()).dtype))
            if not shared:
                return functional.cross_entropy(logits, labels)
            others, own = shared
            entropies = [functional.cross_entropy(logits, target, reduction="none") for target in (labels, others)]
            return (own * entropies[0] + (1 - own) * entropies[1]).mean()


@contextmanager
def classifier_loss(model: Classifier) -> Iterator[StepLoss]:
    """Inside, the mean cross-entropy of a batch; a GPU records the step once and replays it.

    The function takes the whole batch: of several processes each works on its part.
    """
    with replayed(_LabelLoss(model), record=ranks.count() == 1) as loss:
        yield lambda images, labels, *shared: loss(images[ranks.part(len(labels))], labels, *shared)
