"""Plain supervised training on the known classes: a network and a linear layer under cross-entropy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.data.augment import augment
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.nets import Network, forward_together, seeded
from medi.runtime import ranks
from medi.runtime.context import Context
from medi.train.loop import train
from medi.train.schedule import Schedule


def train_classifier(
    network: Network,
    known: ImageSet,
    schedule: Schedule,
    context: Context,
    *,
    augmentation: Augmentation,
    batch: int,
    settings: Mapping[str, Any],
) -> float:
    """Train a network in place so that a linear layer on it tells the known classes apart.

    Args:
        network: On the context's device.
        known: Labelled items on the same device.
        schedule: Length and rates.
        context: Device, seed, folder and progress.
        augmentation: What leaves the class of an image alone.
        batch: Items in a gradient step.
        settings: Stored with the checkpoint.

    Returns:
        Seconds it took.
    """
    with seeded(context.seed, stream=1):
        head = nn.Linear(network.width, known.n_classes).to(context.device)
    model = nn.Sequential(network, head)

    def loss(generator: torch.Generator) -> Tensor:
        items = torch.randint(len(known), (batch,), generator=generator, device=context.device)
        images = augment(known.images[items], augmentation, generator, ranks.part(batch))
        logits = forward_together(model, images, batch)
        return functional.cross_entropy(logits, known.labels[items])

    return train(model, loss, schedule, context, title="classifier", settings=settings)
