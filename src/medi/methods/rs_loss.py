"""What RS minimises on a bag, and the network with two heads that it is a function of."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.methods.bag_training import StepCount
from medi.methods.pair_losses import rank_pairs, two_view_loss
from medi.methods.pretraining import linear
from medi.nn import Network
from medi.nn.context import Context


class Outputs(NamedTuple):
    """Features (n, d) and logits (n, known classes) and (n, novel classes)."""

    features: Tensor
    known: Tensor
    novel: Tensor


def joint_loss(
    view: Outputs,
    other: Outputs,
    labels: Tensor,
    *,
    top: int,
    consistency: Tensor | float,
    similar: Tensor | None = None,
) -> Tensor:
    """Cross-entropy of the known items, pairs of the novel ones, and agreement of both views on both heads.

    Args:
        view: Outputs for n items, the known ones first.
        other: Outputs for another augmentation of the same items.
        labels: (known,) classes of the known items.
        top: Size of the sets of largest features.
        consistency: Weight of the agreement.
        similar: (novel, novel) pair labels to use instead of rank statistics: for the oracle.
    """
    known = len(labels)
    if similar is None:
        similar = rank_pairs(view.features[known:].detach(), top)
    p, p_other = view.novel.softmax(-1), other.novel.softmax(-1)
    agreement = functional.mse_loss(view.known.softmax(-1), other.known.softmax(-1)) + functional.mse_loss(p, p_other)
    return (
        functional.cross_entropy(view.known[:known], labels)
        + two_view_loss(p[known:], p_other[known:], similar)
        + consistency * agreement
    )


class TwoHeads(nn.Module):
    """A network with a head for the known classes and one for the novel classes."""

    def __init__(self, network: Network, known: nn.Module, novel: nn.Module) -> None:
        super().__init__()
        self.network, self.known, self.novel, self.steps = network, known, novel, StepCount()

    def outputs(self, images: Tensor) -> Outputs:
        """Features and the logits of both heads for images (n, …), in full precision."""
        features = self.network(images).relu().float()
        with torch.autocast(images.device.type, enabled=False):  # two views of an image are to agree to every digit
            return Outputs(features, self.known(features), self.novel(features))

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, k) of the novel classes."""
        return self.outputs(images).novel


class JointLoss(nn.Module):
    """The loss of a step on the bag as a function of tensors alone, so that it can be recorded.

    Args:
        model: What is trained.
        top: Size of the sets of largest features.
    """

    def __init__(self, model: TwoHeads, top: int) -> None:
        super().__init__()
        self.model, self.top = model, top

    def forward(self, images: Tensor, labels: Tensor, consistency: Tensor, *similar: Tensor) -> Tensor:
        """The loss of two views of the same items.

        Args:
            images: (2 n, …), floats: one view of all items, the known ones first, then the other view.
            labels: (known,) classes of the known items.
            consistency: (), weight of the agreement.
            similar: Nothing, or (novel, novel) pair labels for the oracle.
        """
        both = self.model.outputs(images)
        view, other = (Outputs(*half) for half in zip(*(part.chunk(2) for part in both), strict=True))
        with torch.autocast(images.device.type, enabled=False):  # logarithms near 0 need every digit
            told = similar[0] if similar else None
            return joint_loss(view, other, labels, top=self.top, consistency=consistency, similar=told)


def make_head(width: int, outputs: int, hidden: int | None, context: Context) -> nn.Module:
    """A head on features of some width whose weights follow from the seed; linear, or with a hidden layer."""
    if hidden is None:
        return linear(width, outputs, context)
    first = linear(width, hidden, context, stream=2)
    return nn.Sequential(first, nn.BatchNorm1d(hidden).to(context.device), nn.ReLU(), linear(hidden, outputs, context))
