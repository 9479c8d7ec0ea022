import json
from dataclasses import asdict

import pytest
import torch
from small_sets import hurried, patterns
from worlds import gaussian_classes, none_known, split

from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.discovery import held_out, training
from medi.discovery.canonical import unique_items
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.discovery.recogniser import Recogniser
from medi.discovery.result import DOUBTFUL_BELOW, Discovery
from medi.errors import InputError
from medi.methods import METHODS
from medi.methods.mp import MP
from medi.metrics import acc
from medi.runtime.context import Context
from medi.train.schedule import Schedule

pytestmark = pytest.mark.usefixtures("few_bags")


def discover(known: ImageSet, novel: torch.Tensor, **config: object) -> Discovery:
    """Without a projector unless asked for: training one takes most of the time."""
    return discover_groups(known, novel, DiscoveryConfig(**{"method": "kmeans"} | config), Context())[0]


@pytest.fixture(scope="module")
def plain() -> tuple[ImageSet, ImageSet, Discovery]:
    """Fourteen known classes and five novel ones that are easy to tell apart, the number not given."""
    known, novel = split(gaussian_classes(19, 12), 14)
    return known, novel, discover(known, novel.images)


@pytest.fixture
def quick_projector(monkeypatch):
    """A projector that takes no time, in two splits."""
    monkeypatch.setattr(training, "PROJECTOR", hurried(training.PROJECTOR))
    monkeypatch.setattr(held_out, "SPLITS", 2)


def test_groups_that_are_plainly_there_are_found_and_counted(plain):
    _, novel, found = plain
    assert found.count.k == 5
    assert found.count.low <= 5 <= found.count.high
    assert acc(novel.labels, found.labels) > 0.97


def test_every_field_has_an_entry_for_every_item_or_group(plain):
    known, novel, found = plain
    m, k = len(novel), found.count.k
    for name in ("kinds", "labels", "known", "confidence", "doubtful", "nearest_known", "positions"):
        assert len(getattr(found, name)) == m, name
    assert len(found.groups) == k
    assert sorted(set(found.labels)) == list(range(k))
    assert (set(found.kinds), set(found.known)) == ({"novel"}, {""})
    assert all(0 <= c <= 1 for c in found.confidence)
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in found.positions)
    assert set(found.nearest_known) <= set(known.class_names)
    assert all(found.labels[group.medoid] == number for number, group in enumerate(found.groups))
    sizes = [found.labels.count(number) for number in range(k)]
    assert sizes == sorted(sizes, reverse=True) == [group.items for group in found.groups]
    for number, group in enumerate(found.groups):
        mine = [c for c, label in zip(found.confidence, found.labels, strict=True) if label == number]
        assert group.confidence == pytest.approx(sum(mine) / len(mine))
        assert 0 <= group.together <= 1
        assert group.sibling != number
    json.dumps(asdict(found))


def test_the_nearest_known_class_is_the_one_with_the_nearest_mean():
    known, novel = split(gaussian_classes(6, 8), 3)  # too few known classes to choose: features as they are
    found = discover(known, novel.images, classes=3)
    means = torch.stack([known.images[known.labels == c].mean(0) for c in range(3)])
    nearest = torch.cdist(novel.images, means).argmin(1).tolist()
    same = [name == known.class_names[c] for name, c in zip(found.nearest_known, nearest, strict=True)]
    assert sum(same) > 0.9 * len(same), "the evidence shrinks means a little"
    for number, group in enumerate(found.groups):
        centre = novel.images[torch.tensor(found.labels) == number].mean(0)
        order = torch.cdist(centre[None], means)[0].argsort().tolist()
        assert group.neighbours[0] == known.class_names[order[0]]
        assert sorted(group.neighbours) == sorted(known.class_names)


@pytest.mark.usefixtures("quick_projector")
def test_the_representation_kept_is_about_the_one_that_groups_held_out_known_classes_best(plain):
    known, novel, _ = plain
    found = discover(known, novel.images, method="mp")
    scores = found.representation_scores
    tried = {"encoder", "encoder, unit length", "encoder, whitened", "encoder, square roots, whitened"}
    assert tried <= set(scores) <= {*tried, "encoder + projector"}
    assert scores[found.representation] >= max(scores.values()) - 0.05
    assert discover(known, novel.images, method="mp") == found, "the same seed gives the same discovery"


def test_what_known_classes_teach_is_kept_where_it_helps():
    # Half of the directions are loud noise in every class: known classes show which.
    known, novel = split(gaussian_classes(30, 12, nuisance=9.0), 25)
    found = discover(known, novel.images, classes=5)
    scores = found.representation_scores
    assert found.representation not in ("encoder", "encoder, unit length")
    assert scores[found.representation] > scores["encoder"] + 0.1
    assert found.diagnosis.gain > 0.1
    raw = discover(none_known(), novel.images, classes=5)
    assert acc(novel.labels, found.labels) > acc(novel.labels, raw.labels) + 0.1


