"""Presets: which settings a name, a dataset and a device stand for, and that all of them can be had."""

import json
from dataclasses import asdict, dataclass
from typing import ClassVar

import pytest

from medi.core.errors import InputError
from medi.core.settings import apply_changes
from medi.data.facts import BENCHMARKS
from medi.methods import METHODS
from medi.methods.cata_views import ViewsConfig
from medi.methods.dtc import DTC
from medi.methods.kmeans import KMeans
from medi.methods.medi import Medi
from medi.methods.mp import MP
from medi.methods.pretraining import Pretraining
from medi.methods.rs import RS
from medi.nn.schedule import Schedule
from medi.presets import VECTORS, preset_for, resolve

KINDS = (*METHODS.values(), Pretraining, ViewsConfig)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_preset_is_of_its_kind_and_can_be_written_down_and_read_back(kind):
    for name in kind.presets:
        for dataset in (None, *BENCHMARKS):
            settings = resolve(kind, name, dataset)
            assert type(settings) is kind
            assert apply_changes(settings, json.loads(json.dumps(asdict(settings)))) == settings


@pytest.mark.parametrize(
    ("kind", "dataset", "options", "preset"),
    [
        (RS, "svhn", {}, "svhn"),
        (RS, "svhn", {"on_cpu": True}, "svhn"),
        (RS, "svhn", {"everything": True}, "fifth-svhn"),
        (RS, "cifar10", {"everything": True}, "fifth"),
        (RS, "cifar100", {"everything": True}, "fifth-cifar100"),
        (RS, "cifar10", {"everything": True, "on_cpu": True}, "cpu"),
        (RS, "omniglot", {"everything": True}, "omniglot"),
        (RS, "glyphs", {"everything": True}, "cpu"),
        (Medi, "glyphs", {}, "glyphs"),
        (Medi, "rules", {}, "cpu"),
        (Medi, "folder:photos", {}, "default"),
        (Medi, "folder:photos", {"on_cpu": True}, "cpu"),
        (KMeans, "glyphs", {}, "default"),
        (MP, None, {"everything": True}, "default"),
        (MP, None, {"on_cpu": True}, "cpu"),
        (MP, VECTORS, {"on_cpu": True}, "vectors"),
        (ViewsConfig, "svhn", {}, "default"),
        (ViewsConfig, "rules", {}, "cpu"),
    ],
)
def test_default_is_the_preset_of_the_dataset_then_of_the_device(kind, dataset, options, preset):
    assert preset_for(kind, "default", dataset, **options) == preset
    assert resolve(kind, "default", dataset, **options) == resolve(kind, preset)


def test_a_name_may_stand_for_other_settings_on_a_dataset_and_a_cpu_changes_only_the_default():
    assert preset_for(RS, "full", "svhn") == "full-svhn"
    assert preset_for(RS, "full", "cifar10", on_cpu=True) == "full"
    assert preset_for(RS, "svhn", "cifar10", on_cpu=True) == "svhn"
    assert preset_for(KMeans, "cpu", "svhn") == "default"


def test_what_is_inside_starts_from_the_presets_of_the_same_dataset():
    for dataset in BENCHMARKS:
        features = resolve(KMeans, "features", dataset).pretraining
        assert features == resolve(DTC, "default", dataset).pretraining, "both share a training"


def lengths(settings, path=""):
    """Every number of steps or passes of some settings, by name; and everything else."""
    found, others = {}, {}
    for name, value in settings.items():
        if isinstance(value, dict):
            inner = lengths(value, f"{path}{name}.")
            found, others = found | inner[0], others | inner[1]
        else:
            (found if name in ("steps", "epochs") else others)[path + name] = value
    return found, others


PUBLISHED = [name for name, method in METHODS.items() if "full" in method.presets]


@pytest.mark.parametrize("dataset", [None, *BENCHMARKS])
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_fifth_of_a_published_recipe_differs_in_its_lengths_alone(name, dataset):
    full, fifth = (lengths(asdict(METHODS[name].preset(preset, dataset))) for preset in ("full", "fifth"))
    assert fifth[1] == full[1]
    assert fifth[0] == {place: max(1, round(length / 5)) for place, length in full[0].items()}
    assert max(full[0].values()) >= 5 * max(fifth[0].values()) - 5 > 0


ALL_IMAGES = {"cifar10": (25_000, 25_000), "cifar100": (40_000, 10_000), "svhn": (45_349, 27_908)}
"""Training images of known and of novel classes."""


@pytest.mark.parametrize(("name", "batch"), [("rs", 128), ("uno", 256), ("simgcd", 128)])
@pytest.mark.parametrize("dataset", ALL_IMAGES)
def test_a_published_epoch_passes_over_known_and_novel_images_together(name, batch, dataset):
    if dataset == "svhn" and name != "rs":
        pytest.skip("its authors have no recipe for SVHN")
    known, novel = ALL_IMAGES[dataset]
    method = METHODS[name].preset("full", dataset)
    assert method.stage.schedule_for(novel).steps == pytest.approx(200 * (known + novel) / batch, rel=0.02)
    assert method.known + method.stage.batch == batch
    novel_share = 1 / 2 if name == "simgcd" else novel / (known + novel)  # SimGCD draws as many of both
    assert method.stage.batch / batch == pytest.approx(novel_share, abs=0.01)


@pytest.mark.parametrize("dataset", ALL_IMAGES)
def test_rs_turns_all_images_and_then_learns_the_known_classes_as_published(dataset):
    known, novel = ALL_IMAGES[dataset]
    method = RS.preset("full", dataset)
    assert method.pretraining.schedule.steps == pytest.approx(200 * (known + novel) / 128, rel=0.01)
    assert method.supervised.steps == pytest.approx(100 * known / 128, rel=0.01)


def test_every_published_baseline_has_its_recipe_whole_and_shortened():
    assert PUBLISHED == ["kcl", "mcl", "dtc", "rs", "uno", "simgcd"]


def test_changes_come_after_the_preset():
    settings = resolve(MP, "paper", changes={"images": 9, "schedule": {"steps": 7}})
    assert (settings.images, settings.embedding) == (9, 512)
    assert settings.schedule == Schedule(steps=7, shape="halve")
    started = resolve(DTC, changes={"pretraining": {"from": "omniglot", "batch": 3}}).pretraining
    assert (started.kind, started.batch) == ("prototypes", 3)


@dataclass(frozen=True)
class Mine(MP):
    more: int = 3


@dataclass(frozen=True)
class Plain(KMeans):
    presets: ClassVar = {}


def test_a_subclass_has_its_parents_presets_but_is_itself():
    mine = Mine.preset("default", "glyphs")
    assert type(mine) is Mine
    assert (mine.more, mine.images) == (3, MP.preset("cpu").images)


def test_without_presets_the_fields_are_all_of_them():
    assert Plain.preset() == Plain.preset("default", "glyphs") == Plain.preset("cpu", on_cpu=True) == Plain()
    with pytest.raises(InputError, match="unknown config of plain 'full'"):
        Plain.preset("full")
