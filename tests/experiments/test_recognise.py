"""How often new items are called none: what is drawn, what is counted, and rules that could decide."""

import pytest
import torch
from recognise import recognise, table
from recognise_worlds import World, among_known, draw, score
from rejection_rules import RULES, compare_rules, nearest_and_others, padded

from medi.data.imageset import ImageSet
from medi.discovery.recogniser import Recognised


@pytest.fixture(scope="module")
def world() -> World:
    """12 classes far apart: 6 known, 2 novel, 2 neither."""
    g = torch.Generator().manual_seed(0)
    labels = torch.arange(12).repeat_interleave(45)
    items = (20 * torch.randn(12, 5, generator=g))[labels] + torch.randn(len(labels), 5, generator=g)
    return World(ImageSet(items, labels, tuple("abcdefghijkl")), (6, 40), 2, 2, 5)


def test_a_draw_numbers_classes_anew_and_repeats_no_item(world):
    known, novel, new = draw(world, 3, seed=1)
    assert torch.bincount(known.labels).tolist() == [40] * 6
    assert torch.bincount(novel.labels).tolist() == [0] * 6 + [3] * 2
    assert torch.bincount(new.labels).tolist() == [5] * 10
    drawn = torch.cat([known.images, novel.images, new.images])
    assert len(drawn.unique(dim=0)) == len(drawn)
    for images in (known, novel, new):  # an item keeps the name of its class
        for item, label in zip(images.images[::7], images.labels[::7], strict=True):
            (place,) = (world.items.images == item).all(1).nonzero()[0].tolist()
            assert images.class_names[label] == world.items.class_names[world.items.labels[place]]


def test_shares_are_counted_by_what_the_items_are(world):
    said = [("none", ""), ("known", "b"), ("known", "a"), ("novel", "0"), ("none", ""), ("novel", "1")]
    answers = [Recognised(kind, label, 1.0) for kind, label in said]
    found = score(world, answers, [0, 1, 1, 6, 8, 9], ["a", "b"], [6, 7])
    assert found == {
        "none of known": pytest.approx(1 / 3),
        "none of novel": 0,
        "none of neither": 0.5,
        "right of answered": pytest.approx(2 / 3),
    }


def test_classes_far_apart_are_recognised_and_others_called_none(world):
    found = recognise(world, 5, seed=0, given=True)
    assert found["groups"] == 2
    assert found["right of answered"] == 1
    assert found["none of neither"] > found["none of known"]


def test_rules_are_compared_on_known_classes_alone(world):
    inner = among_known(world, seed=0)
    assert inner.items.n_classes == 6
    rows = compare_rules(inner, 3, seed=0)
    assert [row["rule"] for row in rows] == list(RULES)
    assert all(row["none of neither"] > 0.5 for row in rows)


def test_distances_to_means_that_are_missing_do_not_count():
    distances = padded([torch.tensor([[1.0, 4.0, 4.0]]), torch.tensor([[4.0, 1.0]])]).double()
    assert distances[1].tolist() == [4, 1, torch.inf]
    torch.testing.assert_close(nearest_and_others(distances).exp(), torch.tensor([[1.0, 4.0]] * 2).double())


def test_the_table_has_a_line_for_every_case():
    case = {"set": "digits", "given": True, "none of known": 0.1, "none of novel": 0.2, "none of neither": 0.9}
    rows = [case | {"observations": 1, "right of answered": right} for right in (0.5, 0.7)]
    lines = table({"whole": {"rows": rows}}).splitlines()
    assert lines[-1] == "| digits | 1 | 10 ± 0 | 20 ± 0 | 90 ± 0 | 60 ± 14 |"
