"""Prototypes: the loss of queries against class means, and training a network on tasks by it."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.kmeans.kmeans import squared_distances
from medi.nn.loop import Loss
from medi.nn.norm import embed_together
from medi.tasks.episodes import UniformSampler

Distance = Literal["squared", "euclidean"]


def prototype_loss(support: Tensor, query: Tensor, distance: Distance = "squared", temperature: float = 1.0) -> Tensor:
    """Mean cross-entropy of queries (tasks, way, queries, d) against class means (the paper's loss of MP).

    The means are those of embedded observations (tasks, way, observations, d); temperature divides distances.
    """
    way, queries = query.shape[1:3]
    wide = torch.promote_types(query.dtype, torch.float32)  # half precision is too coarse for differences of squares
    prototypes = support.to(wide).mean(2)
    distances = squared_distances(query.to(wide).flatten(1, 2), prototypes)  # (tasks, way * queries, way)
    if distance == "euclidean":
        distances = distances.clamp(min=1e-12).sqrt()
    labels = torch.arange(way, device=query.device).repeat_interleave(queries).repeat(len(query))
    return functional.cross_entropy(-distances.flatten(0, 1) / temperature, labels)


def task_loss(
    network: nn.Module, known: ImageSet, sampler: UniformSampler, tasks: int, augmentation: Augmentation, **options: Any
) -> Loss:
    """One step's loss: `prototype_loss`, with options of its own, of so many tasks of known images."""

    def loss(generator: torch.Generator) -> Tensor:
        task = sampler.sample(tasks, generator)
        items = torch.cat([task.support, task.query], 2)  # (tasks, way, observations + queries)
        embedded = embed_together(network, known.images[items.flatten()], augmentation, generator)
        embedded = embedded.view(*items.shape, -1)
        observations = task.support.shape[2]
        return prototype_loss(embedded[:, :, :observations], embedded[:, :, observations:], **options)

    return loss
