"""The transformations pi that are compared: pixels, a random network, a supervised and a meta-trained one."""

from __future__ import annotations

from dataclasses import dataclass

from medi.core.errors import unknown_name
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods.base import Plan
from medi.methods.embedding import EmbeddingLearner, EmbeddingMethod, GroupingConfig
from medi.methods.kmeans import KMeans
from medi.methods.mp import MP
from medi.methods.pretraining import Pretraining
from medi.nn import Network, build, place
from medi.nn.context import Context
from medi.nn.schedule import Schedule

KINDS = ("pixels", "random", "supervised", "meta")
"""Raw pixels; the network as it is before training; under cross-entropy; under MP's tasks."""

OBSERVATIONS = 5
QUERIES = 5
"""Of a training task."""


@dataclass(frozen=True)
class Recipe:
    """How the networks are made; both trainings see equally many images.

    Attributes:
        network: A name in `medi.nn.NETWORKS`.
        steps: Gradient steps.
        batch: Images in a step.
        rate: Learning rate, falling to 0 along a cosine.
        temperature: What squared distances are divided by in MP's training; at 1 the softmax of a short one is stuck.
    """

    network: str = "conv4"
    steps: int = 200
    batch: int = 50
    rate: float = 5e-3
    temperature: float = 16.0


@dataclass(frozen=True)
class RandomNetwork(EmbeddingMethod):
    """A network as it is before training."""

    network: str

    def learn(self, known: ImageSet, plan: Plan) -> Network:
        """The untrained network."""
        context = plan.context
        return place(build(self.network, tuple(known.images.shape[1:]), seed=context.seed), context.device)


def learn(
    kind: str, known: ImageSet, recipe: Recipe, context: Context, *, way: int, augmentation: Augmentation
) -> EmbeddingLearner:
    """A learner that clusters what the transformation of a kind makes of images.

    Everything but the transformation is the same for every kind: the features are clustered as they are, with the
    knowledge that classes are equally large.

    Args:
        kind: One of `KINDS`.
        known: The known classes; `pixels` and `random` learn nothing of them but how confident to be.
        recipe: How networks are trained.
        context: Seed and progress.
        way: Classes in a training task.
        augmentation: What leaves the class of an image alone.
    """
    plan = Plan(way, OBSERVATIONS, QUERIES, augmentation=augmentation, context=context)
    return method_for(kind, recipe).make_learner(known, plan)


def method_for(kind: str, recipe: Recipe) -> EmbeddingMethod:
    """The method that ends in the transformation of a kind."""
    grouping = GroupingConfig(balanced=True)
    schedule = Schedule(steps=recipe.steps, rate=recipe.rate)
    match kind:
        case "pixels":
            return KMeans(grouping=grouping)
        case "random":
            return RandomNetwork(recipe.network, grouping=grouping)
        case "supervised":
            return KMeans(Pretraining("classes", recipe.network, recipe.batch, schedule), grouping=grouping)
        case "meta":
            return MP(
                recipe.network,
                images=recipe.batch,
                temperature=recipe.temperature,
                schedule=schedule,
                grouping=grouping,
            )
    raise unknown_name("kind of embedding", kind, KINDS)
