"""SimGCD: parametric classification by self-distillation (Wen et al. 2023, https://arxiv.org/abs/2211.11727).

A cosine classifier of known and novel classes learns from the labels of known images and from its own sharpened
outputs for another view of every image; the entropy of its mean output keeps it from collapsing. Beside it, a
projection of the features learns to tell images (SimCLR) and known classes (SupCon) apart. Settings that the formulas
leave open are those of the authors' code (https://github.com/CVMI-Lab/SimGCD).

What differs: our network and pretraining instead of a ViT by DINO; prototypes of known classes begin at class means; it
is known which images are novel, so that their targets, and the entropy of their mean output, are over novel classes
alone.

The entropy term is largest for clusters of equal size: **the loss draws towards classes of equal size**, whatever the
method is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.core.errors import InputError
from medi.methods.bag_training import ObservedBag
from medi.methods.pair_losses import label_pairs
from medi.methods.unified import Prototypes, Unified, UnifiedMethod, beside, swapped_loss
from medi.nn import Network, seeded
from medi.presets import Presets, read_presets


@dataclass(frozen=True)
class SimGCD(UnifiedMethod):
    """Settings of SimGCD.

    Attributes:
        teacher: Temperature of the targets at the beginning.
        sharpest: The same from `warm_up` on.
        warm_up: Share of the training in which that is reached.
        entropy: Weight of the mean output's entropy.
        labelled: Share of the supervised losses in the sum.
        contrast: Temperature of the contrast between images.
        class_contrast: Temperature of the contrast between known classes.
    """

    assumes_equal_sizes: ClassVar[bool] = True
    presets: ClassVar[Presets] = read_presets("simgcd")

    only_last: bool = True
    teacher: float = 0.07
    sharpest: float = 0.04
    warm_up: float = 0.15
    entropy: float = 2.0
    labelled: float = 0.35
    contrast: float = 1.0
    class_contrast: float = 0.07

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_unless_positive("teacher", "sharpest", "contrast", "class_contrast")
        if not 0 <= self.labelled <= 1:
            raise InputError(f"labelled={self.labelled:g} is no share: give 0 to 1.")
        if self.entropy < 0 or self.warm_up < 0:
            raise InputError(f"entropy={self.entropy:g}, warm_up={self.warm_up:g}: neither may be negative.")

    def begin(self, network: Network, known: Prototypes, bag: ObservedBag) -> Unified:
        """Novel classes are told apart by the features themselves; the projection is for the contrasts alone."""
        width, hidden, device = network.width, self.hidden, bag.context.device
        with seeded(bag.context.seed, stream=1):
            novel = Prototypes(torch.randn(bag.k, width))
            layers = [nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU()]
            project = nn.Sequential(*layers, nn.Linear(hidden, self.projection))
        return Unified(network, known, novel.to(device), self.temperature, project.to(device))

    def loss(self, model: Unified, views: Tensor, labels: Tensor, done: float, told: Tensor | None) -> Tensor:
        """Classification and representation, of all images and of labelled ones."""
        features, cosines = model.outputs(views)
        items, known_classes = len(views) // 2, model.known_classes
        with torch.autocast(views.device.type, enabled=False):
            points = functional.normalize(model.project(features), dim=-1)
            sharp = self.sharp_at(done)
            unlabelled = swapped_loss(
                cosines, self.temperature, lambda source: targets(source / sharp, len(labels), known_classes, told)
            )
            novel = cosines.view(2, items, -1)[:, len(labels) :, known_classes:].flatten(0, 1)
            unlabelled = unlabelled - self.entropy * mean_entropy(novel / self.temperature)
            numbers = torch.arange(items, device=views.device).repeat(2)
            unlabelled = unlabelled + contrastive_loss(points, numbers, self.contrast)
            of_known = numbers < len(labels)
            classes = labels.repeat(2)
            supervised = functional.cross_entropy(cosines[of_known] / self.temperature, classes)
            supervised = supervised + contrastive_loss(points[of_known], classes, self.class_contrast)
            return (1 - self.labelled) * unlabelled + self.labelled * supervised

    def sharp_at(self, done: float) -> float:
        """The teacher's temperature after a share of the training."""
        warm = min(1.0, done / self.warm_up) if self.warm_up else 1.0
        return self.teacher + warm * (self.sharpest - self.teacher)


def targets(logits: Tensor, known: int, known_classes: int, told: Tensor | None = None) -> Tensor:
    """The teacher's softmax over the classes that an item may be of: (n, known classes + k), the known items first.

    `told` (novel, k) takes its place for the novel items of the oracle.
    """
    novel = logits[known:, known_classes:].softmax(-1) if told is None else told
    return beside(logits[:known, :known_classes].softmax(-1), novel)


def mean_entropy(logits: Tensor) -> Tensor:
    """Entropy of the mean softmax of logits (n, k)."""
    mean = logits.softmax(-1).mean(0)
    return -torch.xlogy(mean, mean).sum()


def contrastive_loss(points: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """The supervised contrastive loss: each point (n, d) should be more like those of its own label than like others.

    Points are of length 1, and each label occurs at least twice.
    """
    itself = torch.eye(len(points), dtype=torch.bool, device=points.device)
    logs = (points @ points.mT / temperature).masked_fill(itself, -torch.inf).log_softmax(-1)
    same = label_pairs(labels, torch.bool) & ~itself
    return -(logs.masked_fill(~same, 0).sum(-1) / same.sum(-1)).mean()
