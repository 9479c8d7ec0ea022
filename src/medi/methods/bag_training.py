"""Learners that train on the observations: a network of its own for every bag.

Shared by the published methods of novel class discovery (KCL, MCL, DTC, RS, UNO, SimGCD). What does not depend on the
observations is trained once, in `fit`; the last stage is repeated for every bag, one bag after the other. Where that is
long, it is kept as other trainings are, and goes on after an interruption.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from medi.core.errors import InputError
from medi.core.progress import Silent
from medi.data.augment import to_float
from medi.data.imageset import ImageSet
from medi.kmeans.order import content_order
from medi.methods.base import Assignment, Learner, Method, Plan
from medi.methods.outputs import OutputClustering
from medi.nn import Network
from medi.nn.context import Context
from medi.nn.embed import NetworkEmbedding, in_batches
from medi.nn.loop import Loss, train
from medi.nn.schedule import Schedule, Shape

LearntModule = TypeVar("LearntModule", bound=nn.Module)
"""What a method learns before any observation."""
KEPT_FROM_STEPS = 2000
"""Steps from which on a training on a bag is kept on disk. Shorter ones are done again: there may be hundreds."""


@dataclass(frozen=True)
class BagStage:
    """How long and how fast a network is trained on a bag.

    Attributes:
        epochs: Passes over the bag.
        batch: Its items in a gradient step; all of them where it has fewer.
        least_steps: Fewest steps, whatever the passes come to: of a handful of items, a pass is a single step.
        enough_items: Items from which on rates are those of the schedule; with fewer they are smaller in proportion,
            as every step goes where the same few items point.
        schedule: Rates; as many steps as the bag asks for.
    """

    epochs: int
    batch: int
    least_steps: int = 1
    enough_items: int = 1
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=1))

    def schedule_for(self, items: int) -> Schedule:
        """The schedule of a bag of so many items."""
        steps = max(self.least_steps, self.epochs * self.steps_of_a_pass(items))
        return replace(self.schedule, steps=steps, rate=self.schedule.rate * min(1.0, items / self.enough_items))

    def steps_of_a_pass(self, items: int) -> int:
        """Gradient steps in which every item of the bag is seen about once."""
        return math.ceil(items / self.batch)

    def draw(self, items: int, generator: torch.Generator) -> Tensor:
        """Indices of one step's items, none twice; on the generator's device."""
        if items <= self.batch:
            return torch.arange(items, device=generator.device)
        return torch.randperm(items, generator=generator, device=generator.device)[: self.batch]


def sgd_stage(shape: Shape) -> BagStage:
    """RS's length and rates: with fewer than 128 observations rates are smaller."""
    return BagStage(40, batch=128, least_steps=300, enough_items=128, schedule=Schedule(1, 0.1, "sgd", 1e-4, shape))


def ramp(done: float, length: float) -> float:
    """The weight exp(-5 (1 - done / length)²) of a consistency loss: from nearly nothing to 1, and 1 from then on."""
    return math.exp(-5 * (1 - min(1.0, done / length)) ** 2) if length > 0 else 1.0


class StepCount(nn.Module):
    """Counts the steps of a training. A part of what is trained, so that one that goes on also goes on counting."""

    taken: Tensor

    def __init__(self) -> None:
        super().__init__()
        # Stays on the CPU: to read it must not wait for a GPU.
        self.register_buffer("taken", torch.zeros((), dtype=torch.int64))

    def next(self) -> int:
        """The number of this step, from 0."""
        self.taken += 1
        return int(self.taken) - 1


@dataclass(frozen=True)
class ObservedBag:
    """One bag of observations that a network is trained on.

    Attributes:
        images: (n, …) the observations.
        k: Number of classes.
        groups: (n,) their true classes, for the oracle alone; None otherwise.
        context: Where to train, with a seed of this bag's own.
        learner: Whose bag it is: it has the known images, their augmentation, and an embedding.
    """

    images: Tensor
    k: int
    groups: Tensor | None
    context: Context
    learner: BagLearner

    def train(self, model: nn.Module, loss: Loss, schedule: Schedule) -> None:
        """Train a model on the bag; a long training is kept.

        What a loss remembers from step to step has to be a part of the model.
        """
        identity: dict[str, Any] = {}
        context, learner = self.context, self.learner
        if schedule.steps < KEPT_FROM_STEPS:
            context = replace(context, folder=None)
        else:
            names = tuple(map(str, range(self.k)))
            labels = ImageSet.unlabelled(self.images).labels if self.groups is None else self.groups
            bag = ImageSet(self.images, labels, names).fingerprint()
            identity = {**learner.identity, "pretrained with seed": learner.context.seed, "bag": bag}
        began = monotonic()
        seconds = train(model, loss, schedule, context, title=learner.method.name, identity=identity)
        learner.training_seconds += max(0.0, seconds - (monotonic() - began))  # what was done before an interruption


@dataclass(frozen=True)
class Bags:
    """A batch of bags to train on: indices (episodes, n) of a pool's encoded items (m, …), and a seed for each bag."""

    encoded: Tensor
    items: Tensor
    k: int
    seeds: Sequence[int]
    equal_sizes: bool = False