def test_fewer_than_four_known_classes_choose_nothing_and_that_is_said():
    known, novel = split(gaussian_classes(6, 8), 3)
    found = discover(known, novel.images)
    assert found.representation == "encoder"
    assert found.representation_scores == {}
    assert not found.count.certain
    assert "too few known classes" in found.count.how
    assert any("only 3 known classes" in reason for reason in found.diagnosis.reasons)
    assert max(found.confidence) <= 0.5


def test_without_known_classes_items_are_grouped_as_they_are():
    novel = gaussian_classes(4, 10, apart=6.0)
    found = discover(none_known(), novel.images, classes=4)
    assert acc(novel.labels, found.labels) == 1
    assert found.nearest_known == ("",) * len(novel)
    assert [group.neighbours for group in found.groups] == [(), (), (), ()]
    assert found.diagnosis.gain is None


def test_the_number_asked_for_is_the_number_given(plain):
    known, novel, _ = plain
    found = discover(known, novel.images, classes=3)
    assert (found.count.k, found.count.low, found.count.high, found.count.certain) == (3, 3, 3, True)
    assert len(set(found.labels)) == 3


def test_the_same_seed_gives_the_same_discovery(plain):
    known, novel, found = plain
    assert discover(known, novel.images) == found


def test_classes_of_very_different_sizes_are_found():
    world = gaussian_classes(16, 30, apart=5.0)
    known, novel = split(world, 12)
    keep = torch.cat([torch.arange(30), 30 + torch.arange(3), 60 + torch.arange(10), 90 + torch.arange(2)])
    found = discover(known, novel.images[keep], classes=4)
    assert acc(novel.labels[keep], found.labels) == 1
    assert [found.labels.count(g) for g in range(4)] == [30, 10, 3, 2]


def test_identical_items_are_one_group():
    known, _ = split(gaussian_classes(8, 8), 8)
    found = discover(known, torch.ones(7, 16))
    assert found.count.k == 1
    assert set(found.labels) == {0}


def test_identical_items_are_one_group_however_many_are_asked_for():
    found = discover(none_known(), torch.ones(6, 16), classes=3)
    assert set(found.labels) == {0}
    assert len(set(found.confidence)) == 1
    assert found.count.how == "1 group, not 3 as asked: the others are copies."


def test_more_groups_than_different_items_are_as_many_as_there_are():
    items = torch.eye(16)[:2].repeat(3, 1)
    found = discover(none_known(), items, classes=4)
    assert found.count.k == len(set(found.labels)) == 2
    assert found.count.how == "2 groups, not 4 as asked: the others are copies."


@pytest.mark.parametrize("m", [0, 1, 2, 3])
def test_a_handful_of_items_is_enough(m):
    known, novel = split(gaussian_classes(8, 6), 6)
    found = discover(known, novel.images[:m])
    assert len(found.labels) == m
    assert found.count.k <= m
    assert (found.count.k >= 1) == (m > 0)


@pytest.fixture(scope="module")
def mixed() -> tuple[ImageSet, list[str], Discovery]:
    """Four new classes, further items of three known ones, two one-offs; what each item is, and what is found."""
    world = gaussian_classes(22, 16, apart=5.0)
    known, others = split(world, 14)
    some = torch.arange(len(known)) % 16 < 12
    learnt = ImageSet(known.images[some], known.labels[some], known.class_names)
    back = (~some & (known.labels < 3)).nonzero().squeeze(1)
    new, odd = (others.labels < 4).nonzero().squeeze(1)[::2], torch.tensor([4 * 16, 5 * 16])
    truth = [f"new {c}" for c in others.labels[new].tolist()]
    truth += [known.class_names[c] for c in known.labels[back].tolist()] + ["alone"] * 2
    pool = torch.cat([others.images[new], known.images[back], others.images[odd]])
    return learnt, truth, discover(learnt, pool, only_novel=False)


def test_in_a_mixed_pool_every_item_is_new_known_or_alone(mixed):
    known, truth, found = mixed
    new = [i for i, what in enumerate(truth) if what.startswith("new")]
    assert acc([truth[i] for i in new], [found.labels[i] for i in new]) > 0.9
    named = [found.known[i] == truth[i] for i, what in enumerate(truth) if what in known.class_names]
    assert sum(named) > 0.8 * len(named)
    assert found.kinds[-2:] == ("alone", "alone")
    assert found.count.k == 4
    for kind, label, name in zip(found.kinds, found.labels, found.known, strict=True):
        assert (kind == "novel") == (label >= 0)
        assert (kind == "known") == (name != "")
    assert found.diagnosis.known_share == found.kinds.count("known") / len(truth)


