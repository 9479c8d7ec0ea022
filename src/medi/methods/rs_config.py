"""Settings of RS, and the named ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from medi.data.facts import CROPPED, FLIPPED, Augmentation
from medi.errors import InputError
from medi.methods import pretraining
from medi.methods.bag_training import ScaledStage, Stage
from medi.methods.pretraining import Start
from medi.train.schedule import Drops, Schedule


def _on_bag(epochs: int) -> Stage:
    schedule = Schedule(steps=1, rate=0.1, optimiser="sgd", decay=1e-4)
    return ScaledStage(epochs=epochs, batch=128, least=300, schedule=schedule)


def _rotations(steps: int) -> Start:
    return Start("rotations", schedule=Schedule(steps=steps, shape="onecycle", decay=5e-4))


# Rotations of all that may be seen, and the highest rate, as published; an eighth as many images.
SEEN = Start("rotations", schedule=Schedule(8000, 0.1, "sgd", decay=5e-4, shape="onecycle"), observed=True)


@dataclass(frozen=True)
class RSConfig:
    """Settings of RS.

    Attributes:
        start: The first stage.
        supervised: Rates of the second stage, the last stage of the network on known classes; None leaves it out.
        supervised_batch: Known images in each of its gradient steps; None for as many as in the start's.
        only_last: Freeze all but the last stage of the network after the start.
        stage: Training on the observations.
        known: Known images beside the observations in each of its gradient steps.
        each: Observations in a step for each novel class, on average, instead of the stage's batch; None for that.
        restarts: Trainings on the observations, each from a novel head of its own; of several the one stays whose
            clusters agree best with nearest neighbours. With fewer than two observations a class there is one training,
            and nothing steadied.
        steady: Final weight of consistency in a further training, on from the one that stays; None for no further one.
        top: Size of the sets of largest features.
        consistency: Final weight of the squared difference between two views of an image.
        ramp: Share of the training in which that weight is reached.
        hidden: Size of a layer with a norm between features and either head's outputs; None for linear heads.
        augmentation: Random changes of images; None for the dataset's own.
    """

    start: Start = field(default_factory=lambda: _rotations(2000))
    supervised: Schedule | None = field(default_factory=lambda: Schedule(steps=1000, shape="onecycle"))
    supervised_batch: int | None = None
    only_last: bool = True
    stage: Stage = field(default_factory=lambda: _on_bag(epochs=40))
    known: int = 64
    each: int | None = None
    restarts: int = 1
    steady: float | None = None
    top: int = 5
    consistency: float = 5.0
    ramp: float = 0.25
    hidden: int | None = None
    augmentation: Augmentation | None = None

    def __post_init__(self) -> None:
        if self.each is not None and self.each < 1:
            raise InputError(f"each={self.each} leaves a step without observations: give at least 1, or None.")
        if self.supervised_batch is not None and self.supervised_batch < 1:
            raise InputError(f"supervised_batch={self.supervised_batch} leaves a step without images: give at least 1.")
        if self.restarts < 1:
            raise InputError(f"restarts={self.restarts} leaves nothing trained: give at least 1.")


SVHN = RSConfig(_rotations(5000), stage=_on_bag(epochs=100), consistency=50.0, ramp=0.4)
# As many known as novel images in a step, as published: of fewer pairs, more are of an item with itself.
SVHN_EVEN = replace(SVHN, stage=replace(SVHN.stage, batch=64))
# A second stage by SGD at the published rate, about half as long.
SGD_SECOND = Schedule(steps=4000, rate=0.1, optimiser="sgd", decay=1e-4)
SVHN_SETTLED = replace(SVHN, supervised=SGD_SECOND, augmentation=CROPPED)
# The same with the rate rising first, and the weight decay of the rotations.
SGD_ONECYCLE = Schedule(4000, 0.1, "sgd", decay=5e-4, shape="onecycle")
CPU = RSConfig(
    pretraining.CPU,
    supervised=None,
    stage=Stage(epochs=20, batch=100, least=100, schedule=Schedule(steps=1, rate=3e-3)),
    known=64,
)


def _full(known: int, consistency: float, ramp: float, augmentation: Augmentation | None = None) -> RSConfig:
    """The published recipe for so many known images: 200 and 100 epochs of these, then 200, in batches of 128."""
    steps = known // 128
    tenths = tuple(i / 10 for i in range(1, 10))
    return RSConfig(
        Start(
            "rotations",
            "resnet18-padded",
            batch=512,  # 128 images in each of four positions
            schedule=Drops(200 * steps, rate=0.1, optimiser="sgd", decay=5e-4, at=(0.3, 0.6, 0.8), drop=0.2),
            observed=True,
        ),
        supervised=Drops(100 * steps, rate=0.1, optimiser="sgd", decay=1e-4, at=tenths, drop=0.5),
        supervised_batch=128,
        stage=Stage(epochs=200, batch=64, schedule=Drops(1, rate=0.1, optimiser="sgd", decay=1e-4, at=(0.85,))),
        known=64,
        consistency=consistency,
        ramp=ramp,
        augmentation=augmentation,
    )


def _characters(start: Start, stage: Stage, known: int) -> RSConfig:
    """Prototypes instead of rotations, and nothing frozen."""
    return RSConfig(start, supervised=None, only_last=False, stage=stage, known=known, consistency=100.0, ramp=0.01)


def _last_stage_of_characters() -> dict[str, RSConfig]:
    """As published for characters, in fewer steps: all but the last stage frozen, heads with a hidden layer."""
    schedule = Schedule(steps=1, rate=0.01)

    def config(start: Start, steps: int, schedule: Schedule = schedule) -> RSConfig:
        stage = Stage(1, batch=32, least=steps, schedule=schedule)
        return replace(_characters(start, stage, known=68), only_last=True, hidden=512)

    return {
        "short": config(pretraining.CHARACTERS, 1000),
        "slow": config(pretraining.CHARACTERS, 1000, replace(schedule, rate=1e-3)),
        "long": config(pretraining.CHARACTERS, 4000),
        "late": config(pretraining.CHARACTERS_LONG, 1000),
    }


def _few_a_class() -> dict[str, RSConfig]:
    """On SVHN, by a small network, with few images of a class in a step: docs/baselines.md says why."""
    start = Start("classes", "conv4", batch=128, schedule=Schedule(steps=600, rate=3e-3, shape="onecycle"))
    stage = Stage(epochs=1, batch=64, least=1800, schedule=Schedule(steps=1))
    config = RSConfig(start, supervised=None, stage=stage, known=32, each=4, consistency=5.0, ramp=0.4)
    return {
        "svhn-small": config,
        "svhn-small-eights": replace(config, each=8),
        "svhn-small-many": replace(config, each=32),
        "svhn-small-light": replace(config, consistency=0.5),
        "svhn-small-strict": replace(config, consistency=50.0),
        "svhn-small-free": replace(config, only_last=False),
    }


def _light() -> dict[str, RSConfig]:
    """On SVHN with a tenth of the weight of consistency: what two held-out digits chose, and what it was tried beside.

    `-sgd`: after rates as published, in both first stages. `-top2`: with sets of two.
    """
    adam = replace(SVHN_EVEN, consistency=5.0, stage=replace(SVHN_EVEN.stage, epochs=50))
    sgd = replace(adam, start=SEEN, supervised=SGD_ONECYCLE)
    return {
        "svhn-even-light": adam,
        "svhn-even-light-sgd": sgd,
        "svhn-even-light-sgd-top2": replace(sgd, top=2),
        "svhn-even-light-sgd-top2-long": replace(sgd, top=2, stage=SVHN_EVEN.stage),
    }


def _few_a_step() -> dict[str, RSConfig]:
    """On SVHN with few images of a class in a step and a hundredth of the weight of consistency, after long starts.

    `slim`: as a CPU can, with fewer channels, images a step and steps.
    """
    schedule = Schedule(1, 0.04, "sgd", decay=1e-4, shape="onecycle")
    stage = ScaledStage(epochs=20, batch=64, least=300, schedule=schedule)
    eights = RSConfig(SEEN, SGD_ONECYCLE, stage=stage, known=32, each=8, consistency=0.5, ramp=0.4)
    # As many steps as eights take with everything observed: it was tried with that alone.
    fours = replace(eights, each=4, stage=Stage(1, batch=64, least=7500, schedule=schedule))
    slim = replace(
        eights,
        start=replace(SEEN, network="resnet18-slim", batch=128, schedule=replace(SEEN.schedule, steps=2500)),
        supervised=replace(SGD_ONECYCLE, steps=1500),
        stage=Stage(1, batch=64, least=2500, schedule=schedule),
    )
    return {
        "svhn-eights": eights,
        "svhn-eights-restarts": replace(eights, restarts=8),
        "svhn-eights-steady": replace(eights, restarts=8, steady=50.0),
        "svhn-fours-top2": replace(fours, top=2),
        "svhn-slim-eights": slim,
        "svhn-slim-eights-top2": replace(slim, top=2),
        "svhn-slim-fours": replace(slim, each=4),
        "svhn-slim-fours-top2": replace(slim, each=4, top=2),
    }


CONFIGS: Mapping[str, RSConfig] = MappingProxyType(
    {
        "default": RSConfig(),
        "cifar100": RSConfig(_rotations(3000), consistency=50.0, ramp=0.75),
        "unscaled": RSConfig(
            stage=Stage(epochs=40, batch=128, least=300, schedule=Schedule(1, rate=0.1, optimiser="sgd", decay=1e-4))
        ),
        "adam": RSConfig(stage=Stage(epochs=40, batch=128, least=300, schedule=Schedule(steps=1, rate=1e-3))),
        "svhn": SVHN,
        "svhn-even": SVHN_EVEN,
        **_few_a_class(),
        **_light(),
        **_few_a_step(),
        "svhn-cropped": replace(SVHN, augmentation=CROPPED),
        "svhn-settled": replace(SVHN, supervised=SGD_SECOND),
        "svhn-cropped-settled": SVHN_SETTLED,
        "svhn-cropped-settled-decayed": replace(SVHN_SETTLED, supervised=replace(SGD_SECOND, decay=5e-4)),
        "svhn-cropped-settled-even": replace(SVHN_SETTLED, stage=replace(SVHN_SETTLED.stage, batch=64)),
        "characters": _characters(
            pretraining.CHARACTERS,
            Stage(epochs=100, batch=128, least=400, schedule=Schedule(steps=1, rate=2e-3)),
            known=64,
        ),
        "characters-slow": _characters(
            pretraining.CHARACTERS,
            Stage(epochs=100, batch=128, least=400, schedule=Schedule(steps=1, rate=3e-4)),
            known=64,
        ),
        "characters-sgd": _characters(pretraining.CHARACTERS, replace(_on_bag(epochs=100), least=400), known=64),
        **{f"characters-last-{name}": config for name, config in _last_stage_of_characters().items()},
        "cpu-short": replace(CPU, stage=replace(CPU.stage, least=40)),
        "cpu": CPU,
        "full": _full(25_000, consistency=5.0, ramp=0.25),
        "full-cifar10": _full(25_000, consistency=5.0, ramp=0.25, augmentation=FLIPPED),
        "full-cifar100": _full(40_000, consistency=50.0, ramp=0.75, augmentation=FLIPPED),
        "full-svhn": _full(20_000, consistency=50.0, ramp=0.4, augmentation=CROPPED),
        # All but the last stage is frozen, heads have a layer more, and 100 epochs are passes over the known images.
        "full-omniglot": replace(
            _characters(
                pretraining.CHARACTERS_FULL,
                Stage(1, batch=32, least=28_300, schedule=Schedule(steps=1, rate=0.01, shape="constant")),
                known=68,
            ),
            only_last=True,
            hidden=512,
        ),
    }
)
CHOSEN: Mapping[str, str] = MappingProxyType(
    {
        "glyphs": "cpu",
        "rules": "cpu",
        "cifar100": "cifar100",
        "svhn": "svhn-even-light-sgd-top2",
        "omniglot": "characters-last-long",
    }
)
CHOSEN_FOR_ALL: Mapping[str, str] = MappingProxyType({"svhn": "svhn-eights-steady"})
RECIPES: Mapping[str, str] = MappingProxyType(
    {name: f"full-{name}" for name in ("cifar10", "cifar100", "svhn", "omniglot")}
)