@dataclass(frozen=True)
class BagMethod(Method, Generic[LearntModule]):
    """A method that trains on the observations: it defines `learn` and `adapt`."""

    trains_on_observations: ClassVar[bool] = True

    def plan_for(self, plan: Plan) -> Plan:
        """A plan with what the method's own settings say otherwise."""
        return plan

    @abstractmethod
    def learn(self, known: ImageSet, plan: Plan) -> LearntModule:
        """What the known classes teach, once: a network of `medi.nn.build`, or a module with one as `network`."""

    @abstractmethod
    def adapt(self, learnt: LearntModule, bag: ObservedBag) -> nn.Module:
        """Train a network on one bag, with `bag.train`.

        Args:
            learnt: What `learn` returned; it must stay as it is.
            bag: The observations.

        Returns:
            A network from items (m, …) to logits (m, k), whose softmax are the probabilities of the clusters.
        """

    def make_learner(self, known: ImageSet, plan: Plan) -> Learner:
        """Learn from the known classes; bags come later."""
        return BagLearner(self, self.learn(known, self.plan_for(plan)), known, plan)


class BagLearner(Learner):
    """Trains a network for every bag."""

    def __init__(self, method: BagMethod[LearntModule], learnt: LearntModule, known: ImageSet, plan: Plan) -> None:
        self.method, self.learnt, self.known = method, learnt, known
        self.augmentation, self.context = method.plan_for(plan).augmentation, plan.context
        self.identity = method.identity(known, plan)
        network = learnt if isinstance(learnt, Network) else learnt.network
        self.embedding = NetworkEmbedding(network)  # type: ignore[arg-type]
        self.network = self.embedding.network_name

    def adapt(self, images: Tensor, k: int, groups: Tensor | None, context: Context) -> nn.Module:
        """The network of one bag (n, …); groups (n,) are for the oracle alone."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(context.seed)  # layers made on the CPU follow from the seed
            return self.method.adapt(self.learnt, ObservedBag(images, k, groups, context, self))

    def discover(
        self, encoded: Tensor, bag: Tensor, k: int, generator: torch.Generator, *, equal_sizes: bool = False
    ) -> BagClustering:
        """Train on each bag in turn."""
        seeds = torch.randint(2**31, (len(bag),), generator=generator, device=generator.device).tolist()
        return self.cluster(Bags(encoded, bag, k, seeds, equal_sizes))

    def oracle(self, encoded: Tensor, bag: Tensor, groups: Tensor, k: int) -> BagClustering:
        """The same training with the true groups in place of what the method thinks of them."""
        return self.cluster(Bags(encoded, bag, k, range(len(bag))), groups)

    def cluster(self, bags: Bags, groups: Tensor | None = None) -> BagClustering:
        """Train on each bag with its own seed."""
        episodes, n = bags.items.shape
        if n < bags.k:
            raise InputError(f"{n} observations cannot show {bags.k} classes: give more, or ask for fewer.")
        models, reporter = [], self.context.reporter
        # The steps of a single bag are worth a bar; of many, bags are: one for every bag would flicker by.
        of_bags, of_steps = (Silent(), reporter) if episodes == 1 else (reporter, Silent())
        order = content_order(bags.encoded[bags.items])
        ordered, told = bags.items.gather(1, order), None if groups is None else groups.gather(1, order)
        with of_bags.track(f"{self.method.name}: bags", episodes) as tick:
            for number, (items, seed) in enumerate(zip(ordered, bags.seeds, strict=True)):
                context = replace(self.context, seed=seed, reporter=of_steps)
                truth = None if told is None else told[number]
                models.append(self.adapt(bags.encoded[items], bags.k, truth, context).eval())
                tick(number + 1)
        return BagClustering(self, models, bags)


class BagClustering(OutputClustering):
    """Clusters that are outputs of networks, one for each bag."""

    def __init__(self, learner: BagLearner, models: Sequence[nn.Module], bags: Bags) -> None:
        self.learner, self.models, self.bags = learner, models, bags
        super().__init__(self.logits(bags.encoded, bags.items), equal_sizes=bags.equal_sizes)

    def assign(self, encoded: Tensor, items: Tensor) -> Assignment:
        """The answer for each item; norm layers use what they saw of known data and observations."""
        return self.answer(self.logits(encoded, items))

    def logits(self, encoded: Tensor, items: Tensor) -> Tensor:
        """Outputs (episodes, m, k) for items (episodes, m)."""
        device = self.learner.context.device
        answers = [
            in_batches(lambda batch, model=model: model(to_float(batch)).float(), device, encoded[row])
            for model, row in zip(self.models, items, strict=True)
        ]
        return torch.stack(answers)

    def refine(self, encoded: Tensor, items: Tensor, *, equal_sizes: bool = False) -> Assignment:
        """Train anew on observations and items together, none of them labelled."""
        both = torch.cat([self.bags.items, items], 1)
        together = self.learner.cluster(replace(self.bags, encoded=encoded, items=both, equal_sizes=equal_sizes))
        observed = self.bags.items.shape[1]
        return Assignment(together.labels[:, observed:], together.confidence[:, observed:])
