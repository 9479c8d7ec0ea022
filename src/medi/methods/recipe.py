"""How one network learns from the known classes for `medi`: a supervised stage, tasks, or one after the other.

The supervised stage may be told more than the labels: copies count as further classes (`copies.py`), two views of an
image have to stay together (contrast), patches of other images are put into it (mix). All of it is there to keep
in the embedding what the labels alone would let go.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.data.augment import augment, paste
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.base import Plan
from medi.methods.extra_classes import Copies, with_copies
from medi.methods.mp import prototype_loss
from medi.nets import Network, build, forward_together, place, seeded
from medi.runtime import ranks
from medi.tasks.episodes import UniformSampler
from medi.train.loop import Loss, train
from medi.train.schedule import Schedule


@dataclass(frozen=True)
class Contrast:
    """Two views of an image, mapped to a sphere by a small head, are to be nearest to each other.

    Attributes:
        weight: Of this loss beside cross-entropy.
        temperature: Cosines are divided by this.
        width: Size of the head's output.
    """

    weight: float = 0.5
    temperature: float = 0.2
    width: int = 128


@dataclass(frozen=True)
class Supervised:
    """Cross-entropy on the known classes.

    Attributes:
        batch: Images in a gradient step; with contrast, two views each of half as many.
        contrast: A second loss, which does not look at labels.
        mix: Probability that a box of another image is put into an image, and its label shared accordingly (CutMix).
        schedule: Length and rates.
    """

    batch: int = 512
    contrast: Contrast | None = None
    mix: float = 0.0
    schedule: Schedule = field(
        default_factory=lambda: Schedule(steps=1500, rate=0.2, optimiser="sgd", decay=5e-4, shape="onecycle")
    )


@dataclass(frozen=True)
class Tasks:
    """Training on tasks, as MP does.

    Attributes:
        way: Classes in a task; never more than there are.
        observations: Observed images of a class, for any number that will be discovered from; never more than half
            of the smallest class.
        queries: Queries of a class; never more than its smallest has left.
        images: About how many images a gradient step sees.
        temperature: Squared distances are divided by this.
        schedule: Length and rates.
    """

    way: int = 20
    observations: int = 5
    queries: int = 15
    images: int = 400
    temperature: float = 16.0
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=400, rate=3e-4))


@dataclass(frozen=True)
class Recipe:
    """How one network learns.

    Attributes:
        network: A name in `medi.nets.NETWORKS`.
        copies: Further classes made of the known ones (`copies.py`).
        augmentation: Random changes of training images; None for the dataset's own.
        supervised: First stage; None to begin with tasks.
        tasks: Second stage; None to end with the first.
    """

    network: str = "resnet18"
    copies: Copies = "turned"
    augmentation: Augmentation | None = None
    supervised: Supervised | None = field(default_factory=Supervised)
    tasks: Tasks | None = None

    def __post_init__(self) -> None:
        if self.supervised is None and self.tasks is None:
            raise InputError(
                "a recipe without supervised training and without tasks teaches nothing: give one of them."
            )


def teach(recipe: Recipe, known: ImageSet, plan: Plan) -> tuple[Network, float]:
    """A network that has learnt from the known classes, and the seconds that took."""
    context = plan.context
    classes = with_copies(known, recipe.copies)
    plan = replace(plan, augmentation=recipe.augmentation or plan.augmentation)
    network = place(build(recipe.network, tuple(known.images.shape[1:]), seed=context.seed), context.device)
    shared = {"network": recipe.network, "copies": recipe.copies}
    seconds = 0.0
    if first := recipe.supervised:
        heads = _Heads(network, first, classes.n_classes, context.seed).to(context.device)
        settings = plan.settings(known, first) | shared
        loss = supervised_loss(heads, classes, first, plan)
        seconds += train(heads, loss, first.schedule, context, title="medi-supervised", settings=settings)
    if second := recipe.tasks:
        settings = plan.settings(known, second) | shared | {"start": asdict(first) if first else None}
        loss = task_loss(network, classes, second, plan)
        seconds += train(network, loss, second.schedule, context, title="medi-tasks", settings=settings)
    return network, seconds


class _Heads(nn.Module):
    """A network, a classifier on it, and where contrast asks for it a head to a sphere."""

    def __init__(self, network: Network, config: Supervised, n_classes: int, seed: int) -> None:
        super().__init__()
        self.network = network
        width = network.width
        with seeded(seed, stream=1):
            self.classifier = nn.Linear(width, n_classes)
        self.sphere: nn.Module | None = None
        if config.contrast:
            with seeded(seed, stream=2):
                self.sphere = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, config.contrast.width))


def supervised_loss(heads: _Heads, classes: ImageSet, config: Supervised, plan: Plan) -> Loss:
    """One step's loss of the first stage."""
    device, contrast = plan.context.device, config.contrast
    distinct = config.batch // 2 if contrast else config.batch
    batch = 2 * distinct if contrast else distinct
    labelled = (classes.labels >= 0).nonzero().squeeze(1)

    def loss(generator: torch.Generator) -> Tensor:
        items = labelled[torch.randint(len(labelled), (distinct,), generator=generator, device=device)]
        images, labels = classes.images[items], classes.labels[items]
        own, others = torch.ones(distinct, device=device), labels
        if config.mix:
            images, own, others = _mixed(images, labels, config.mix, generator)
        if contrast:
            images, labels, own, others = (torch.cat([x, x]) for x in (images, labels, own, others))
        seen = augment(images, plan.augmentation, generator, ranks.part(batch))
        embedded = forward_together(heads.network, seen, batch).to(heads.classifier.weight.dtype)
        with torch.autocast(device.type, enabled=False):  # heads are small, and exponentials want all their digits
            logits = heads.classifier(embedded)
            entropies = [
                functional.cross_entropy(logits, target, reduction="none")
                for target in ((labels, others) if config.mix else (labels,))
            ]
            total = (own * entropies[0] + (1 - own) * entropies[-1]).mean()
            if contrast and heads.sphere is not None:
                points = functional.normalize(heads.sphere(embedded), dim=1)
                same = torch.arange(distinct, device=device).repeat(2)
                total = total + contrast.weight * contrastive_loss(points, same, contrast.temperature)
        return total

    return loss


