"""MEDI's own method: the best recipe found on held-out known classes. It is ours, not the paper's.

One or several networks learn from the known classes, each by a recipe (`recipe.py`); what they make of images is
prepared and put side by side (`readout.py`) and clustered (`embedding.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from medi.data.augment import StrongAugmentation
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods.base import Learner, Method, Plan
from medi.methods.embedding import EmbeddingLearner, Grouping, JointGrouping
from medi.methods.readout import Readout, ReadoutEncoder
from medi.methods.recipe import Contrast, Recipe, Supervised, Tasks, teach
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
    grouping: Grouping = field(default_factory=lambda: JointGrouping(balanced=True))


PHOTO = StrongAugmentation(crop=4, flip=True, colour=0.4, grey=0.1, cutout=8)
DIGIT = StrongAugmentation(crop=2, rotate=15, scale=0.2, shear=0.2, colour=0.6, grey=0.1, invert=0.5, shuffle=0.8)

EQUAL = JointGrouping(balanced=True)
WHITE = Readout(whiten=0.5, centred=True, unit=True)
WEIGHED = replace(WHITE, weigh=0.1)

READINGS: Mapping[str, tuple[Readout, Grouping]] = {
    "plain": (Readout(), EQUAL),
    "unit": (Readout(unit=True), EQUAL),
    "white": (WHITE, EQUAL),
    "whiter": (replace(WHITE, whiten=0.2), EQUAL),
    "levels": (replace(WHITE, levels=2), EQUAL),
    "views": (replace(WHITE, shift=1), EQUAL),
    "turned": (replace(WHITE, turned=True), EQUAL),
    "turned-levels": (replace(WHITE, turned=True, levels=2), EQUAL),
    "turned-three-levels": (replace(WHITE, turned=True, levels=3), EQUAL),
    "turned-views": (replace(WHITE, turned=True, shift=1), EQUAL),
    "weighed": (WEIGHED, EQUAL),
    "weighed-lightly": (replace(WEIGHED, weigh=0.5), EQUAL),
    "weighed-views": (replace(WEIGHED, shift=1), EQUAL),
    "weighed-turned": (replace(WEIGHED, turned=True), EQUAL),
    # In the transductive regime alone, `settled` and `neighbours` differ from `white`, and `…-neighbours` from `…`.
    "settled": (WHITE, replace(EQUAL, recluster=False)),
    "neighbours": (WHITE, replace(EQUAL, neighbours=10)),
    "views-neighbours": (replace(WHITE, shift=1), replace(EQUAL, neighbours=10)),
    "weighed-views-neighbours": (replace(WEIGHED, shift=1), replace(EQUAL, neighbours=10)),
    "weighed-turned-neighbours": (replace(WEIGHED, turned=True), replace(EQUAL, neighbours=10)),
}
"""Ways to read one training: all that comes after it."""


def _supervised(steps: int, *, contrast: Contrast | None = None, mix: float = 0.0) -> Supervised:
    schedule = Schedule(steps, rate=0.2, optimiser="sgd", decay=5e-4, shape="onecycle")
    return Supervised(contrast=contrast, mix=mix, schedule=schedule)


def _recipes(few: int, many: int) -> dict[str, tuple[Recipe, ...]]:
    """Recipes by name; `few` and `many` are the steps of training for few and for many known classes."""
    refine = Tasks(schedule=Schedule(200, rate=3e-4))
    photo = Recipe(augmentation=PHOTO, supervised=_supervised(few))
    spliced = replace(photo, copies="spliced")
    contrast = replace(photo, supervised=_supervised(few, contrast=Contrast()))
    digit = Recipe(augmentation=DIGIT, supervised=_supervised(few))
    episodes = replace(digit, supervised=None, tasks=Tasks(images=500, schedule=Schedule(few)))
    objects = Recipe(copies="none", augmentation=PHOTO, supervised=_supervised(many))
    turned = replace(objects, copies="turned")
    mixed = replace(objects, supervised=_supervised(many, mix=0.5))
    # Sixty classes in a task: each query has more to be told apart from.
    wide = Tasks(way=60, images=1200, schedule=Schedule(many, rate=3e-3, shape="onecycle"))
    character = Recipe("conv4", copies="none", supervised=None, tasks=wide)
    deep = Recipe(supervised=_supervised(many))
    return {
        "photo": (photo,),
        "photo-tasks": (replace(photo, tasks=refine),),
        "photo-contrast": (contrast,),
        "photo-spliced": (spliced,),
        "photo-spliced-tasks": (replace(spliced, tasks=refine),),
        "photo-both": (photo, contrast),
        "digit": (digit,),
        "digit-tasks": (replace(digit, tasks=refine),),
        "digit-episodes": (episodes,),
        "digit-spliced": (replace(digit, copies="spliced"),),
        "digit-crossed": (replace(digit, copies="crossed"),),
        "digit-both": (digit, episodes),
        "objects": (objects,),
        "objects-tasks": (replace(objects, tasks=refine),),
        "objects-turned": (turned,),
        "objects-mixed": (mixed,),
        "objects-mixed-tasks": (replace(mixed, tasks=refine),),
        "objects-contrast": (replace(objects, supervised=_supervised(many, contrast=Contrast())),),
        "objects-both": (objects, turned),
        "objects-pair": (replace(objects, tasks=refine), replace(mixed, tasks=refine)),
        "character": (character,),
        "character-turned": (replace(character, copies="turned"),),
        "character-deep": (deep,),
        "character-deep-tasks": (replace(deep, tasks=replace(wide, schedule=Schedule(200, rate=3e-4))),),
        "character-both": (character, deep),
    }


def _candidates() -> dict[str, MediConfig]:
    """What `medi bench choose` compares: trained briefly, as every split wants a training."""
    recipes = _recipes(few=600, many=1000)
    return {f"{name}-{way}": _read(name, members, way) for name, members in recipes.items() for way in READINGS}


WINNERS: Mapping[str, tuple[str, str]] = {
    "cifar10": ("photo-spliced-tasks", "turned-levels"),
    "svhn": ("digit-spliced", "turned-views"),
    "cifar100": ("objects-tasks", "views-neighbours"),
    "omniglot": ("character-deep", "turned"),
}
"""The recipe and the reading that held-out known classes chose for every benchmark."""


def _winners() -> dict[str, MediConfig]:
    """What was chosen, with three networks, and all but Omniglot's trained for longer."""
    brief, long = _recipes(few=600, many=1000), _recipes(few=2000, many=2500)
    return {
        dataset: _read(name, 3 * (brief if dataset == "omniglot" else long)[name], way)
        for dataset, (name, way) in WINNERS.items()
    }


