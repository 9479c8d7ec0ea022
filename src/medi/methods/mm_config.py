"""Settings of MM, and the named ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, get_args

from medi.errors import InputError, unknown_name
from medi.methods.embedding import Grouping
from medi.methods.inner_steps import InnerSteps, Pairs
from medi.methods.pretraining import Start
from medi.train.schedule import Schedule


@dataclass(frozen=True)
class MMConfig:
    """Settings of MM.

    Attributes:
        network: A name in `medi.nets.NETWORKS`.
        embedding: Size of the embedding; None for the network's own.
        start: What the network learns from known classes before the first task; None for random weights.
        rotations: Count each known class turned by 90, 180 and 270 degrees as three more classes.
        inner: The label-free steps.
        inner_pairs: What makes two observations similar in training: equal sets of largest features (`rank`), or their
            class (`label`). At discovery there are no classes, and it is always rank.
        outer_pairs: The same of queries. The paper's text says class, its equation rank.
        prototypes: Weight of a second outer loss: in the adapted embedding, queries must lie nearest to the mean of
            their class's observations. Not in the paper; it trains what `readout="cluster"` reads.
        tasks: Tasks in a gradient step; None for the paper's 16, or 8 of more than five classes.
        held_out: Share of the known classes kept out of training, for the log alone: discovery is scored on them every
            200 tasks. At least as many as a task has classes, and none where that would leave fewer than four times
            as many: a class held out is a class not learnt from. Where none is, known classes are scored.
        capture: On a GPU, record the step once as a CUDA graph and replay it: small networks wait for launches.
        tf32: On a GPU, let products of float32 numbers use TF32.
        schedule: Length and rates of the outer training.
        readout: The head's largest output (`head`), or clusters of the adapted embedding (`cluster`).
        grouping: How the embedding is clustered, where it is.
    """

    network: str = "conv4"
    embedding: int | None = None
    start: Start | None = None
    rotations: bool = False
    inner: InnerSteps = field(default_factory=InnerSteps)
    inner_pairs: Pairs = "rank"
    outer_pairs: Pairs = "label"
    prototypes: float = 0.0
    tasks: int | None = None
    held_out: float = 0.05
    capture: bool = True
    tf32: bool = True
    schedule: Schedule = field(
        default_factory=lambda: Schedule(steps=400, rate=1e-3, shape="constant", clip=10.0, precision="float32")
    )
    readout: Literal["head", "cluster"] = "head"
    grouping: Grouping = field(default_factory=lambda: Grouping(balanced=True))

    def __post_init__(self) -> None:
        for pairs in (self.inner_pairs, self.outer_pairs):
            if pairs not in get_args(Pairs):
                raise unknown_name("kind of pairs", pairs, get_args(Pairs))
        if self.readout not in ("head", "cluster"):
            raise unknown_name("readout", self.readout, ("head", "cluster"))
        if self.start and (self.start.network, None) != (self.network, self.embedding):
            raise InputError(
                f"a {self.start.network} cannot be the start of a {self.network}"
                + ("" if self.embedding is None else f" with an embedding of {self.embedding}")
                + ": give both the same network and its own embedding."
            )
        if not 0 <= self.held_out < 1:
            raise InputError(f"held_out={self.held_out} is no share of the known classes: give 0 to below 1.")


def _candidates() -> dict[str, MMConfig]:
    """What `medi bench choose` compares; those named `cpu` are for sets that a CPU trains on in a minute.

    A start teaches the network most at the price of ordinary training; second-order steps, which cost many times as
    much, then make it an initialisation.
    """
    started = MMConfig(
        start=Start("prototypes", "conv4", batch=1200, schedule=Schedule(steps=1500, rate=3e-3, shape="onecycle")),
        prototypes=1.0,
        schedule=Schedule(steps=200, rate=5e-4, clip=10.0, precision="float32"),
        readout="cluster",
    )
    deep = MMConfig(
        network="resnet18",
        start=Start("classes", batch=512, schedule=Schedule(1500, 0.2, "sgd", decay=5e-4, shape="onecycle")),
        inner=InnerSteps(steps=5, precision="bfloat16"),  # ten would double what scoring costs
        prototypes=1.0,
        tasks=4,
        schedule=Schedule(steps=100, rate=3e-4, clip=10.0, precision="float32"),
        readout="cluster",
    )
    cpu = MMConfig(
        network="mlp",
        inner=InnerSteps(steps=5, rate=0.05),
        tasks=4,
        schedule=Schedule(steps=100, rate=1e-3, clip=10.0, precision="float32"),
    )
    return {
        "pairs": MMConfig(),
        "pairs-cluster": MMConfig(readout="cluster"),
        "started": started,
        "started-head": replace(started, readout="head"),
        "started-pairs": replace(started, prototypes=0.0),
        "started-rotated": replace(started, rotations=True),
        "resnet18-started": deep,
        "resnet18-started-rotated": replace(deep, rotations=True),
        "resnet18-tasks-rotated": replace(
            deep, rotations=True, start=Start("prototypes", batch=400, schedule=Schedule(steps=2000))
        ),
        "cpu": cpu,
        "cpu-cluster": replace(cpu, readout="cluster"),
        "cpu-prototypes": replace(cpu, prototypes=1.0, readout="cluster"),
    }


CONFIGS: Mapping[str, MMConfig] = MappingProxyType(
    {
        "default": _candidates()["started"],
        "paper": MMConfig(
            network="vgg16",
            inner=InnerSteps(rate=0.001),
            outer_pairs="rank",
            # Clipped: at this rate, with momentum, gradients reach norms of thousands.
            schedule=Schedule(steps=100, rate=0.4, optimiser="sgd", shape="constant", clip=10.0, precision="float32"),
        ),
        **_candidates(),
    }
)
