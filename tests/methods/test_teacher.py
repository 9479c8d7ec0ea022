"""Methods at work for discovery: what they learn from known classes, and the groups that they make themselves."""

from dataclasses import replace

import numpy as np
import pytest
from small_sets import hurried, patterns
from worlds import gaussian_classes, none_known, split

from medi.core.errors import InputError
from medi.core.workplace import Workplace
from medi.data.facts import Augmentation
from medi.data.items import Items
from medi.discover import choice
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import Outcome, discover_groups
from medi.grouping.copies import unique_items
from medi.grouping.recogniser import Recogniser
from medi.methods import METHODS
from medi.methods.mp import MP
from medi.methods.teacher import MethodTeacher, as_items, task_size
from medi.metrics import acc
from medi.nn.schedule import Schedule

pytestmark = pytest.mark.usefixtures("few_bags")


def discover(known: Items, novel: np.ndarray, work: Workplace | None = None, **config: object) -> Outcome:
    return discover_groups(known, novel, DiscoveryConfig(**{"sampler": "uniform"} | config), work or Workplace())


def teach_with(change, monkeypatch) -> None:
    """Let methods learn with settings that were changed."""
    real = MethodTeacher.configured
    monkeypatch.setattr(MethodTeacher, "configured", lambda *of, **items: change(real(*of, **items)))


@pytest.fixture(scope="module")
def coloured() -> tuple[Items, Items]:
    """Small pictures of eight known and three novel colours."""
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(11), 10)
    colours = generator.integers(40, 216, (11, 3, 1, 1))[labels]
    images = np.clip(colours + 12 * generator.standard_normal((110, 3, 16, 16)), 0, 255).astype(np.uint8)
    return split(Items(images, labels, tuple(f"colour {c}" for c in range(11))), 8)


@pytest.mark.parametrize("kind", ["vectors", "images"])
@pytest.mark.parametrize("name", METHODS)
def test_what_any_method_learns_can_be_compared_by_saved_and_recognised_with(name, kind, monkeypatch, tmp_path):
    teach_with(hurried, monkeypatch)
    monkeypatch.setattr(choice, "expected_gains", lambda acc, usual: {list(acc)[-1]: 0.0})  # keep what was learnt
    known, novel = split(gaussian_classes(7, 8) if kind == "vectors" else as_items(patterns(7, 8)), 5)
    outcome = discover(known, novel.values, Workplace(folder=tmp_path / "training"), classes=2, method=name)
    representation, learns = outcome.recogniser.representation, name != "kmeans"
    learnt = {
        "vectors": "encoder + projector" if learns else "encoder, square roots, whitened",
        "images": f"conv4 trained by {name}, unit length" if learns else "pixels",
    }
    assert outcome.discovery.representation == representation.name == learnt[kind]
    assert (representation.learnt is None) != learns
    assert len(outcome.discovery.labels) == len(novel)
    assert outcome.discovery.count.k <= 2
    outcome.recogniser.save(tmp_path / "model")
    again = Recogniser.load(tmp_path / "model")
    before, after = (one.recognise(novel.values) for one in (outcome.recogniser, again))
    assert [(a.kind, a.label) for a in after] == [(b.kind, b.label) for b in before]
    rounding = 1e-12 if kind == "vectors" else 1e-5  # on images a network computes in float32
    assert [a.confidence for a in after] == pytest.approx([b.confidence for b in before], abs=rounding)
    alone = np.concatenate([again.representation(novel.values[i : i + 1]) for i in range(3)])
    assert np.allclose(alone, again.representation(novel.values)[:3], atol=rounding)


def test_a_network_that_learns_images_from_scratch_groups_them(coloured, monkeypatch):
    quick = {"images": 80, "schedule": Schedule(steps=15, rate=3e-3)}
    teach_with(lambda method: replace(method, **quick), monkeypatch)
    known, novel = coloured
    found = discover(known, novel.values, classes=3, method="mp", augmentation=Augmentation(crop=1)).discovery
    assert set(found.representation_scores) == {"pixels", "conv4 trained by mp", "conv4 trained by mp, unit length"}
    assert acc(novel.labels, found.labels) > 0.8
    assert found.diagnosis.calibrated
    assert found.diagnosis.rehearsed_spread is None, "training takes long: there is one split"


