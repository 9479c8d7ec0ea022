"""A step's work shared among the processes that torchrun started; alone, a process does all of it.

Every process has the same batch and draws the same random numbers. A loss makes one call here, and is the same number
on every process as on a single one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from medi.data.augment import augment
from medi.data.facts import Augmentation
from medi.nets.norm import forward_together
from medi.runtime import ranks


def embed_together(
    network: nn.Module, images: Tensor, augmentation: Augmentation, generator: torch.Generator
) -> Tensor:
    """What a network makes of randomly changed images (n, …), as if one process had changed and embedded them all."""
    mine = augment(images, augmentation, generator, ranks.part(len(images)))
    return forward_together(network, mine, len(images))


def mean_together(items: int, loss: Callable[[slice], Tensor]) -> Tensor:
    """The mean loss of a batch of items that do not see one another; `loss` gives the mean of a part of them."""
    return ranks.mean(loss(ranks.part(items)), items)


def same_on_all(tensor: Tensor) -> Tensor:
    """The first process's tensor on all of them: what is equal but for rounding becomes equal."""
    ranks.copy_from_first(tensor)
    return tensor
