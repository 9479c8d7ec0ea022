"""CATA's views: which clustering rule dominates each item, found by a network with several orthogonal heads.

The paper's Eq. 1 trains a feature extractor and M classifiers that each predict the label, their first layers kept
orthogonal; by Eq. 2 an item's view is the head that gives the item's own label the highest probability.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.core.errors import InputError
from medi.data.augment import to_float
from medi.data.facts import Augmentation, Facts
from medi.data.imageset import ImageSet
from medi.kmeans.swaps import rank_in_cluster
from medi.nn import Network, build_for, seeded
from medi.nn.across_ranks import copy_from_first
from medi.nn.context import Context
from medi.nn.embed import in_batches
from medi.nn.loop import WatchedLoss, train
from medi.nn.norm import embed_together
from medi.nn.schedule import Schedule
from medi.presets import Presets, read_presets, resolve
from medi.tasks.cata import Views

HELD_OUT_IMAGES = 0.1
"""Share of the known images that chooses the length of the training."""


@dataclass(frozen=True)
class ViewsConfig:
    """Settings of the multi-view network.

    Attributes:
        network: The extractor, a name in `medi.nn.NETWORKS`.
        heads: Number of views, M in the paper.
        orthogonality: Weight of the orthogonality term, lambda in the paper, on the mean absolute entry of W_i W_j^T.
        specialise: How much an item trains the head that is best at it rather than all heads alike, 0 to 1. Not in the
            paper: it makes heads divide the classes among them, and classes that share a rule tend to end together.
        hidden: Width of a head's two hidden layers.
        dropout: Between a head's layers.
        batch: Images in a gradient step.
        looks: How often the held-out images are looked at to choose the length.
        schedule: Length and rates; the heads learn at a tenth of the extractor's rate, as in the paper.
    """

    presets: ClassVar[Presets] = read_presets("views")

    network: str = "resnet18"
    heads: int = 3
    orthogonality: float = 1 / 3
    specialise: float = 0.0
    hidden: int = 256
    dropout: float = 0.3
    batch: int = 512
    looks: int = 10
    schedule: Schedule = field(
        default_factory=lambda: Schedule(steps=1000, rate=0.01, shape="onecycle", factors={"heads": 0.1})
    )


def views_for(facts: Facts, device: torch.device) -> ViewsConfig:
    """Settings of CATA's network for a dataset and a device."""
    return resolve(ViewsConfig, dataset=facts.name, on_cpu=facts.small or device.type == "cpu")


class MultiView(nn.Module):
    """A feature extractor and M heads of three linear layers, each a classifier of the known classes."""

    def __init__(self, extractor: Network, n_classes: int, config: ViewsConfig) -> None:
        super().__init__()
        self.extractor = extractor
        self.heads = nn.ModuleList(
            nn.Sequential(
                *_layer(extractor.width, config.hidden, config.dropout),
                *_layer(config.hidden, config.hidden, config.dropout),
                nn.Linear(config.hidden, n_classes),
            )
            for _ in range(config.heads)
        )

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, M, classes) of images (n, …)."""
        return self.classify(self.extractor(images))

    def classify(self, features: Tensor) -> Tensor:
        """Logits (n, M, classes) of features (n, width)."""
        return torch.stack([head(features) for head in self.heads], dim=1)

    def first_layers(self) -> list[Tensor]:
        """The heads' first weight matrices, (hidden, width) each."""
        return [head[0].weight for head in self.heads]  # type: ignore[index]


def _layer(inputs: int, outputs: int, dropout: float) -> tuple[nn.Module, ...]:
    return nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(), nn.Dropout(dropout)


def overlap(weights: list[Tensor]) -> Tensor:
    """Mean absolute entry of W_i W_j^T over pairs of heads' first layers (hidden, width): Eq. 1's term.

    It depends neither on the width of a head nor on how many there are.
    """
    return torch.stack([(a @ b.mT).abs().mean() for a, b in combinations(weights, 2)]).mean()