def test_two_known_classes_of_images_teach_a_network_though_nothing_can_be_chosen(coloured, monkeypatch):
    teach_with(hurried, monkeypatch)
    known, novel = coloured
    found = discover(known.of_classes([0, 1]), novel.values, classes=3, method="mp").discovery
    assert (found.representation, found.representation_scores) == ("conv4 trained by mp", {})


def test_of_vectors_a_projector_is_tried_and_the_same_seed_learns_the_same(monkeypatch):
    teach_with(hurried, monkeypatch)
    monkeypatch.setattr(choice, "SPLITS", 2)
    monkeypatch.setattr(choice, "HOPELESS", 1.0)
    known, novel = split(gaussian_classes(19, 12), 14)
    first, again = (discover(known, novel.values, method="mp").discovery for _ in range(2))
    assert "encoder + projector" in first.representation_scores
    assert again == first


def test_tasks_take_what_most_classes_have():
    world = gaussian_classes(8, 20)
    few = world.where(np.setdiff1d(np.arange(160), [*range(1, 20), *range(24, 40)]))
    assert few.counts().tolist() == [1, 4, *[20] * 6]
    fitting, observations, queries = task_size(few)
    assert (fitting.n_classes, observations, queries) == (6, 5, 5)
    with pytest.raises(InputError, match="fewer than two known classes have two images"):
        task_size(gaussian_classes(5, 1))


def test_tasks_are_as_large_as_classes_allow_whatever_the_settings_say(monkeypatch):
    greedy = {"observations": 7, "queries": 9, "images": 20, "schedule": Schedule(steps=2)}
    monkeypatch.setattr(MP, "preset", classmethod(lambda cls, *_, **__: MP(**greedy)))
    teacher = MethodTeacher("mp", "conv4", None, "uniform", Augmentation())
    few = as_items(patterns(4, each=3))
    assert np.isfinite(teacher.network(few, Workplace(), "p")(few.values)).all()


def test_a_method_that_needs_known_classes_says_so_where_there_are_none():
    with pytest.raises(InputError, match="mm learns from known classes"):
        discover(none_known(), gaussian_classes(2, 5).values, classes=2, method="mm")


OWN_METHOD = """
from dataclasses import dataclass

import torch

from medi.methods import EmbeddingMethod
from medi.nn import build


@dataclass(frozen=True)
class Turns(EmbeddingMethod):
    saved: bool = True

    def learn(self, known, plan):
        if not self.saved:
            return lambda images: images.float().mean((2, 3))
        return build("conv4", tuple(known.images.shape[1:]), embedding=4)

    def group(self, points, k, generator, equal_sizes):
        return (torch.arange(points.shape[1]) % k).expand(points.shape[:2])


class OneGroup(Turns):
    def group(self, points, k, generator, equal_sizes):
        return torch.zeros(points.shape[:2], dtype=torch.int64)


@dataclass(frozen=True)
class Unsaved(Turns):
    saved: bool = False
"""


@pytest.fixture
def own(coloured, tmp_path):
    """Discover with a method of one's own; so few known classes choose nothing: its network is used."""
    (tmp_path / "own.py").write_text(OWN_METHOD)
    known, novel = coloured

    def discover_by(name: str, folder=None):
        method = f"{tmp_path / 'own.py'}:{name}"
        work = Workplace(folder=folder)
        return discover(known.of_classes([0, 1]), novel.values, work, classes=3, method=method).discovery

    return discover_by


def test_a_method_of_ones_own_groups_the_items_its_own_way(own, coloured):
    found = own("Turns")
    assert sorted(found.labels.count(number) for number in range(3)) == [10, 10, 10]
    place = unique_items(coloured[1].values)[2]
    assert [found.labels[i] for i in place.argsort()] == [i % 3 for i in range(30)]


def test_groups_that_a_method_leaves_empty_are_not_counted(own):
    found = own("OneGroup")
    assert (found.count.k, len(found.groups), set(found.labels)) == (1, 1, {0})


def test_what_a_method_learns_but_cannot_save_is_refused_only_where_results_are_saved(own, tmp_path):
    assert len(own("Unsaved").labels) == 30
    with pytest.raises(InputError, match="cannot be saved"):
        own("Unsaved", tmp_path / "training")
