import json

import numpy as np
import pytest
import torch
from worlds import gaussian_classes, none_known, split

from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.discovery.recogniser import FILE, Recogniser
from medi.discovery.recognition import NONE_RATE
from medi.errors import InputError
from medi.runtime.context import Context
from medi.train.checkpoint import load_checkpoint, save_checkpoint

KNOWN, NOVEL = 16, 3
MISSED = NONE_RATE + 0.1
"""What may be called none, and what chance adds to it here."""


@pytest.fixture(scope="module")
def world():
    """Sixteen known classes, three novel ones, and five of neither kind; ten items to learn from, ten new ones."""
    everything = gaussian_classes(KNOWN + NOVEL + 5, 20, width=20, apart=3.0)
    first = torch.arange(len(everything)) % 20 < 10
    learn = type(everything)(everything.images[first], everything.labels[first], everything.class_names)
    new = type(everything)(everything.images[~first], everything.labels[~first], everything.class_names)
    return learn, new


@pytest.fixture(scope="module")
def recogniser(world):
    learn, _ = world
    known, others = split(learn, KNOWN)
    config = DiscoveryConfig(classes=NOVEL, method="kmeans", only_novel=False)
    return discover_groups(known, others.of_classes(range(NOVEL)).images, config, Context())[1]


def test_new_items_of_known_classes_are_recognised_by_name(world, recogniser):
    _, new = world
    items = new.of_classes(range(KNOWN))
    answers = recogniser.recognise(items.images)
    right = [a.label == items.class_names[c] for a, c in zip(answers, items.labels.tolist(), strict=True)]
    assert sum(right) / len(right) > 1 - MISSED
    assert all(a.kind == "known" for a, r in zip(answers, right, strict=True) if r)


def test_new_items_of_discovered_groups_are_recognised_by_number(world, recogniser):
    _, new = world
    items = new.of_classes(range(KNOWN, KNOWN + NOVEL))
    answers = recogniser.recognise(items.images)
    assert sum(a.kind == "novel" for a in answers) / len(answers) > 1 - MISSED
    for c in range(NOVEL):
        labels = [a.label for a, y in zip(answers, items.labels.tolist(), strict=True) if y == c and a.kind == "novel"]
        assert len(set(labels)) == 1
        assert labels[0] in {"0", "1", "2"}


def test_items_of_neither_kind_are_none(world, recogniser):
    _, new = world
    answers = recogniser.recognise(new.of_classes(range(KNOWN + NOVEL, KNOWN + NOVEL + 5)).images)
    assert sum(a.kind == "none" for a in answers) / len(answers) > 0.7  # one of the five lies close to a known class
    assert all(a.label == "" for a in answers if a.kind == "none")
    assert recogniser.calibrated


def test_the_second_guess_is_another_and_for_none_what_it_is_nearest_to(world, recogniser):
    _, new = world
    nearest = recogniser.nearest(new.images)
    names = [*map(str, range(NOVEL)), *recogniser.names]
    for answer, place in zip(recogniser.recognise(new.images), nearest.tolist(), strict=True):
        assert (answer.kind, answer.label) != (answer.second.kind, answer.second.label)
        assert 0 <= answer.confidence + answer.second.confidence <= 1 + 1e-9
        nearer = answer.second if answer.kind == "none" else answer
        assert nearer.label == names[place]
        assert nearer.kind == ("novel" if place < NOVEL else "known")


def test_a_larger_rate_calls_more_none_and_none_of_them_otherwise(world, recogniser):
    _, new = world
    before, counts = set(), []
    for rate in (0.0, 0.05, 0.1, 0.4, 1.0):
        none = {i for i, a in enumerate(recogniser.recognise(new.images, rate)) if a.kind == "none"}
        assert before <= none
        before = none
        counts.append(len(none))
    assert counts[0] == 0
    assert counts[-1] > 0.9 * len(new)


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan")])
def test_a_rate_that_is_no_share_is_refused(recogniser, rate):
    with pytest.raises(InputError, match="no share"):
        recogniser.recognise(torch.zeros(1, 20), rate)


def test_probabilities_of_places_sum_to_one(world, recogniser):
    _, new = world
    found = recogniser.probabilities(new.images)
    assert found.shape == (len(new), NOVEL + KNOWN)
    assert found.sum(1) == pytest.approx(1)
    assert (found.argmax(1) == recogniser.nearest(new.images)).all()


def test_confidence_falls_with_the_distance(recogniser):
    places = recogniser.places
    centre = torch.from_numpy(places.sums[NOVEL] / places.counts[NOVEL])
    away = torch.randn(centre.shape, generator=torch.Generator().manual_seed(0)).double()
    points = torch.stack([centre + step * away for step in (0.0, 0.1, 0.2, 0.3)])
    found = recogniser.recognition.probabilities(recogniser.scores(points))[:, NOVEL]
    assert (found[:-1] >= found[1:]).all()
    assert found[0] > 0.9 > found[-1]