def view_loss(logits: Tensor, labels: Tensor, weights: list[Tensor], config: ViewsConfig) -> Tensor:
    """Eq. 1: mean cross-entropy over heads, of logits (n, M, classes), plus the weighted overlap of their first layers.

    With `config.specialise` a part of the mean is replaced by the least entropy of any head.
    """
    n, heads = logits.shape[:2]
    flat = functional.cross_entropy(logits.float().flatten(0, 1), labels.repeat_interleave(heads), reduction="none")
    entropy = flat.view(n, heads)
    entropy = torch.lerp(entropy.mean(1), entropy.amin(1), config.specialise).mean()
    return entropy + config.orthogonality * overlap([w.float() for w in weights])


def find_views(known: ImageSet, config: ViewsConfig, context: Context, augmentation: Augmentation) -> Views:
    """Train the multi-view network on known classes (or find it trained) and ask it for every item's view."""
    model, _ = train_views(known, config, context, augmentation)

    def own(images: Tensor, labels: Tensor) -> Tensor:
        logits: Tensor = model(to_float(images))
        return logits.float().log_softmax(2).gather(2, labels[:, None, None].expand(-1, config.heads, 1)).squeeze(2)

    log_probabilities = in_batches(own, context.device, known.images, known.labels)
    copy_from_first(log_probabilities)  # a rounding apart, processes would draw different tasks
    return Views(log_probabilities)


def train_views(
    known: ImageSet, config: ViewsConfig, context: Context, augmentation: Augmentation
) -> tuple[MultiView, float]:
    """The trained multi-view network, and the seconds it took; held-out known images choose the length."""
    if config.heads < 2:
        raise InputError(f"CATA with {config.heads} view chooses nothing: use 2 or more, or --sampler uniform.")
    if known.n_classes < 2:
        raise InputError("CATA learns views from 2 known classes or more: add classes, or use --sampler uniform.")
    extractor = build_for(config.network, known.images, context)
    with seeded(context.seed, stream=1):
        model = MultiView(extractor, known.n_classes, config).to(context.device)
    held_out, rest = _split(known, context)

    def loss(generator: torch.Generator) -> Tensor:
        items = rest[torch.randint(len(rest), (config.batch,), generator=generator, device=context.device)]
        # The heads are small and draw dropout: every process has them see the whole batch.
        logits = model.classify(embed_together(model.extractor, known.images[items], augmentation, generator))
        return view_loss(logits, known.labels[items], model.first_layers(), config)

    def right(images: Tensor, labels: Tensor) -> Tensor:
        logits: Tensor = model(to_float(images))
        hits = (logits.argmax(2) == labels[:, None]).float()
        return torch.lerp(hits.mean(1), hits.amax(1), config.specialise)

    def accuracy() -> float:
        return float(in_batches(right, context.device, known.images[held_out], known.labels[held_out]).mean())

    watched = WatchedLoss(loss, max(1, config.schedule.steps // config.looks), accuracy)
    identity = {"known": known.fingerprint(), "config": asdict(config), "augmentation": asdict(augmentation)}
    return model, train(model, watched, config.schedule, context, title="cata", identity=identity)


def _split(known: ImageSet, context: Context) -> tuple[Tensor, Tensor]:
    """Indices of held-out and of training images; every class keeps an image to train on."""
    order = torch.randperm(len(known), generator=context.generator(stream=3), device=context.device)
    labels = known.labels[order]
    counts, by_class = torch.bincount(labels, minlength=known.n_classes), labels.argsort(stable=True)
    places = torch.empty_like(order)  # of each image among those of its class
    places[by_class] = rank_in_cluster(labels[by_class][None], known.n_classes)[0]
    chosen = places < (counts * HELD_OUT_IMAGES).ceil().clamp(max=counts - 1)[labels]
    return order[chosen], order[~chosen]
