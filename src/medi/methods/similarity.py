"""The similarity network of KCL and MCL, and the clustering that follows its judgement.

On known classes a network learns to tell whether two images show the same class. On novel images a second network
with one output a cluster is trained to agree with it, pair by pair; KCL and MCL differ in the loss of a pair alone.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.data.augment import augment
from medi.data.imageset import ImageSet
from medi.methods.bag_training import BagMethod, BagStage, ObservedBag
from medi.methods.base import Plan
from medi.methods.pair_losses import label_pairs
from medi.nn import Network, build_for, seeded
from medi.nn.loop import train
from medi.nn.schedule import Schedule
from medi.presets import Presets, read_presets
from medi.tasks.episodes import UniformSampler

PairLoss = Callable[[Tensor, Tensor], Tensor]
"""From logits (n, k) and pair labels (n, n) of ones and zeros to a number."""


@dataclass(frozen=True)
class Similarity:
    """How the similarity network is trained.

    Attributes:
        network: A name in `medi.nn.NETWORKS`.
        classes: Known classes in a gradient step; all of them where there are fewer.
        each: Images of each, never more than the smallest has.
        schedule: Length and rates.
    """

    network: str = "resnet18"
    classes: int = 20
    each: int = 5
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=3000, shape="onecycle"))


class SimilarityNetwork(nn.Module):
    """concat(z_i, z_j) -> Linear(2d, 4d), norm, ReLU, Linear(4d, 2) for every ordered pair of a batch."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        width = network.width
        self.network = network
        self.first, self.norm, self.last = (
            nn.Linear(2 * width, 4 * width),
            nn.BatchNorm1d(4 * width),
            nn.Linear(4 * width, 2),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, n, 2) of "different" and "same" for images (n, …)."""
        z = self.network(images)
        # The layer on a concatenation is a sum of two layers: n products of size d instead of n² of size 2d.
        of_first, of_second = self.first.weight.chunk(2, dim=1)
        hidden = functional.linear(z, of_first, self.first.bias)[:, None] + functional.linear(z, of_second)
        logits: Tensor = self.last(self.norm(hidden.flatten(0, 1)).relu())
        return logits.view(len(z), len(z), 2)


def train_similarity(known: ImageSet, config: Similarity, plan: Plan) -> SimilarityNetwork:
    """The trained similarity network; found again by whoever asks for the same one."""
    context = plan.context
    smallest = int(torch.unique(known.labels[known.labels >= 0], return_counts=True)[1].min())
    each = min(config.each, smallest)
    sampler = UniformSampler(known.labels, min(config.classes, known.n_classes), each, 0, known.class_names)
    network = build_for(config.network, known.images, context)
    with seeded(context.seed, stream=1):
        model = SimilarityNetwork(network).to(context.device)

    def loss(generator: torch.Generator) -> Tensor:
        task = sampler.sample(1, generator)
        logits = model(augment(known.images[task.support.flatten()], plan.augmentation, generator))
        same = label_pairs(task.support_labels[0], torch.int64)
        return functional.cross_entropy(logits.float().flatten(0, 1), same.flatten())

    identity = {
        "code": __name__,  # a changed copy of this file is another method
        "similarity": asdict(config),
        "known": known.fingerprint(),
        "augmentation": asdict(plan.augmentation),
    }
    train(model, loss, config.schedule, context, title="similarity", identity=identity)
    return model


@dataclass(frozen=True)
class PairMethod(BagMethod[SimilarityNetwork]):
    """Settings of KCL and MCL.

    Attributes:
        similarity: The network that judges pairs.
        start: Where the clustering network's weights come from: the similarity network, or nowhere.
        hidden: Size of the layer between features and clusters.
        stage: Training on the observations.
    """

    presets: ClassVar[Presets] = read_presets("pairs")
    loss: ClassVar[PairLoss]

    similarity: Similarity = field(default_factory=Similarity)
    start: Literal["similarity", "random"] = "similarity"
    hidden: int = 512
    stage: BagStage = field(default_factory=lambda: BagStage(epochs=30, batch=200, least_steps=300))

    def learn(self, known: ImageSet, plan: Plan) -> SimilarityNetwork:
        """The network that judges pairs."""
        return train_similarity(known, self.similarity, plan)

    def adapt(self, learnt: SimilarityNetwork, bag: ObservedBag) -> nn.Module:
        """A network whose outputs for pairs of the bag agree with the judge, or with the true groups."""
        images, groups, pair_loss = bag.images, bag.groups, type(self).loss
        judge = deepcopy(learnt).train()  # judges by the batch's own statistics; the copy keeps ours as they were
        model = self._clusterer(learnt, bag)

        def loss(generator: torch.Generator) -> Tensor:
            items = self.stage.draw(len(images), generator)
            batch = augment(images[items], bag.learner.augmentation, generator)
            with torch.no_grad():
                same = judge(batch).argmax(-1) if groups is None else label_pairs(groups[items])
            logits = model(batch).float()
            with torch.autocast(logits.device.type, enabled=False):  # logarithms near 0 need every digit
                return pair_loss(logits, same.to(logits.dtype))

        bag.train(model, loss, self.stage.schedule_for(len(images)))
        return model

    def _clusterer(self, learnt: SimilarityNetwork, bag: ObservedBag) -> nn.Module:
        context = bag.context
        if self.start == "similarity":
            network = deepcopy(learnt.network)
        else:
            network = build_for(self.similarity.network, bag.images, context)
        with seeded(context.seed, stream=1):
            head = nn.Sequential(nn.Linear(network.width, self.hidden), nn.ReLU(), nn.Linear(self.hidden, bag.k))
        return nn.Sequential(network, head.to(context.device))
