"""What new items are recognised as: a group, a known class, or none of these."""

import numpy as np
import pytest
from worlds import gaussian_classes, none_known, split

from medi.core.errors import InputError
from medi.core.tensors import load_arrays, save_arrays
from medi.core.workplace import Workplace
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import Outcome, discover_groups
from medi.grouping.recogniser import RECOGNISER, Guess, Recogniser

KNOWN, NOVEL = 16, 3
MISSED = 0.15
"""What may be called none, and what chance adds to it here."""


def discover(known, pool: np.ndarray, **config: object) -> Outcome:
    return discover_groups(known, pool, DiscoveryConfig(**config), Workplace())


@pytest.fixture(scope="module")
def world():
    """Sixteen known classes, three novel ones, and five of neither kind; ten items to learn from, ten new ones."""
    everything = gaussian_classes(KNOWN + NOVEL + 5, 20, width=20, apart=3.0)
    first = np.arange(len(everything)) % 20 < 10
    return everything.where(first), everything.where(~first)


@pytest.fixture(scope="module")
def new(world):
    return world[1]


@pytest.fixture(scope="module")
def recogniser(world) -> Recogniser:
    known, others = split(world[0], KNOWN)
    pool = others.of_classes(range(NOVEL)).values
    return discover(known, pool, classes=NOVEL, only_novel=False).recogniser


def test_new_items_of_known_classes_are_recognised_by_name(new, recogniser):
    items = new.of_classes(range(KNOWN))
    answers = recogniser.recognise(items.values)
    right = [a.label == items.class_names[c] for a, c in zip(answers, items.labels.tolist(), strict=True)]
    assert sum(right) / len(right) > 1 - MISSED
    assert all(a.kind == "known" for a, r in zip(answers, right, strict=True) if r)


def test_new_items_of_discovered_groups_are_recognised_by_number(new, recogniser):
    items = new.of_classes(range(KNOWN, KNOWN + NOVEL))
    answers = recogniser.recognise(items.values)
    assert sum(a.kind == "novel" for a in answers) / len(answers) > 1 - MISSED
    label_of = {(y, a.label) for a, y in zip(answers, items.labels.tolist(), strict=True) if a.kind == "novel"}
    assert sorted(label for _, label in label_of) == ["0", "1", "2"], "one number a class"


def test_items_of_neither_kind_are_none(new, recogniser):
    answers = recogniser.recognise(new.of_classes(range(KNOWN + NOVEL, KNOWN + NOVEL + 5)).values)
    assert sum(a.kind == "none" for a in answers) / len(answers) > 0.7  # one of the five lies close to a known class
    assert all(a.label == "" for a in answers if a.kind == "none")
    assert recogniser.calibrated


@pytest.mark.parametrize("rate", [None, 0.0, 0.02, 0.3])
def test_the_first_guess_is_the_likeliest_and_the_second_the_next(new, recogniser, rate):
    for answer in recogniser.recognise(new.values, rate):
        assert (answer.kind, answer.label) != (answer.second.kind, answer.second.label)
        assert answer.confidence >= answer.second.confidence >= 0
        assert answer.confidence + answer.second.confidence <= 1 + 1e-9


def test_what_is_less_sure_than_asked_is_none(new, recogniser):
    for plain, asked in zip(recogniser.recognise(new.values), recogniser.recognise(new.values, sure=0.8), strict=True):
        if plain.kind == "none" or plain.confidence >= 0.8:
            assert asked == plain
        else:
            assert (asked.kind, asked.label) == ("none", "")
            assert asked.unsure == Guess(plain.kind, plain.label, plain.confidence)
            assert asked.confidence == pytest.approx(1 - plain.confidence)
        assert asked.confidence >= asked.second.confidence


def test_what_was_saved_recognises_alike_and_a_copy_of_a_labelled_item_for_certain(world, recogniser, tmp_path):
    labelled, new = world[0].of_classes(range(KNOWN)), world[1].values
    recogniser.save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [RECOGNISER]
    assert Recogniser.load(tmp_path).recognise(new) == recogniser.recognise(new)
    for again in (recogniser, Recogniser.load(tmp_path)):
        answers = again.recognise(labelled.values)
        assert [a.label for a in answers] == [labelled.class_names[c] for c in labelled.labels]
        assert {(a.kind, a.confidence) for a in answers} == {("known", 1.0)}


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan")])
def test_a_rate_that_is_no_share_is_refused(recogniser, rate):
    with pytest.raises(InputError, match="no share"):
        recogniser.recognise(np.zeros((1, 20)), rate)


@pytest.mark.parametrize("damage", ["missing", "cut", "foreign", "earlier version", "lengths", "learnt step"])
def test_a_folder_that_is_damaged_or_foreign_is_refused_by_name(recogniser, tmp_path, damage):
    recogniser.save(tmp_path)
    path = tmp_path / RECOGNISER
    arrays, facts = load_arrays(path)
    match damage:
        case "missing":
            path.unlink()
        case "cut":
            path.write_bytes(path.read_bytes()[:1000])
        case "foreign":
            save_arrays(path, {"weights": np.zeros(3)}, {"step": 3})
        case "earlier version":
            save_arrays(path, arrays, facts | {"format": "medi-recogniser-3"})
        case "lengths":
            save_arrays(path, arrays, facts | {"names": ["only one"]})
        case "learnt step":
            unknown = facts["representation"] | {"embedding": {}, "kind": "unheard of"}
            save_arrays(path, arrays, facts | {"representation": unknown})
    with pytest.raises(InputError, match=str(tmp_path)) as error:
        Recogniser.load(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("known", [0, 2])
def test_where_known_classes_are_none_or_of_one_item_the_groups_say_how_items_of_a_class_differ(known):
    labelled, novel = split(gaussian_classes(3 + known, 10, apart=6.0), known)
    recogniser = discover(labelled.where(np.arange(known) * 10), novel.values, classes=3).recogniser
    assert recogniser.recognise(np.full((1, 16), 100.0))[0].kind == "none"
    answers = recogniser.recognise(novel.values)
    assert sum(a.kind == "novel" for a in answers) > 0.8 * len(answers)
    assert max(a.confidence for a in answers) <= 0.5, "nothing was rehearsed"


@pytest.mark.parametrize("items", [1, 3])
def test_where_nothing_tells_how_items_of_a_class_differ_something_is_answered_all_the_same(items):
    novel = gaussian_classes(items, 1, apart=6.0)
    recogniser = discover(none_known(), novel.values, classes=items).recogniser
    answers = recogniser.recognise(novel.values)
    assert [a.kind for a in answers] == ["novel"] * items
    assert len({a.label for a in answers}) == items
    far = recogniser.recognise(np.full((1, 16), 100.0))
    assert max(a.confidence for a in answers + far) <= 0.5


def test_without_groups_known_classes_are_recognised():
    known = gaussian_classes(8, 10, apart=6.0)
    outcome = discover(known, known.values[:0])
    assert (outcome.discovery.count.k, outcome.recogniser.groups) == (0, 0)
    answers = outcome.recogniser.recognise(known.values)
    right = [a.label == known.class_names[c] for a, c in zip(answers, known.labels.tolist(), strict=True)]
    assert sum(right) > 0.8 * len(right)
