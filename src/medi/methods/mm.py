"""MM: meta discovery by MAML (the paper's Algorithm 2).

A network with a softmax head is trained so that a few label-free gradient steps on a task's observations end in the
right clusters: items are pulled together or apart in pairs, and the loss on the task's queries is differentiated
through those steps. At discovery the same steps run on the novel observations; clusters are then read off the head's
largest output, or found in the adapted embedding. `inner_steps.py` has the steps and the losses, `mm_learner.py` the
discovery.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from medi.core.errors import InputError
from medi.data.augment import augment
from medi.data.imageset import ImageSet
from medi.jobs import ranks
from medi.methods.base import AT_DISCOVERY, Learner, Method, Plan
from medi.methods.embedding import GroupingConfig
from medi.methods.inner_steps import Clusterer, InnerSteps, MetaLoss, Pairs
from medi.methods.mm_learner import MMLearner
from medi.methods.pretraining import Pretraining, check_start, pretrain
from medi.nn import across_ranks, build, seeded
from medi.nn.cuda_graph import replayed
from medi.nn.devices import tensor_float32
from medi.nn.loop import Diverged, WatchedLoss, train
from medi.nn.per_task_conv import batch_over_tasks
from medi.nn.schedule import Schedule
from medi.presets import Presets, read_presets

MATMUL_SIDE = {"cpu": 0, "cuda": 8}
"""Images up to this side are convolved by matrix products (`per_task_conv.py`): `benchmarks/maml.py` compares."""
WATCH_EVERY_TASKS = 200
"""After so many training tasks, discovery is scored for the log: no weights are chosen by it."""
WATCHED_CLASSES = 0.05
"""Share of the known classes that are not learnt from but watched in the log, where enough are left."""


@dataclass(frozen=True)
class MM(Method):
    """Settings of MM.

    Attributes:
        network: A name in `medi.nn.NETWORKS`.
        pretraining: What the network learns from known classes before the first task; None for random weights.
        rotations: Count each known class turned by 90, 180 and 270 degrees as three more classes.
        inner: The label-free steps on a task's observations, by rank statistics.
        outer_pairs: What makes two queries similar: their class (`label`) or equal sets of largest features (`rank`).
            The paper's text says class, its equation rank.
        prototypes: Weight of a second outer loss: in the adapted embedding, queries must lie nearest to the mean of
            their class's observations. Not in the paper; it trains what `readout="cluster"` reads.
        tasks: Tasks in a gradient step; None for the paper's 16, or 8 of more than five classes.
        over_tasks: The outer loss of a step is the tasks' mean, or their sum as the paper writes it.
        schedule: Length and rates of the outer training; of no steps, discovery begins where pretraining ended.
        readout: The head's largest output (`head`), or clusters of the adapted embedding (`cluster`).
        grouping: How the embedding is clustered, where it is.
    """

    version: ClassVar[int | str] = 2  # 1 clamped the probabilities of pairs
    takes_sampler: ClassVar[bool] = True
    one_way: ClassVar[bool] = True
    trains_on_observations: ClassVar[bool] = True

    presets: ClassVar[Presets] = read_presets("mm")

    network: str = "conv4"
    pretraining: Pretraining | None = None
    rotations: bool = False
    inner: InnerSteps = field(default_factory=InnerSteps)
    outer_pairs: Pairs = "label"
    prototypes: float = 0.0
    tasks: int | None = None
    over_tasks: Literal["mean", "sum"] = "mean"
    schedule: Schedule = field(
        default_factory=lambda: Schedule(steps=400, rate=1e-3, shape="constant", clip=10.0, precision="float32")
    )
    readout: Literal["head", "cluster"] = field(default="head", metadata=AT_DISCOVERY)
    grouping: GroupingConfig = field(default_factory=lambda: GroupingConfig(balanced=True), metadata=AT_DISCOVERY)

    def __post_init__(self) -> None:
        if not self.prototypes >= 0:
            raise InputError(f"prototypes={self.prototypes:g}: give the weight of a loss, 0 or more.")
        check_start(self.pretraining, self.schedule, self.network)
        if self.readout == "head" and not (self.schedule.steps or self.inner.steps):
            raise InputError(
                "readout=head without schedule.steps and without inner.steps reads off a random head: give either, or "
                "readout=cluster."
            )

    @property
    def balanced(self) -> bool:
        """As its grouping says, where it groups."""
        return self.readout == "cluster" and self.grouping.balanced

    def make_learner(self, known: ImageSet, plan: Plan) -> Learner:
        """Algorithm 2: train the start of the inner steps on tasks of known classes, drawn by the plan's sampler."""
        context = plan.context
        learnt, watched = hold_out(known, WATCHED_CLASSES, plan.way, context.seed)
        classes = learnt.with_rotations() if self.rotations else learnt
        way = min(plan.way, classes.n_classes)
        self.schedule.refuse_tasks_by(plan.sampler)
        sampler = plan.make_sampler(classes, way, plan.observations, plan.queries)
        tasks = self.tasks or (16 if plan.way <= 5 else 8)
        model = self._start(classes, plan)

        def loss(generator: torch.Generator) -> Tensor:
            task = sampler.sample(tasks, generator)
            items = torch.cat([task.support.flatten(1), task.query.flatten(1)], 1)
            part = ranks.part(tasks)  # tasks do not see one another: every process does some
            images = augment(classes.images[items], plan.augmentation, generator, part)
            labels = (task.support_labels[part].contiguous(), task.query_labels[part].contiguous())
            mean = across_ranks.mean(meta_loss(images, *labels), tasks)
            return mean * tasks if self.over_tasks == "sum" else mean

        learner = MMLearner(self, model, plan, known)
        score = learner.watch(watched or known)
        size = {"way": way, "observations": plan.observations, "queries": plan.queries, "clusters": plan.way}
        identity = self.identity(known, plan, **size)
        try:
            of_tasks = MetaLoss(model, self.inner, self.outer_pairs, self.prototypes, way)
            with tensor_float32(True), replayed(of_tasks) as meta_loss:
                if self.schedule.steps:
                    name, every = "held_out_acc" if watched else "known_acc", max(1, WATCH_EVERY_TASKS // tasks)
                    seen = WatchedLoss(loss, every, score, keep_best=False, name=name)
                    train(model, seen, self.schedule, context, title=self.name, identity=identity)
        except Diverged as error:
            raise Diverged(f"{error} The {self.inner.steps} inner steps had rate {self.inner.rate:g}.") from error
        learner.calibrate(known)
        return learner

    def _start(self, classes: ImageSet, plan: Plan) -> Clusterer:
        """The network before the first task; batches normalise themselves in it."""
        context = plan.context
        body = build(self.network, tuple(classes.images.shape[1:]), norm="batch", seed=context.seed)
        if self.pretraining:
            before = pretrain(classes, plan, self.pretraining)
            # Running averages have no place to go: batches normalise themselves here.
            body.load_state_dict({name: value.detach() for name, value in before.named_parameters()})
        batch_over_tasks(body, MATMUL_SIDE.get(context.device.type, 0))
        with seeded(context.seed, stream=1):
            return Clusterer(body, body.width, plan.way).to(context.device).eval()


def hold_out(known: ImageSet, share: float, way: int, seed: int) -> tuple[ImageSet, ImageSet | None]:
    """The known classes to learn from, and those to watch in the log.

    At least as many as a task has classes are watched, and none where that would leave fewer than four times as many:
    a class held out is a class not learnt from.
    """
    count = max(way, round(share * known.n_classes))
    if known.n_classes - count < 4 * way:
        return known, None
    order = torch.randperm(known.n_classes, generator=torch.Generator().manual_seed(seed)).tolist()
    return known.of_classes(sorted(order[count:])), known.of_classes(sorted(order[:count]))