def test_in_a_mixed_pool_with_the_number_given_nothing_is_alone(mixed):
    known, _, _ = mixed
    novel = gaussian_classes(22, 16, apart=5.0).of_classes(range(14, 18))
    found = discover(known, novel.images, classes=6, only_novel=False)
    assert found.count.k == len(found.groups) == 6
    assert "alone" not in found.kinds


def test_new_things_alone_are_grouped_alike_whether_or_not_that_is_said(plain):
    known, novel, told = plain
    untold = discover(known, novel.images, only_novel=False)
    assert acc(novel.labels, untold.labels) > acc(novel.labels, told.labels) - 0.05


def test_items_known_to_be_doubtful_are_marked():
    known, novel = split(gaussian_classes(8, 10, apart=4.0), 6)
    middle = (novel.images[novel.labels == 0].mean(0) + novel.images[novel.labels == 1].mean(0)) / 2
    found = discover(known, torch.cat([novel.images, middle[None]]), classes=2)
    assert found.confidence[-1] == min(found.confidence)
    assert sum(found.doubtful[:-1]) <= 2
    assert found.doubtful == tuple(c < DOUBTFUL_BELOW for c in found.confidence)


@pytest.mark.slow
def test_a_method_that_trains_on_the_items_groups_them_itself():
    known, novel = split(gaussian_classes(8, 10, apart=5.0), 6)
    found = discover(known, novel.images, classes=2, method="mm")
    assert len(found.labels) == len(novel)
    assert found.count.k <= 2


def test_a_method_that_needs_known_classes_says_so_where_there_are_none():
    with pytest.raises(InputError, match="mm learns from known classes"):
        discover(none_known(), gaussian_classes(2, 5).images, classes=2, method="mm")


@pytest.mark.parametrize(
    ("known", "novel", "config", "message"),
    [
        (none_known(), torch.zeros(0, 16), {}, "neither a known nor a novel"),
        (none_known(), torch.zeros(3, 16), {"classes": 4}, "4 classes were asked for but there are 3"),
        (gaussian_classes(2, 3), torch.zeros(3, 8), {}, "prepare both the same way"),
        (none_known(), torch.full((3, 16), torch.nan), {}, "NaN"),
        (none_known(), torch.zeros(3, 16, dtype=torch.int64), {}, "float vectors"),
    ],
)
def test_bad_input_is_refused_with_a_cure(known, novel, config, message):
    with pytest.raises(InputError, match=message):
        discover(known, novel, **config)


@pytest.mark.parametrize("classes", [0, -1, 1.5, "many"])
def test_a_number_of_classes_that_is_none_is_refused(classes):
    with pytest.raises(InputError, match="classes="):
        DiscoveryConfig(classes=classes)


def test_an_unknown_method_is_refused_with_a_suggestion():
    with pytest.raises(InputError, match="did you mean 'kmeans'"):
        DiscoveryConfig(method="kmean")


@pytest.fixture
def coloured() -> tuple[ImageSet, ImageSet]:
    """Small pictures of eight known and three novel colours."""
    g = torch.Generator().manual_seed(0)
    colours = torch.randint(40, 216, (11, 3, 1, 1), generator=g)
    labels = torch.arange(11).repeat_interleave(10)
    images = (colours[labels] + 12 * torch.randn(110, 3, 16, 16, generator=g)).clamp(0, 255).to(torch.uint8)
    return split(ImageSet(images, labels, tuple(f"colour {c}" for c in range(11))), 8)


def test_images_are_learnt_from_scratch_and_recognised_after_saving(coloured, monkeypatch, tmp_path):
    tiny = MP(images=80, schedule=Schedule(steps=15, rate=3e-3))
    monkeypatch.setattr(MP, "presets", {**MP.presets, "tiny": tiny})
    known, novel = coloured
    config = DiscoveryConfig(classes=3, preset="tiny", sampler="uniform", augmentation=Augmentation(crop=1))
    found, recogniser = discover_groups(known, novel.images, config, Context())
    assert set(found.representation_scores) == {"pixels", "conv4 trained by mp", "conv4 trained by mp, unit length"}
    assert acc(novel.labels, found.labels) > 0.8
    assert found.diagnosis.calibrated
    assert found.diagnosis.rehearsed_spread is None, "training takes long: there is one split"
    recogniser.save(tmp_path)
    assert Recogniser.load(tmp_path).recognise(novel.images) == recogniser.recognise(novel.images)


def test_two_known_classes_of_images_teach_a_network_though_nothing_can_be_chosen(coloured, monkeypatch):
    monkeypatch.setattr(MP, "presets", {**MP.presets, "tiny": MP(images=80, schedule=Schedule(steps=3))})
    known, novel = coloured
    config = DiscoveryConfig(classes=3, preset="tiny", sampler="uniform")
    found, _ = discover_groups(known.of_classes([0, 1]), novel.images, config, Context())
    assert found.representation == "conv4 trained by mp"
    assert found.representation_scores == {}


