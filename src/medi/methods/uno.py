"""UNO: a unified objective for novel class discovery (Fini et al. 2021, https://arxiv.org/abs/2108.08536).

A network that knows the known classes is trained on known and novel images with one cross-entropy over all classes.
The target of a novel image is its pseudo-label, made from another view of it by the Sinkhorn-Knopp algorithm. Settings
that the formulas leave open are those of the authors' code (https://github.com/DonkeyShot21/UNO). Of its four heads we
have one, and none that over-clusters.

Sinkhorn's pseudo-labels fill all clusters equally in every step: **the loss assumes classes of equal size**, whatever
the method is told. Where they are not, some items get wrong pseudo-labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.core.errors import InputError
from medi.methods.bag_training import ObservedBag
from medi.methods.unified import Prototypes, Unified, UnifiedMethod, beside, swapped_loss
from medi.nn import Network, seeded
from medi.presets import Presets, read_presets


@dataclass(frozen=True)
class UNO(UnifiedMethod):
    """Settings of UNO.

    Attributes:
        epsilon: How soft pseudo-labels are: cosines are divided by this before Sinkhorn-Knopp.
        rounds: Of Sinkhorn-Knopp.
    """

    assumes_equal_sizes: ClassVar[bool] = True
    presets: ClassVar[Presets] = read_presets("uno")

    epsilon: float = 0.05
    rounds: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_unless_positive("epsilon")
        if self.rounds < 1:
            raise InputError(f"rounds={self.rounds}: Sinkhorn-Knopp takes at least 1.")

    def begin(self, network: Network, known: Prototypes, bag: ObservedBag) -> Unified:
        """Novel classes are told apart after a projection of their own."""
        with seeded(bag.context.seed, stream=1):
            novel = nn.Sequential(
                nn.Linear(network.width, self.hidden, bias=False),  # the norm takes a bias away again
                nn.BatchNorm1d(self.hidden),
                nn.ReLU(),
                nn.Linear(self.hidden, self.projection),
                Prototypes(torch.randn(bag.k, self.projection)),
            )
        head = nn.Sequential(_Normalise(), novel).to(bag.context.device)
        return Unified(network, known, head, self.temperature)

    def loss(self, model: Unified, views: Tensor, labels: Tensor, done: float, told: Tensor | None) -> Tensor:
        """Each view's outputs against the other view's pseudo-labels."""

        def targets(cosines: Tensor) -> Tensor:
            of_novel = cosines[len(labels) :, model.known_classes :]
            novel = pseudo_labels(of_novel, self.epsilon, self.rounds) if told is None else told
            return beside(functional.one_hot(labels, model.known_classes).to(novel.dtype), novel)

        return swapped_loss(model.outputs(views)[1], self.temperature, targets)


class _Normalise(nn.Module):
    """Features of length 1."""

    def forward(self, features: Tensor) -> Tensor:
        return functional.normalize(features, dim=-1)


def pseudo_labels(scores: Tensor, epsilon: float, rounds: int) -> Tensor:
    """Soft assignments (n, k) in proportion to exp(score / epsilon), scaled by cluster and by item in turn.

    Every item's sum to 1. After many rounds every cluster's sum to n / k; after a few, nearly.
    """
    logs = scores / epsilon
    for _ in range(rounds):  # of logarithms: exponentials of cosines over epsilon overflow where epsilon is small
        logs = logs.log_softmax(0).log_softmax(1)
    return logs.exp()
