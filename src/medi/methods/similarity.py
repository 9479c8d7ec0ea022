"""The similarity network of KCL and MCL, and the clustering that follows its judgement.

On known classes a network learns to tell whether two images show the same class. On novel images a second network
with one output a cluster is trained to agree with it, pair by pair; KCL and MCL differ in the loss of a pair alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from medi.data.augment import augment
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods.bag_training import AdaptingLearner
from medi.methods.base import Learner, Method, Plan
from medi.methods.pairs_config import CHOSEN, CONFIGS, RECIPES, PairConfig, Similarity
from medi.nets import Network, build, place, seeded
from medi.runtime.context import Context
from medi.tasks.episodes import UniformSampler
from medi.train.loop import train

PairLoss = Callable[[Tensor, Tensor], Tensor]
"""From logits (n, k) and pair labels (n, n) of ones and zeros to a number."""


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


def train_similarity(known: ImageSet, config: Similarity, plan: Plan) -> tuple[SimilarityNetwork, float]:
    """The trained similarity network and the seconds it took; found again by whoever asks for the same one."""
    context = plan.context
    sampler = UniformSampler(known.labels, min(config.classes, known.n_classes), config.each, 0, known.class_names)
    network = build(config.network, tuple(known.images.shape[1:]), seed=context.seed)
    with seeded(context.seed, stream=1):
        model = SimilarityNetwork(network)
    place(model.to(context.device).network, context.device)

    def loss(generator: torch.Generator) -> Tensor:
        task = sampler.sample(1, generator)
        labels = task.support_labels[0]
        logits = model(augment(known.images[task.support.flatten()], plan.augmentation, generator))
        return functional.cross_entropy(logits.float().flatten(0, 1), (labels[:, None] == labels).long().flatten())

    settings = plan.settings(known, config)
    return model, train(model, loss, config.schedule, context, title="similarity", settings=settings)


class PairMethod(Method):
    """Clustering that follows the similarity network.

    Attributes:
        loss: What disagreement of a pair costs.
    """

    loss: ClassVar[PairLoss]
    presets: ClassVar[Mapping[str, PairConfig]] = CONFIGS
    chosen: ClassVar[Mapping[str, str]] = CHOSEN
    recipes: ClassVar[Mapping[str, str]] = RECIPES

    def __init__(self, config: PairConfig) -> None:
        self.settings = config

    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """Train the similarity network, or find it trained."""
        judge, seconds = train_similarity(known, self.settings.similarity, plan)
        settings = plan.settings(known, self.settings)
        return PairLearner(
            self.name, type(self).loss, judge, self.settings, plan.augmentation, plan.context, seconds, settings
        )


class PairLearner(AdaptingLearner):
    """Trains a clustering network on each bag to agree with the similarity network."""

    def __init__(
        self,
        title: str,
        loss: PairLoss,
        judge: SimilarityNetwork,
        config: PairConfig,
        augmentation: Augmentation,
        context: Context,
        training_seconds: float = 0.0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            title, context, config.similarity.network, config.stage.schedule.precision, training_seconds, settings
        )
        self.loss, self.judge, self.config, self.augmentation = loss, judge, config, augmentation

    def adapt(self, images: Tensor, k: int, groups: Tensor | None, context: Context) -> nn.Module:
        """A network whose outputs for pairs of the bag agree with the judge, or with the true groups."""
        stage = self.config.stage
        judge = deepcopy(self.judge).train()  # judges by the batch's own statistics; the copy keeps ours as they were
        model = self._clusterer(images, k, context)

        def loss(generator: torch.Generator) -> Tensor:
            items = stage.draw(len(images), generator)
            batch = augment(images[items], self.augmentation, generator)
            with torch.no_grad():
                same = judge(batch).argmax(-1) if groups is None else groups[items][:, None] == groups[items]
            logits = model(batch).float()
            with torch.autocast(context.device.type, enabled=False):  # logarithms near 0 need every digit
                return self.loss(logits, same.to(logits.dtype))

        self.train_on(images, k, groups, model, loss, stage.schedule_for(len(images)), context)
        return model

    def _clusterer(self, images: Tensor, k: int, context: Context) -> nn.Module:
        if self.config.start == "similarity":
            network = deepcopy(self.judge.network)
        else:
            network = place(
                build(self.config.similarity.network, tuple(images.shape[1:]), seed=context.seed), context.device
            )
        with seeded(context.seed, stream=1):
            head = nn.Sequential(
                nn.Linear(network.width, self.config.hidden), nn.ReLU(), nn.Linear(self.config.hidden, k)
            )
        return nn.Sequential(network, head.to(context.device))
