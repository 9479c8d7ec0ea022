"""The method `medi`: members, seeds, what is shared, and what its names stand for."""

import re
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
import torch

from medi.bench.rows import read_rows
from medi.data.imageset import ImageSet
from medi.methods import METHODS, Plan
from medi.methods.embedding import Grouping, JointGrouping
from medi.methods.medi import BETWEEN_MEMBERS, Medi, MediConfig, _with_seeds
from medi.methods.readout import Readout
from medi.methods.recipe import Recipe, Supervised, Tasks
from medi.runtime.context import Context
from medi.train.schedule import Schedule

SHORT = Schedule(steps=2, rate=1e-3)
MLP = Recipe("mlp", copies="none", supervised=Supervised(batch=16, schedule=SHORT))


def blobs(classes: int = 6, each: int = 25, seed: int = 0) -> ImageSet:
    """Vectors around well separated class means, hidden among noise dimensions."""
    generator = torch.Generator().manual_seed(seed)
    means = torch.zeros(classes, 16)
    means[:, :4] = 6 * torch.randn(classes, 4, generator=generator)
    items = means.repeat_interleave(each, 0) + torch.randn(classes * each, 16, generator=generator)
    return ImageSet(items, torch.arange(classes).repeat_interleave(each), tuple(map(str, range(classes))))


def test_training_on_known_vectors_helps_to_group_unseen_ones():
    known, novel = blobs(seed=0), blobs(seed=1)
    recipe = replace(MLP, supervised=Supervised(batch=64, schedule=Schedule(steps=100)))
    config = MediConfig((recipe, recipe), Readout(whiten=0.5, centred=True, unit=True))
    learner = Medi(config).fit(known, Plan(way=4, observations=3, equal_sizes=True))
    encoded = learner.encode(novel.images)
    items = torch.cat([torch.arange(c * 25, c * 25 + 3) for c in range(4)])[None]
    clustering = learner.discover(encoded, items, 4, torch.Generator().manual_seed(0))
    found = clustering.labels[0].view(4, 3)
    assert (found == found[:, :1]).all()
    assert len(found[:, 0].unique()) == 4
    for later in (clustering.assign(encoded, items + 3), clustering.refine(encoded, items + 3, equal_sizes=True)):
        assert torch.equal(later.labels, clustering.labels), (
            "later items have the numbers of the observations' clusters"
        )
        assert ((later.confidence >= 0) & (later.confidence <= 1)).all()


def test_a_member_is_trained_once_whatever_ensemble_it_is_in(tmp_path):
    known, plan = blobs(), Plan(3, 2, context=Context(seed=4, folder=tmp_path))
    other = replace(MLP, supervised=None, tasks=Tasks(way=3, observations=2, queries=4, images=18, schedule=SHORT))
    for members in ((MLP,), (other,), (MLP, other), (MLP, MLP), (other, MLP, MLP)):
        learner = Medi(MediConfig(members)).fit(known, plan)
        assert learner.encode(known.images[:5]).shape == (5, 256 * len(members))
        assert learner.network == "+".join(["mlp"] * len(members))
    assert len(list(tmp_path.glob("*.safetensors"))) == 3
    seeds = [seed for _, seed in _with_seeds((MLP, other, MLP, MLP), 4)]
    assert seeds == [4, 4, 4 + BETWEEN_MEMBERS, 4 + 2 * BETWEEN_MEMBERS]


def test_readouts_and_groupings_share_one_training(tmp_path):
    known, plan = blobs(), Plan(3, 2, context=Context(folder=tmp_path))
    for readout in (Readout(), Readout(whiten=0.5, unit=True)):
        for grouping in (Grouping(balanced=True), JointGrouping(neighbours=3)):
            Medi(MediConfig((MLP,), readout, grouping)).fit(known, plan)
    Medi(MediConfig((MLP,))).fit(known, replace(plan, observations=5))
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


def test_the_same_seed_learns_the_same_and_another_seed_something_else():
    known = blobs()
    one, same, other = (
        Medi(MediConfig((MLP, MLP))).fit(known, Plan(3, 2, context=Context(seed=seed))).encode(known.images[:10])
        for seed in (0, 0, 1)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert not torch.equal(one[:, :256], one[:, 256:])


def test_settings_for_images_teach_vectors_without_what_only_images_have():
    known = blobs()
    config = Medi.presets["objects-mixed-views"]
    members = tuple(
        replace(member, supervised=member.supervised and replace(member.supervised, batch=8, schedule=SHORT))
        for member in config.members
    )
    learner = Medi(replace(config, members=members)).fit(known, Plan(3, 2))
    assert learner.network == "mlp"
    assert learner.encode(known.images[:5]).shape == (5, 256)


def test_every_candidate_that_the_documentation_names_exists():
    text = (Path(__file__).parents[2] / "docs" / "medi.md").read_text()
    named = [name for names in re.findall(r"--config ([\w,-]+)", text) for name in names.split(",")]
    assert len(named) > 5
    assert set(named) <= set(Medi.presets)


def test_the_transductive_trials_in_the_documentation_are_the_committed_ones():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "medi.md").read_text()
    table = page[page.index("<!-- transductive -->") : page.index("<!-- end of transductive -->")]
    scores: dict[str, list[float]] = {}
    for row in read_rows(root / "results" / "medi" / "choices.jsonl"):
        if row["regime"] == "transductive":
            scores.setdefault(row["config"], []).append(100 * row["acc"])
    assert len(scores) >= 3
    for name, values in scores.items():
        assert re.search(rf"`{name}`(\*\*)? \| {fmean(values):.1f} \|", table), name


def test_the_method_is_in_the_registry_and_every_dataset_it_chose_for_has_settings():
    assert METHODS["medi"] is Medi
    for dataset, name in Medi.chosen.items():
        assert Medi.preset("default", dataset) is Medi.presets[name]


@pytest.mark.parametrize("name", [name for name in Medi.presets if name.startswith("cpu")])
def test_settings_for_a_cpu_differ_after_training_or_in_the_number_of_networks_alone(name):
    (recipe,) = Medi.presets["cpu"].members
    assert all(member == recipe for member in Medi.presets[name].members)


@pytest.mark.parametrize(
    ("recipe", "channels"), [("photo-both", 3), ("digit-both", 3), ("objects-both", 3), ("character-both", 1)]
)
def test_candidates_run_on_images_of_their_benchmark(recipe, channels):
    """A step of each member, on few small images and a small network: the shapes fit together."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (60, channels, 32, 32), dtype=torch.uint8, generator=generator)
    known = ImageSet(images, torch.arange(60) % 3, tuple("abc"))
    config = Medi.presets[f"{recipe}-views"]
    once = Schedule(steps=1, rate=1e-3)
    members = tuple(
        replace(
            member,
            network="conv4",
            supervised=member.supervised and replace(member.supervised, batch=8, schedule=once),
            tasks=member.tasks and replace(member.tasks, images=1, way=3, queries=2, schedule=once),
        )
        for member in config.members
    )
    learner = Medi(replace(config, members=members)).fit(known, Plan(3, 2, equal_sizes=True))
    assert learner.encode(images[:4]).shape == (4, 2 * 256)
    assert learner.encode(images[:4]).isfinite().all()