def task_loss(network: Network, classes: ImageSet, config: Tasks, plan: Plan) -> Loss:
    """One step's loss of the second stage."""
    way, observations, queries = task_size(classes.labels, config)
    sampler = UniformSampler(classes.labels, way, observations, queries, classes.class_names)
    tasks = max(1, config.images // (way * (observations + queries)))

    def loss(generator: torch.Generator) -> Tensor:
        task = sampler.sample(tasks, generator)
        items = torch.cat([task.support, task.query], 2)
        count = items.numel()
        images = augment(classes.images[items.flatten()], plan.augmentation, generator, ranks.part(count))
        embedded = forward_together(network, images, count).view(*items.shape, -1)
        support, query = embedded[:, :, :observations], embedded[:, :, observations:]
        return prototype_loss(support, query, temperature=config.temperature)

    return loss


def task_size(labels: Tensor, config: Tasks) -> tuple[int, int, int]:
    """Way, observations and queries as wanted, or as the number of classes and the smallest of labels (n,) allow."""
    counts = torch.unique(labels[labels >= 0], return_counts=True)[1]
    smallest = int(counts.min())
    observations = max(1, min(config.observations, smallest // 2))
    return min(config.way, len(counts)), observations, max(1, min(config.queries, smallest - observations))


def contrastive_loss(points: Tensor, same: Tensor, temperature: float) -> Tensor:
    """Mean over items i of -log(exp(s_ij) / sum over k != i of exp(s_ik)), averaged over i's partners j.

    Args:
        points: (n, d) of length 1; s_ij is the cosine of two, divided by the temperature.
        same: (n,) int64; items with equal numbers are partners. Those without one do not count.
        temperature: The smaller, the more the nearest others matter.
    """
    scores = points @ points.T / temperature
    itself = torch.eye(len(points), dtype=torch.bool, device=points.device)
    logs = scores - scores.masked_fill(itself, -torch.inf).logsumexp(1, keepdim=True)
    partners = (same[:, None] == same[None]) & ~itself
    count = partners.sum(1)
    means = torch.where(partners, logs, 0).sum(1) / count.clamp(min=1)
    return -means.sum() / (count > 0).sum().clamp(min=1)


def _mixed(images: Tensor, labels: Tensor, chance: float, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Images with boxes of one another, the share of each that is its own, and the labels of the boxes.

    Boxes are put in before the images are changed at random: every rank then needs its own part of them alone.
    """
    draws = torch.rand(4, len(images), generator=generator, device=images.device)
    order = torch.roll(torch.arange(len(images), device=images.device), 1)  # items are in random order already
    share = torch.where(draws[0] < chance, draws[1], 0)
    mixed, own = paste(images, images[order], share, draws[2], draws[3])
    return mixed, own, labels[order]
