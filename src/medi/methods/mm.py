"""MM: meta discovery by MAML (the paper's Algorithm 2).

A network with a softmax head is trained so that a few label-free gradient steps on a task's observations end in the
right clusters: items are pulled together or apart in pairs, and the loss on the task's queries is differentiated
through those steps. At discovery the same steps run on the novel observations; clusters are then read off the head's
largest output, or found in the adapted embedding. `inner_steps.py` has the steps and the losses, `mm_learner.py` the
discovery.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from medi.data.augment import augment
from medi.data.imageset import ImageSet
from medi.errors import InputError, unknown_name
from medi.methods.base import AT_DISCOVERY, Learner, Method, Plan
from medi.methods.embedding import Grouping
from medi.methods.inner_steps import Clusterer, InnerSteps, Pairs, outer_loss
from medi.methods.mm_learner import MMLearner
from medi.methods.pretraining import Pretraining, pretrain
from medi.nets import build, seeded
from medi.nets.per_task_conv import batch_over_tasks
from medi.runtime.devices import tensor_float32
from medi.train.cuda_graph import replayed
from medi.train.loop import Diverged, train
from medi.train.schedule import Schedule
from medi.train.together import mean_together

MATMUL_SIDE = {"cpu": 0, "cuda": 8}
"""Images up to this side are convolved by matrix products (`per_task_conv.py`): `benchmarks/maml.py` compares."""
WATCHED_CLASSES = 0.05
"""Share of the known classes that are not learnt from but watched in the log, where enough are left."""


@dataclass(frozen=True)
class MM(Method):
    """Settings of MM.

    Attributes:
        network: A name in `medi.nets.NETWORKS`.
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
    grouping: Grouping = field(default_factory=lambda: Grouping(balanced=True), metadata=AT_DISCOVERY)

    def __post_init__(self) -> None:
        if self.outer_pairs not in get_args(Pairs):
            raise unknown_name("kind of pairs", self.outer_pairs, get_args(Pairs))
        if self.over_tasks not in ("mean", "sum"):
            raise unknown_name("way to add up tasks", self.over_tasks, ("mean", "sum"))
        if self.readout not in ("head", "cluster"):
            raise unknown_name("readout", self.readout, ("head", "cluster"))
        if not self.prototypes >= 0:
            raise InputError(f"prototypes={self.prototypes:g}: give the weight of a loss, 0 or more.")
        if not (self.schedule.steps or self.pretraining):
            raise InputError(
                "without steps and without pretraining nothing is learnt: give schedule.steps or pretraining."
            )
        if self.readout == "head" and not (self.schedule.steps or self.inner.steps):
            raise InputError(
                "readout=head without schedule.steps and without inner.steps reads off a random head: give either, or "
                "readout=cluster."
            )
        if self.pretraining and self.pretraining.network != self.network:
            raise InputError(
                f"a {self.pretraining.network} cannot become a {self.network}: give both the same network."
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

            def of_part(part: slice) -> Tensor:
                images = augment(classes.images[items], plan.augmentation, generator, part)
                return meta_loss(images, task.support_labels[part].contiguous(), task.query_labels[part].contiguous())

            return self.added_up(mean_together(tasks, of_part), tasks)

        learner = MMLearner(model, plan, self.inner, self.readout, self.grouping, known)
        validation = learner.watch(watched or known, tasks, "held_out_acc" if watched else "known_acc")
        size = {"way": way, "observations": plan.observations, "queries": plan.queries, "clusters": plan.way}
        identity = self.identity(known, plan, **size)
        try:
            with tensor_float32(True), replayed(MetaLoss(model, self, way)) as meta_loss:
                if self.schedule.steps:
                    train(
                        model, loss, self.schedule, context, title=self.name, identity=identity, validation=validation
                    )
        except Diverged as error:
            raise Diverged(f"{error} The {self.inner.steps} inner steps had rate {self.inner.rate:g}.") from error
        learner.calibrate(known)
        return learner

    def added_up(self, mean: Tensor, tasks: int) -> Tensor:
        """The outer loss of a step, from the mean over its tasks."""
        return mean * tasks if self.over_tasks == "sum" else mean

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


class MetaLoss(nn.Module):
    """The loss of a batch of tasks as a function of tensors alone, so that it can be recorded.

    Args:
        model: What is trained.
        method: Steps and pairs.
        way: Classes in a task.
    """

    def __init__(self, model: Clusterer, method: MM, way: int) -> None:
        super().__init__()
        self.model, self.method, self.way = model, method, way

    def forward(self, images: Tensor, observed: Tensor, asked: Tensor) -> Tensor:
        """The mean loss of tasks.

        Args:
            images: (tasks, n + m, …), floats: first the observations, then the queries.
            observed: (tasks, n) classes of the observations, of which only the number counts.
            asked: (tasks, m) classes of the queries.
        """
        shown = observed.shape[1]
        return outer_loss(
            self.model,
            dict(self.model.named_parameters()),
            images[:, :shown],
            images[:, shown:],
            asked,
            self.method.inner,
            self.method.outer_pairs,
            prototypes=self.method.prototypes,
            way=self.way,
        )


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


# Pretraining teaches the network most at the price of ordinary training; second-order steps, which cost many times as
# much, then make it an initialisation.
_PRETRAINED = MM(
    pretraining=Pretraining(
        "prototypes", "conv4", batch=1200, schedule=Schedule(steps=1500, rate=3e-3, shape="onecycle")
    ),
    prototypes=1.0,
    schedule=Schedule(steps=200, rate=5e-4, clip=10.0, precision="float32"),
    readout="cluster",
)
_DEEP = MM(
    network="resnet18",
    pretraining=Pretraining(batch=512, schedule=Schedule(1500, 0.2, "sgd", decay=5e-4, shape="onecycle")),
    inner=InnerSteps(steps=5, precision="bfloat16"),  # ten would double what scoring costs
    prototypes=1.0,
    tasks=4,
    schedule=Schedule(steps=100, rate=3e-4, clip=10.0, precision="float32"),
    readout="cluster",
)

MM.presets = MappingProxyType(
    {
        "default": _PRETRAINED,
        "cpu": MM(
            network="mlp",
            inner=InnerSteps(steps=5, rate=0.05),
            prototypes=1.0,
            tasks=4,
            schedule=Schedule(steps=100, rate=1e-3, clip=10.0, precision="float32"),
            readout="cluster",
        ),
        "paper": MM(
            network="vgg16",
            inner=InnerSteps(rate=0.001),
            outer_pairs="rank",
            over_tasks="sum",
            # The paper's 1,000 tasks in batches of 8; of 16 they are 2,000.
            schedule=Schedule(steps=125, rate=0.4, optimiser="plain-sgd", shape="constant", precision="float32"),
        ),
        "cifar10": replace(_DEEP, rotations=True),
        "cifar100": _DEEP,
        "svhn": replace(
            _DEEP,
            rotations=True,
            pretraining=Pretraining("prototypes", batch=400, schedule=Schedule(steps=2000)),
        ),
    }
)
