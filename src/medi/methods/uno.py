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
from types import MappingProxyType
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.errors import InputError
from medi.methods import published
from medi.methods.bag_training import Bag, Stage
from medi.methods.pretraining import Pretraining
from medi.methods.unified import Prototypes, Unified, UnifiedMethod, beside
from medi.nets import Network, seeded
from medi.train.schedule import Schedule


@dataclass(frozen=True)
class UNO(UnifiedMethod):
    """Settings of UNO.

    Attributes:
        epsilon: How soft pseudo-labels are: cosines are divided by this before Sinkhorn-Knopp.
        rounds: Of Sinkhorn-Knopp.
    """

    assumes_equal_sizes: ClassVar[bool] = True

    epsilon: float = 0.05
    rounds: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_unless_positive("epsilon")
        if self.rounds < 1:
            raise InputError(f"rounds={self.rounds}: Sinkhorn-Knopp takes at least 1.")

    def begin(self, network: Network, known: Prototypes, bag: Bag) -> Unified:
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
        view, other = model.outputs(views)[1].chunk(2)
        return swapped_loss(
            view, other, labels, model.known_classes, temperature=self.temperature, epsilon=self.epsilon,
            rounds=self.rounds, told=told,
        )  # fmt: skip


class _Normalise(nn.Module):
    """Features of length 1."""

    def forward(self, features: Tensor) -> Tensor:
        return functional.normalize(features, dim=-1)


def swapped_loss(
    view: Tensor,
    other: Tensor,
    labels: Tensor,
    known_classes: int,
    *,
    temperature: float,
    epsilon: float,
    rounds: int,
    told: Tensor | None = None,
) -> Tensor:
    """Mean cross-entropy of either view against the targets of the other.

    Args:
        view: (n, known classes + k) cosines of n items, the known ones first.
        other: Those of another view of the same items.
        labels: (known,) classes of the known items.
        known_classes: How many there are.
        temperature: Cosines are divided by this.
        epsilon: Of Sinkhorn-Knopp.
        rounds: Of Sinkhorn-Knopp.
        told: (novel, k) targets to use instead of pseudo-labels: for the oracle.
    """
    losses = []
    for outputs, source in ((view, other), (other, view)):
        novel = sinkhorn(source[len(labels) :, known_classes:].detach(), epsilon, rounds) if told is None else told
        known = functional.one_hot(labels, known_classes).to(novel.dtype)
        losses.append(functional.cross_entropy(outputs / temperature, beside(known, novel)))
    return torch.stack(losses).mean()


def sinkhorn(scores: Tensor, epsilon: float, rounds: int) -> Tensor:
    """Soft assignments (n, k) in proportion to exp(score / epsilon), scaled by cluster and by item in turn.

    Every item's sum to 1. After many rounds every cluster's sum to n / k; after a few, nearly.
    """
    logs = scores / epsilon
    for _ in range(rounds):  # of logarithms: exponentials of cosines over epsilon overflow where epsilon is small
        logs = logs.log_softmax(0).log_softmax(1)
    return logs.exp()


def _authors(pretraining: Pretraining, batch: int = 128, known: int = 128) -> UNO:
    """What the authors' code does, in batches of so many novel and known images: as many as there are on average."""
    stage = Stage(200, batch, schedule=Schedule(1, 0.1, "sgd", decay=1e-4, shape="onecycle"))
    return UNO(pretraining, stage, known=known)


UNO.presets = MappingProxyType(
    {
        "default": UNO(),
        "cpu": UNO(
            published.CPU,
            Stage(20, batch=100, least_steps=100, schedule=Schedule(1, rate=3e-3)),
            only_last=True,
            hidden=512,
        ),
        "omniglot": UNO(published.characters(8000)),
        "full": _authors(published.classes_full(25_000)),
        "full-cifar100": _authors(published.classes_full(40_000), batch=51, known=205),
        "full-omniglot": _authors(published.CHARACTERS_FULL),
    }
)