def test_an_item_is_recognised_alike_alone_and_in_company(world, recogniser):
    _, new = world
    together = recogniser.recognise(new.images[:30])
    alone = [recogniser.recognise(new.images[i : i + 1])[0] for i in range(30)]
    assert [(a.kind, a.label) for a in alone] == [(a.kind, a.label) for a in together]
    assert [a.confidence for a in alone] == pytest.approx([a.confidence for a in together])


def test_no_items_give_no_answers(recogniser):
    assert recogniser.recognise(torch.zeros(0, 20)) == []


def test_what_was_saved_recognises_alike(world, recogniser, tmp_path):
    _, new = world
    recogniser.save(tmp_path / "model")
    again = Recogniser.load(tmp_path / "model")
    assert again.recognise(new.images) == recogniser.recognise(new.images)
    assert [file.name for file in (tmp_path / "model").iterdir()] == [FILE]


def test_without_known_classes_there_are_groups_and_none(tmp_path):
    novel = gaussian_classes(3, 10, apart=6.0)
    _, recogniser = discover_groups(none_known(), novel.images, DiscoveryConfig(classes=3), Context())
    assert not recogniser.calibrated
    answers = recogniser.recognise(torch.cat([novel.images, 100 * torch.ones(1, 16)]))
    assert sum(a.kind == "novel" for a in answers[:-1]) >= 0.9 * len(novel)
    assert answers[-1].kind == "none"
    recogniser.save(tmp_path)
    assert Recogniser.load(tmp_path).recognise(novel.images) == answers[:-1]


@pytest.mark.parametrize(
    "damage", ["missing", "empty", "text", "cut", "foreign", "earlier version", "lengths", "leads", "embedding"]
)
def test_a_folder_that_is_damaged_or_foreign_is_refused_by_name(recogniser, tmp_path, damage):
    recogniser.save(tmp_path)
    path = tmp_path / FILE
    content = path.read_bytes()
    tensors, facts = load_checkpoint(path)
    match damage:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "text":
            path.write_text("not a model")
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "foreign":
            save_checkpoint(path, {"weights": torch.zeros(3)}, {"step": 3})
        case "earlier version":
            save_checkpoint(path, tensors, facts | {"format": "medi-recogniser-3"})
        case "lengths":
            save_checkpoint(path, tensors, facts | {"names": ["only one"]})
        case "leads":
            save_checkpoint(path, {name: part for name, part in tensors.items() if name != "leads"}, facts)
        case "embedding":
            unknown = facts["representation"] | {"embedding": {}, "kind": "unheard of"}
            save_checkpoint(path, tensors, facts | {"representation": unknown})
    with pytest.raises(InputError, match=str(tmp_path)) as error:
        Recogniser.load(tmp_path)
    assert "\n" not in str(error.value)


def test_facts_are_plain_json(recogniser, tmp_path):
    recogniser.save(tmp_path)
    _, facts = load_checkpoint(tmp_path / FILE)
    json.dumps(facts, allow_nan=False)


def test_renumbered_groups_are_recognised_alike(world, recogniser):
    _, new = world
    old = np.array([2, 0, 1])
    answers, again = recogniser.recognise(new.images), recogniser.renumbered(old).recognise(new.images)
    for a, b in zip(answers, again, strict=True):
        assert (a.kind, a.confidence) == (b.kind, pytest.approx(b.confidence))
        assert a.label == (str(old[int(b.label)]) if b.kind == "novel" else b.label)


def test_with_known_classes_of_one_item_the_groups_say_how_items_of_a_class_differ():
    world = gaussian_classes(5, 10, apart=6.0)
    known, novel = split(world, 2)
    single = type(known)(known.images[::10], known.labels[::10], known.class_names)
    _, recogniser = discover_groups(single, novel.images, DiscoveryConfig(classes=3, method="kmeans"), Context())
    assert recogniser.recognise(torch.full((1, 16), 100.0))[0].kind == "none"
    answers = recogniser.recognise(novel.images)
    assert sum(a.kind == "novel" for a in answers) > 0.8 * len(answers)
    assert max(a.confidence for a in answers) <= 0.5, "nothing was rehearsed"


@pytest.mark.parametrize("items", [1, 3])
def test_where_nothing_tells_how_items_of_a_class_differ_something_is_answered_all_the_same(items):
    novel = gaussian_classes(items, 1, apart=6.0)
    _, recogniser = discover_groups(none_known(), novel.images, DiscoveryConfig(classes=items), Context())
    answers = recogniser.recognise(novel.images)
    assert [a.kind for a in answers] == ["novel"] * items
    assert len({a.label for a in answers}) == items
    assert max(a.confidence for a in answers) <= 0.5
    far = recogniser.recognise(torch.full((1, 16), 100.0))[0]
    assert far.confidence <= 0.5


def test_without_groups_known_classes_are_recognised():
    known, _ = split(gaussian_classes(8, 10, apart=6.0), 8)
    found, recogniser = discover_groups(known, known.images[:0], DiscoveryConfig(method="kmeans"), Context())
    assert (found.count.k, recogniser.groups) == (0, 0)
    answers = recogniser.recognise(known.images)
    right = [a.label == known.class_names[c] for a, c in zip(answers, known.labels.tolist(), strict=True)]
    assert sum(right) > 0.8 * len(right)