def test_images_without_known_classes_are_compared_by_pixels(coloured):
    _, novel = coloured
    nothing = ImageSet(novel.images[:0], novel.labels[:0], ())
    found = discover(nothing, novel.images, classes=3)
    assert found.representation == "pixels"
    assert acc(novel.labels, found.labels) > 0.9


@pytest.mark.parametrize("kind", ["vectors", "images"])
@pytest.mark.parametrize("name", METHODS)
def test_what_any_method_learns_can_be_compared_by_saved_and_recognised_with(name, kind, monkeypatch, tmp_path):
    method = METHODS[name]
    monkeypatch.setattr(method, "presets", {"default": hurried(method.preset("cpu"))})
    monkeypatch.setattr(training, "PROJECTOR", hurried(training.PROJECTOR))
    monkeypatch.setattr(held_out, "_simplest", lambda names, acc: list(names)[-1])  # keep what was learnt
    world = gaussian_classes(7, 8) if kind == "vectors" else patterns(7, 8)
    known, novel = split(world, 5)
    config = DiscoveryConfig(classes=2, method=name, sampler="uniform")
    found, recogniser = discover_groups(known, novel.images, config, Context(folder=tmp_path / "training"))
    learnt = {
        "vectors": "encoder, square roots, whitened" if name == "kmeans" else "encoder + projector",
        "images": "pixels" if name == "kmeans" else f"conv4 trained by {name}, unit length",
    }
    assert found.representation == recogniser.representation.name == learnt[kind]
    assert (recogniser.representation.embedding is None) == (name == "kmeans")
    assert len(found.labels) == len(novel)
    recogniser.save(tmp_path / "model")
    again = Recogniser.load(tmp_path / "model")
    before, after = recogniser.recognise(novel.images), again.recognise(novel.images)
    assert [(a.kind, a.label) for a in after] == [(b.kind, b.label) for b in before]
    rounding = 1e-12 if kind == "vectors" else 1e-5  # on images a network computes in float32
    assert [a.confidence for a in after] == pytest.approx([b.confidence for b in before], abs=rounding)
    alone = torch.cat([again.representation(novel.images[i : i + 1]) for i in range(3)])
    assert torch.allclose(alone, again.representation(novel.images)[:3], atol=rounding)


OWN_METHOD = """
from dataclasses import dataclass

import torch

from medi.methods import EmbeddingMethod
from medi.nets import build


@dataclass(frozen=True)
class Turns(EmbeddingMethod):
    saved: bool = True

    def learn(self, known, plan):
        if not self.saved:
            return lambda images: images.float().mean((2, 3))
        return build("conv4", tuple(known.images.shape[1:]), embedding=4)

    def group(self, points, k, generator, equal_sizes):
        return (torch.arange(points.shape[1]) % k).expand(points.shape[:2])


@dataclass(frozen=True)
class Unsaved(Turns):
    saved: bool = False
"""


def test_a_method_of_ones_own_groups_the_items_its_own_way(coloured, tmp_path):
    (tmp_path / "own.py").write_text(OWN_METHOD)
    known, novel = coloured
    # So few known classes choose nothing: the network is used.
    found = discover(known.of_classes([0, 1]), novel.images, classes=3, method=f"{tmp_path / 'own.py'}:Turns")
    assert sorted(found.labels.count(number) for number in range(3)) == [10, 10, 10]
    order = unique_items(novel.images)[2]
    assert [found.labels[i] for i in order.argsort()] == [i % 3 for i in range(30)]


def test_groups_that_a_method_leaves_empty_are_not_counted(coloured, tmp_path):
    (tmp_path / "own.py").write_text(
        OWN_METHOD.replace("torch.arange(points.shape[1]) % k", "0 * points[0, :, 0].long()")
    )
    known, novel = coloured
    found = discover(known.of_classes([0, 1]), novel.images, classes=3, method=f"{tmp_path / 'own.py'}:Turns")
    assert (found.count.k, len(found.groups), set(found.labels)) == (1, 1, {0})
    assert "filled only 1" in found.count.how


def test_what_a_method_learns_but_cannot_save_is_refused_only_where_results_are_saved(coloured, tmp_path):
    (tmp_path / "own.py").write_text(OWN_METHOD)
    known, novel = coloured
    config = DiscoveryConfig(classes=3, method=f"{tmp_path / 'own.py'}:Unsaved")
    found, _ = discover_groups(known.of_classes([0, 1]), novel.images, config, Context())
    assert len(found.labels) == 30
    with pytest.raises(InputError, match="a function cannot be saved"):
        discover_groups(known.of_classes([0, 1]), novel.images, config, Context(folder=tmp_path / "training"))
