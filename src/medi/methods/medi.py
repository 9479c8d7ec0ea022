"""MEDI's own method: the best recipe found on held-out known classes. It is ours, not the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from medi.cluster.prepare import Preparation
from medi.data.images import ImageSet
from medi.methods.base import Learner, Method, Plan
from medi.methods.embedding import EmbeddingLearner, Grouping
from medi.methods.readout import Readout, ReadoutEncoder
from medi.methods.recipe import Recipe, Supervised, teach
from medi.train.schedule import Schedule

BETWEEN_MEMBERS = 1000
"""What is added to the seed for the next member of the same recipe: more than anyone runs seeds."""


@dataclass(frozen=True)
class MediConfig:
    """Settings of `medi`.

    Attributes:
        members: How each network learns; equal recipes start from different seeds.
        readout: What is read off the networks.
        grouping: How features become clusters.
    """

    members: tuple[Recipe, ...] = (Recipe(),)
    readout: Readout = field(default_factory=Readout)
    grouping: Grouping = field(default_factory=lambda: Grouping(Preparation(), balanced=True))


CPU = Recipe("conv4", copies="none", supervised=Supervised(128, schedule=Schedule(60, 3e-3, shape="onecycle")))


class Medi(Method):
    """Discovery in what several networks, taught by a recipe each, make of images."""

    name: ClassVar[str] = "medi"
    embeds: ClassVar[bool] = True
    configs: ClassVar[Mapping[str, MediConfig]] = {
        "default": MediConfig(),
        "cpu": MediConfig((CPU,)),
    }
    chosen: ClassVar[Mapping[str, str]] = {"glyphs": "cpu", "rules": "cpu"}

    def __init__(self, config: MediConfig) -> None:
        self.settings = config

    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """Teach every network, one after the other."""
        config, desk = self.settings, plan.desk
        taught = [
            teach(recipe, known, replace(plan, desk=replace(desk, seed=seed)))
            for recipe, seed in _with_seeds(config.members, desk.seed)
        ]
        networks, seconds = zip(*taught, strict=True)
        encoder = ReadoutEncoder(networks, known, config.readout, desk.device)
        names = "+".join(recipe.network for recipe in config.members)
        return EmbeddingLearner(encoder, known, plan, config.grouping, names, sum(seconds))


def _with_seeds(members: tuple[Recipe, ...], seed: int) -> Iterator[tuple[Recipe, int]]:
    """Every recipe and its seed: the run's own for the first of its kind, so that other ensembles can share it."""
    for number, recipe in enumerate(members):
        yield recipe, seed + BETWEEN_MEMBERS * members[:number].count(recipe)
