"""The question worth most, and what grouping again may change."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reviews import ToyPool, act, made_up_review, review_with_a_known_one

from medi.grouping.engine import Anchors, known_label
from medi.grouping.saved_pool import Regrouped
from medi.review.actions import RefusedError
from medi.review.constraints import Word
from medi.review.discovery_folder import read_folder
from medi.review.draft import Draft
from medi.review.offers import offers
from medi.review.places import _away, chances, place_chances
from medi.review.questions import CHOICES, CLASS_FROM, questions
from medi.review.regrouping import adopt
from medi.review.session import Review
from medi.review.state import Offer, Question, ReviewState
from medi.review.togetherness import belonging, near_groups

TWO = [0, 0, 0, 0, 1, 1, 1, 1, 2]
NAMES = ("rose", "tulip", "daisy")
SURE = np.tile(TWO, (10, 1))


def drafted(groups: list[int], *words: Word) -> Draft:
    n = len(groups)
    return Draft(ReviewState(groups, [""] * n, [0.7] * n, words=list(words), next_group=max(groups) + 1))


def looks(groups: list[int], **moved: int) -> np.ndarray:
    """Points far apart by group; photos such as `p3` look like another group."""
    seen = [moved.get(f"p{item}", group) for item, group in enumerate(groups)]
    return 10.0 * np.eye(max(groups) + 1)[seen] + np.random.default_rng(0).normal(
        0, 0.5, (len(groups), max(groups) + 1)
    )


def asked(samples: np.ndarray, groups: list[int], *words: Word, points=None) -> list[Question]:
    return questions(drafted(groups, *words), samples, ToyPool(looks(groups) if points is None else points))


def test_nothing_is_asked_where_there_is_nothing_to_ask():
    assert asked(np.empty((0, 9), dtype=np.int64), TWO) == []
    settled = drafted(TWO)
    settled.aside.update(range(9))
    assert questions(settled, SURE, ToyPool(looks(TWO))) == []


def test_a_photo_that_looks_like_another_group_is_asked_about_first_beside_what_stands_for_groups():
    first = asked(SURE, TWO, points=looks(TWO, p3=1))[0]
    assert (first.kind, first.a) == ("which", 3)
    assert {0, 4} <= set(first.items)


@given(st.integers(0, 50), st.sets(st.tuples(st.integers(0, 8), st.sampled_from(NAMES))))
def test_known_classes_are_among_the_places_by_how_probable_they_are(seed, refused):
    generator = np.random.default_rng(seed)
    samples = generator.integers(0, 3, (6, 9))
    pool = ToyPool(looks(TWO) / 5, names=NAMES, classes=generator.normal(0, 2, (3, 3)))
    state = drafted(TWO)
    state.refused |= refused
    groups, known = chances(state, samples, pool)
    assert np.concatenate([groups, known], 1).sum(1) == pytest.approx(1)
    for one in questions(state, samples, pool):
        if one.kind != "which":
            continue
        found = [float(groups[one.a, TWO[item]]) for item in one.items]
        for rank, name in one.known:
            found.insert(rank, float(known[one.a, NAMES.index(name)]))
        assert found == sorted(found, reverse=True)
        assert 0 < len(one.items) <= len(found) <= CHOICES
        assert one.probability == round(found[0], 2)
        offered, out = {name for _, name in one.known}, {name for item, name in refused if item == one.a}
        assert not offered & out
        for name in set(NAMES) - offered - out:
            chance = known[one.a, NAMES.index(name)]
            assert chance < CLASS_FROM or len(offered) == CHOICES - 1 or (len(found) == CHOICES and chance <= found[-1])


def test_a_photo_is_put_into_a_known_class_by_an_answer_or_never_asked_about_it_again(tmp_path):
    review = review_with_a_known_one(tmp_path)
    before = json.dumps(review.state() | {"seq": 0})
    question = review.state()["question"]
    (rank, name), item = question["known"][0], question["a"]
    assert rank == 0
    none = {"a": item, "b": question["items"][0], "others": question["items"][1:], "known": [name], "same": False}
    state = act(review, "known", items=[item], name=name)
    assert (state["items"][item]["kind"], state["items"][item]["known"]) == ("known", name)
    assert all(item not in (one["a"], one["b"]) for one in state["questions"])
    assert json.dumps(act(review, "undo") | {"seq": 0}) == before
    state = act(review, "answer", **none)
    assert state["items"][item]["kind"] != "known"
    assert all(one["a"] != item or not one["known"] for one in state["questions"])
    again = Review(read_folder(review.folder.path), review.pool)
    assert (item, name) in again.history.state.refused
    assert json.dumps(act(again, "undo") | {"seq": 0}) == before


@pytest.mark.parametrize("known", ["rose", [1], ["daisy"], None])
def test_no_answer_is_about_classes_that_are_not_there(tmp_path, known):
    review = made_up_review(tmp_path)
    with pytest.raises(RefusedError):
        act(review, "answer", a=0, b=6, same=False, known=known)
    assert review.history.seq == 0


def test_two_groups_that_may_be_one_are_asked_about_and_many_photos_are_worth_more_than_one():
    groups = [0] * 8 + [1] * 8
    samples = np.zeros((10, 16), dtype=np.int64)
    alike = np.random.default_rng(0).normal(0, 1, (16, 5))
    first = asked(samples, groups, points=alike)[0]
    assert (first.kind, {first.a, first.b}) == ("merge", {0, 8})
    assert first.worth > 1
    said = Word(False, 0, 8, "answer")
    assert all(one.kind != "merge" for one in asked(samples, groups, said, points=alike))


def test_a_half_that_is_another_kind_is_asked_about():
    samples = np.tile([0, 0, 0, 0, 7, 7, 1, 1], (10, 1))
    groups = [0] * 6 + [1] * 2
    halves = [one for one in asked(samples, groups, points=looks(groups, p4=1, p5=1)) if one.kind == "half"]
    assert [list(one.items) for one in halves] == [[4, 5]]


@given(st.sets(st.integers(0, 8)), st.integers(0, 3))
def test_nothing_is_asked_about_settled_photos_or_what_follows_from_what_was_said(claimed, seed):
    samples = np.random.default_rng(seed).integers(0, 3, (6, 9))
    draft = drafted(TWO, Word(True, 0, 1, "answer"), Word(False, 0, 4, "answer"))
    draft.claim(claimed)
    for one in questions(draft, samples, ToyPool(looks(TWO))):
        assert not {one.a, one.b} & draft.held
        assert {one.a, one.b} not in ({0, 1}, {0, 4}, {1, 4})
        assert one.worth > 0


@given(st.lists(st.integers(-1, 2), min_size=7, max_size=7).filter(lambda labels: max(labels) >= 0), st.integers(0, 5))
def test_distances_to_groups_leave_the_item_itself_out(labels, seed):
    points = np.random.default_rng(seed).normal(size=(7, 3))
    own = np.unique(labels, return_inverse=True)[1] - (min(labels) < 0)
    away = _away(points, own, own.max() + 1)
    for item in range(7):
        for group in range(own.max() + 1):
            others = [other for other in range(7) if own[other] == group and other != item]
            n = len(others)
            middle, scale = (points[others].mean(0), n / (n + 1)) if n else (np.zeros(3), 1)
            assert away[item, group] == pytest.approx(scale * np.square(points[item] - middle).sum())


def test_how_much_a_distance_counts_follows_from_the_confidence():
    points, members = np.random.default_rng(1).normal(size=(30, 4)), {0: [*range(15)], 5: [*range(15, 30)]}
    points[:15] += 1
    known = Anchors(np.full((1, 4), -3.0), np.full(1, 20.0))
    for sure in (0.6, 0.9):
        found = place_chances(points, members, known, np.full(30, sure), set())
        assert np.r_[found[:15, 0], found[15:, 1]].mean() == pytest.approx(sure, abs=0.02)


def test_belonging_is_the_share_of_others_that_are_together():
    samples = np.array([[0, 0, 1, 2], [0, 0, 0, 2]])
    assert belonging(samples, np.array([0, 0, 0, -1])).tolist() == [0.75, 0.75, 0.5, 0.0]
    assert belonging(samples, np.array([0, 1, 2, 3])).tolist() == [1.0] * 4


def regrouped(labels: list[int], sure: float = 0.9) -> Regrouped:
    kinds = tuple("novel" if label >= 0 else "alone" for label in labels)
    samples = np.tile(np.where(np.array(labels) < 0, 100 + np.arange(len(labels)), labels), (10, 1))
    return Regrouped(kinds, tuple(labels), ("",) * len(labels), (sure,) * len(labels), samples)


def test_groups_keep_their_numbers_whatever_the_labels_are():
    draft = drafted([0, 0, 0, 1, 1, 1])
    adopt(draft, regrouped([5, 5, 5, 3, 3, 3]))
    assert draft.groups == [0, 0, 0, 1, 1, 1]
    assert draft.confidence == [0.9] * 6
    assert draft.next_group == 2


def test_free_photos_move_and_settled_ones_do_not():
    draft = drafted([0, 0, 0, 0, 1, 1, 1], Word(True, 2, 0, "move"))
    adopt(draft, regrouped([0, 0, 1, 1, 1, 1, 1]))
    assert draft.groups == [0, 0, 0, 1, 1, 1, 1]


def test_a_new_group_gets_the_next_number_but_what_the_action_was_about_stays_as_said():
    free, said = drafted([0] * 6), drafted([0] * 6)
    said.touched.update(range(6))
    for draft in (free, said):
        adopt(draft, regrouped([0, 0, 0, 1, 1, 1]))
    assert (free.groups, free.next_group) == ([0, 0, 0, 1, 1, 1], 2)
    assert said.groups == [0] * 6


@given(
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
    st.lists(st.integers(-1, 4), min_size=8, max_size=8),
    st.sets(st.integers(0, 7)),
    st.floats(0, 1),
)
def test_claimed_photos_never_move_and_nothing_is_put_beside_them(groups, labels, claimed, sure):
    draft = drafted(groups)
    draft.claim(claimed)
    owned = {groups[item] for item in claimed}
    adopt(draft, regrouped(labels, sure))
    for item, group in enumerate(groups):
        assert draft.groups[item] == group or (item not in claimed and draft.groups[item] not in owned)
        assert draft.confidence[item] == 1 if item in claimed else draft.confidence[item] < 1


def test_what_would_come_to_a_confirmed_group_is_offered_beside_it_and_what_would_leave_too():
    samples = np.tile([0, 0, 0, 1, 1, 1, 0, known_label(0)], (10, 1))
    draft = drafted([0, 0, 1, 1, 1, 1, -1, 1])
    assert offers(draft, samples, ["rose"]) == []
    draft.claim([0, 1, 2, 3, 4, 5, 7])
    draft.together([3, 4, 5], "name")
    assert offers(draft, samples, ["rose"]) == [Offer(0, [6], 0, ""), Offer(1, [7], -1, "rose"), Offer(1, [2], 0, "")]
    draft.apart([(6, 0)], "reject")
    draft.together([3, 2], "check")
    assert offers(draft, samples, ["rose"]) == [Offer(1, [7], -1, "rose")]


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=5), st.sets(st.integers(0, 5))
)
def test_nearness_to_several_groups_is_that_to_each(samples, some):
    samples, groups = np.array(samples), {4: sorted(some), 7: [0, 5]}
    near = near_groups(samples, {group: items for group, items in groups.items() if items})
    for column, items in enumerate(items for items in groups.values() if items):
        for item in range(6):
            others = [other for other in items if other != item]
            share = np.mean([samples[:, item] == samples[:, other] for other in others]) if others else 0
            assert near[item, column] == pytest.approx(share)


def test_a_doubtful_change_is_not_made():
    draft = drafted([0, 0, 0, 1, 1, 1])
    adopt(draft, regrouped([0, 0, -1, 1, 1, 1], sure=0.5))
    assert draft.groups == [0, 0, 0, 1, 1, 1]
