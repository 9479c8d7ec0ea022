"""CATA's views: which clustering rule dominates each item, found by a network with several orthogonal heads.

The paper's Eq. 1 trains a feature extractor and M classifiers that each predict the label, their first layers kept
orthogonal; by Eq. 2 an item's view is the head that gives the item's own label the highest probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.data.augment import to_float
from medi.data.facts import Augmentation, Facts
from medi.data.imageset import ImageSet
from medi.errors import InputError, unknown_name
from medi.names import SAMPLER_NAMES
from medi.nets import Network, build, place, seeded
from medi.nets.embed import in_batches
from medi.runtime.context import Context
from medi.tasks.cata import CataSampler, Views
from medi.tasks.episodes import Sampler, UniformSampler
from medi.train.loop import Validation, train
from medi.train.schedule import Schedule
from medi.train.together import embed_together, same_on_all

HELD_OUT_IMAGES = 0.1
"""Share of the known images that chooses the length of the training."""


@dataclass(frozen=True)
class ViewsConfig:
    """Settings of the multi-view network.

    Attributes:
        network: The extractor, a name in `medi.nets.NETWORKS`.
        heads: Number of views, M in the paper.
        orthogonality: Weight of the orthogonality term, lambda in the paper, on the mean absolute entry of W_i W_j^T;
            `summed` puts it on the sum of the entries.
        specialise: How much an item trains the head that is best at it rather than all heads alike, 0 to 1. Not in the
            paper: it makes heads divide the classes among them, and classes that share a rule tend to end together.
        hidden: Width of a head's two hidden layers.
        dropout: Between a head's layers.
        batch: Images in a gradient step.
        looks: How often the held-out images are looked at to choose the length.
        schedule: Length and rates; the heads learn at a tenth of the extractor's rate, as in the paper.
    """

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

    def summed(self) -> ViewsConfig:
        """The same lambda under Eq. 1's other reading: on the sum of absolute entries, hidden² times their mean."""
        return replace(self, orthogonality=self.orthogonality * self.hidden**2)


VIEWS_PRESETS: Mapping[str, ViewsConfig] = MappingProxyType(
    {
        "default": ViewsConfig(),
        "cpu": ViewsConfig(
            network="conv4",
            batch=128,
            schedule=Schedule(steps=150, rate=0.01, shape="onecycle", factors={"heads": 0.1}),
        ),
    }
)


def views_for(facts: Facts, device: torch.device) -> ViewsConfig:
    """Settings of CATA's network for a dataset and a device."""
    return VIEWS_PRESETS["cpu" if facts.small or device.type == "cpu" else "default"]


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
    """Mean absolute entry of W_i W_j^T over unordered pairs of heads: Eq. 1's term, free of a head's width and of M.

    Args:
        weights: A (hidden, width) matrix for each head, a weight vector a row.
    """
    return torch.stack([(a @ b.mT).abs().mean() for a, b in combinations(weights, 2)]).mean()


def mean_cosine(weights: list[Tensor]) -> float:
    """Mean absolute cosine between weight vectors of different heads: 0 where they are orthogonal."""
    return float(overlap([functional.normalize(w.detach().float(), dim=1) for w in weights]))


def view_loss(logits: Tensor, labels: Tensor, weights: list[Tensor], config: ViewsConfig) -> Tensor:
    """Eq. 1: mean cross-entropy over heads plus the weighted overlap of their first layers.

    With `config.specialise` a part of the mean is replaced by the least entropy of any head.

    Args:
        logits: (n, M, classes).
        labels: (n,) int64.
        weights: The heads' first layers.
        config: The weights of the terms.
    """
    n, heads = logits.shape[:2]
    flat = functional.cross_entropy(logits.float().flatten(0, 1), labels.repeat_interleave(heads), reduction="none")
    entropy = flat.view(n, heads)
    entropy = torch.lerp(entropy.mean(1), entropy.amin(1), config.specialise).mean()
    return entropy + config.orthogonality * overlap([w.float() for w in weights])


def find_views(known: ImageSet, config: ViewsConfig, context: Context, augmentation: Augmentation) -> Views:
    """Train the multi-view network on known classes (or find it trained) and ask it for every item's view."""
    model, seconds = train_views(known, config, context, augmentation)

    def own(images: Tensor, labels: Tensor) -> Tensor:
        logits: Tensor = model(to_float(images))
        return logits.float().log_softmax(2).gather(2, labels[:, None, None].expand(-1, config.heads, 1)).squeeze(2)

    log_probabilities = in_batches(own, context.device, known.images, known.labels)
    return Views(same_on_all(log_probabilities), seconds)  # a rounding apart, processes would draw different tasks


def train_views(
    known: ImageSet, config: ViewsConfig, context: Context, augmentation: Augmentation
) -> tuple[MultiView, float]:
    """The trained multi-view network, and the seconds it took; held-out known images choose the length."""
    if config.heads < 2:
        raise InputError(f"CATA with {config.heads} view chooses nothing: use 2 or more, or --sampler uniform.")
    if known.n_classes < 2:
        raise InputError("CATA learns views from 2 known classes or more: add classes, or use --sampler uniform.")
    extractor = build(config.network, tuple(known.images.shape[1:]), seed=context.seed)
    with seeded(context.seed, stream=1):
        model = MultiView(extractor, known.n_classes, config)
    place(model.to(context.device).extractor, context.device)
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

    seconds = train(
        model,
        loss,
        config.schedule,
        context,
        title="cata",
        identity={
            "known": known.fingerprint(),
            "config": asdict(config),
            "augmentation": asdict(augmentation),
        },
        validation=Validation(max(1, config.schedule.steps // config.looks), accuracy),
    )
    return model, seconds


def make_sampler(
    name: str,
    known: ImageSet,
    *,
    way: int,
    observations: int,
    queries: int,
    views: ViewsConfig,
    augmentation: Augmentation,
    context: Context,
) -> Sampler:
    """The task sampler of a name over the known classes; CATA's network is trained (or found trained) first."""
    if name not in SAMPLER_NAMES:
        raise unknown_name("sampler", name, SAMPLER_NAMES)
    size = (way, observations, queries, known.class_names)
    uniform = UniformSampler(known.labels, *size)  # says at once if a task asks for too much
    if name == "uniform":
        return uniform
    sampler = CataSampler(known.labels, find_views(known, views, context, augmentation), *size)
    context.reporter.say(sampler.describe())
    return sampler


def _split(known: ImageSet, context: Context) -> tuple[Tensor, Tensor]:
    """Indices of held-out and of training images; every class keeps an image to train on."""
    order = torch.randperm(len(known), generator=context.generator(stream=3), device=context.device)
    labels = known.labels[order]
    # Place of each image among those of its class, in random order.
    by_class = labels.argsort(stable=True)
    counts = torch.bincount(labels, minlength=known.n_classes)
    starts = counts.cumsum(0) - counts
    place_in_class = torch.empty_like(order)
    place_in_class[by_class] = torch.arange(len(order), device=order.device) - starts[labels[by_class]]
    chosen = place_in_class < (counts * HELD_OUT_IMAGES).ceil().clamp(max=counts - 1)[labels]
    return order[chosen], order[~chosen]