def _read(name: str, members: tuple[Recipe, ...], way: str) -> MediConfig:
    readout, grouping = READINGS[way]
    # A mirrored photo shows the same thing; a mirrored digit or character may be another one.
    return MediConfig(members, replace(readout, flip=name.startswith(("photo", "objects"))), grouping)


def _on_cpu() -> dict[str, MediConfig]:
    """Candidates for a CPU: MP's training there, read in several ways."""
    tasks = Tasks(queries=5, images=200, temperature=1.0, schedule=Schedule(60, rate=3e-3))
    recipe = Recipe("conv4", copies="none", supervised=None, tasks=tasks)
    return {f"cpu-{way}": _read("cpu", (recipe,), way) for way in READINGS}


class Medi(Method):
    """Discovery in what several networks, taught by a recipe each, make of images."""

    name: ClassVar[str] = "medi"
    presets: ClassVar[Mapping[str, MediConfig]] = {
        "default": MediConfig(readout=WHITE),
        "cpu": _on_cpu()["cpu-views"],
        **_winners(),
        **_on_cpu(),
        **_candidates(),
    }
    chosen: ClassVar[Mapping[str, str]] = {"glyphs": "cpu-weighed-views", "rules": "cpu"} | {
        name: name for name in WINNERS
    }

    def __init__(self, config: MediConfig) -> None:
        self.settings = config

    def fit(self, known: ImageSet, plan: Plan) -> Learner:
        """Teach every network, one after the other."""
        config, context = self.settings, plan.context
        if known.images.ndim == 2:
            config = for_vectors(config)
        taught = [
            teach(recipe, known, replace(plan, context=replace(context, seed=seed)))
            for recipe, seed in _with_seeds(config.members, context.seed)
        ]
        networks, seconds = zip(*taught, strict=True)
        encoder = ReadoutEncoder(networks, known, config.readout, context.device)
        names = "+".join(recipe.network for recipe in config.members)
        return EmbeddingLearner(encoder, known, plan, config.grouping, names, sum(seconds))


def for_vectors(config: MediConfig) -> MediConfig:
    """The settings without what only images have: an MLP reads vectors, which are not turned, changed or shifted."""
    members = tuple(
        replace(
            member,
            network="mlp",
            copies="none",
            augmentation=Augmentation(),
            supervised=member.supervised and replace(member.supervised, mix=0.0),
        )
        for member in config.members
    )
    return replace(
        config, members=members, readout=replace(config.readout, levels=1, shift=0, flip=False, turned=False)
    )


def _with_seeds(members: tuple[Recipe, ...], seed: int) -> Iterator[tuple[Recipe, int]]:
    """Every recipe and its seed: the run's own for the first of its kind, so that other ensembles can share it."""
    for number, recipe in enumerate(members):
        yield recipe, seed + BETWEEN_MEMBERS * members[:number].count(recipe)
