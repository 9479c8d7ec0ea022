"""The question worth most, and what grouping again may change."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reviews import ToyPool, act, made_up_review, review_with_a_known_one, told

from medi.grouping.engine import known_label
from medi.grouping.saved_pool import Regrouped
from medi.review.actions import RefusedError
from medi.review.constraints import Word
from medi.review.discovery_folder import read_folder
from medi.review.draft import Draft
from medi.review.offers import offers
from medi.review.places import View, confidences, place_chances
from medi.review.questions import CHOICES, questions
from medi.review.regrouping import adopt
from medi.review.session import Review
from medi.review.state import Offer, Question, ReviewState
from medi.review.togetherness import near_groups

TWO = [0, 0, 0, 0, 1, 1, 1, 1, 2]
NAMES = ("rose", "tulip", "daisy")


def drafted(groups: list[int], *words: Word) -> Draft:
    n = len(groups)
    return Draft(ReviewState(groups, [""] * n, [0.7] * n, words=list(words), next_group=max(groups) + 1))


def asked(labels: list[int], *words: Word, said: Regrouped | None = None) -> list[Question]:
    """What is asked of items in groups by an engine that says so much of them."""
    draft, said = drafted(labels, *words), said or told(labels)
    return questions(draft, View.of(draft, said, {label: label for label in set(labels)}), ToyPool(looks(labels)))


def looks(groups: list[int], **moved: int) -> np.ndarray:
    """Points far apart by group; photos such as `p3` look like another group."""
    seen = [moved.get(f"p{item}", group) for item, group in enumerate(groups)]
    return 10.0 * np.eye(max(groups) + 1)[seen] + np.random.default_rng(0).normal(
        0, 0.5, (len(groups), max(groups) + 1)
    )


def torn(item: int, other: int, labels: list[int]) -> np.ndarray:
    """Chances of items that are surely in their groups, but for one that may be in another."""
    chances = 0.9 * np.eye(max(labels) + 1)[labels]
    chances[item, [labels[item], other]] = 0.5, 0.45
    return np.pad(chances, ((0, 0), (0, 1)))


def test_nothing_is_asked_where_there_is_nothing_to_ask():
    assert asked(TWO, said=told(TWO, np.empty((0, 9), dtype=np.int64))) == []
    settled = drafted(TWO)
    settled.aside.update(range(9))
    assert questions(settled, View.of(settled, told(TWO), {0: 0, 1: 1, 2: 2}), ToyPool(looks(TWO))) == []


def test_a_photo_that_may_be_in_another_group_is_asked_about_first_beside_what_stands_for_groups():
    first = asked(TWO, said=told(TWO, chances=torn(3, 1, TWO)))[0]
    assert (first.kind, first.a) == ("which", 3)
    assert {0, 4} <= set(first.items)


@st.composite
def said(draw) -> tuple[Draft, Regrouped, dict[int, int]]:
    """Items as they are shown, what an engine says of as many in other groups, and which groups are the same."""
    n = draw(st.integers(3, 9))
    numbers = st.lists(st.integers(-1, 3), min_size=n, max_size=n)
    draft = drafted(draw(numbers))
    draft.confidence = draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))
    for item in range(n):
        if draft.groups[item] < 0 and draw(st.booleans()):
            draft.known[item] = draw(st.sampled_from([*NAMES, "a class that the engine does not know"]))
    draft.claim(draw(st.sets(st.integers(0, n - 1), max_size=2)))
    draft.refused = draw(st.sets(st.tuples(st.integers(0, n - 1), st.sampled_from(NAMES))))
    labels = np.unique(draw(numbers), return_inverse=True)[1].tolist()
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    chances = generator.dirichlet(np.full(max(labels) + 3 + len(NAMES), 0.3), n)[:, :-1]
    samples = generator.integers(0, 3, (6, n))
    shown = draw(st.permutations(range(5)))
    found = told(labels, samples, names=NAMES, chances=chances, pure=draw(st.floats(0, 1)), kin=draw(st.floats(0, 1)))
    return draft, found, dict(enumerate(shown[: max(labels) + 1]))


@given(said())
def test_no_place_is_likelier_than_the_one_that_an_item_is_shown_in(case):
    draft, found, shown = case
    view = View.of(draft, found, shown)
    every = np.concatenate([view.groups, view.known], axis=1)
    assert every.min(initial=0) >= 0
    assert every.sum(1).max(initial=0) <= 1 + 1e-9
    for item, row in enumerate(every):
        sure = 1.0 if item in draft.held else draft.confidence[item]
        assert row.max(initial=0) <= sure
        own = list(draft.members).index(draft.groups[item]) if draft.groups[item] >= 0 else -1
        if draft.known[item] in NAMES:
            own = len(draft.members) + NAMES.index(draft.known[item])
        if own >= 0:
            assert row[own] == sure
        if item in draft.held:
            assert np.delete(row, own).max(initial=0) == 0 if own >= 0 else row.max(initial=0) == 0


@given(said())
def test_a_question_says_of_a_photo_what_its_card_and_the_list_of_places_say(case):
    draft, found, shown = case
    view = View.of(draft, found, shown)
    for one in questions(draft, view, ToyPool(looks([max(group, 0) for group in draft.groups]))):
        assert 0 <= one.probability <= 1
        if one.kind != "which":
            continue
        row = view.groups[one.a]
        places = [float(row[list(draft.members).index(draft.groups[item])]) for item in one.items]
        for rank, name in one.known:
            places.insert(rank, float(view.known[one.a, NAMES.index(name)]))
        assert places == sorted(places, reverse=True)
        assert 0 < len(one.items) <= len(places) <= CHOICES
        assert one.probability == round(places[0], 4)
        assert one.probability <= round(draft.confidence[one.a], 4)
        assert (
            one.worth <= round(1 - row[list(draft.members).index(draft.groups[one.a])], 4) + 1e-9
            if (draft.groups[one.a] >= 0)
            else one.worth <= 1
        )
        offered, out = {name for _, name in one.known}, {name for item, name in draft.refused if item == one.a}
        assert not offered & out
        assert places == [pytest.approx(chance, abs=1e-4) for chance in one.chances]
        groups_left = [one_of for one_of in places[:-1] if one_of not in [places[rank] for rank, _ in one.known]]
        for name in set(NAMES) - offered - out:
            chance = view.known[one.a, NAMES.index(name)]
            assert chance == 0 or (len(places) == CHOICES and (chance <= places[-1] + 1e-9 or not groups_left))


@given(said())
def test_two_groups_are_one_and_a_half_another_kind_as_probably_as_the_engine_says(case):
    draft, found, shown = case
    label_of, where = {group: label for label, group in shown.items()}, draft.groups
    for one in questions(draft, View.of(draft, found, shown), ToyPool(looks([max(group, 0) for group in where]))):
        labels = [label_of.get(where[item], -1) for item in (one.a, one.b)]
        if min(labels) < 0 or max(labels) > max(found.labels):
            continue  # a group that the engine does not have
        if one.kind == "merge":
            assert one.probability == round(float(found.kin[labels[0], labels[1]]), 4)
        elif one.kind == "half":
            assert one.probability >= round(float(found.pure[labels[1]]), 4), "a pure group has no other half"


def test_a_photo_is_put_into_a_known_class_by_an_answer_or_never_asked_about_it_again(tmp_path):
    review = review_with_a_known_one(tmp_path)
    before = json.dumps(review.state() | {"seq": 0})
    question = next(one for one in review.state()["questions"] if one["known"])
    (_, name), item = question["known"][0], question["a"]
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
    first = asked(groups, said=told(groups, kin=0.4))[0]
    assert (first.kind, {first.a, first.b}) == ("merge", {0, 8})
    assert first.worth == pytest.approx(0.4 * 8)
    apart = Word(False, 0, 8, "answer")
    assert all(one.kind != "merge" for one in asked(groups, apart, said=told(groups, kin=0.4)))


def test_a_half_that_is_another_kind_is_asked_about():
    samples = np.tile([0, 0, 0, 0, 7, 7, 1, 1], (10, 1))
    draft = drafted([0] * 6 + [1] * 2)
    view = View.of(draft, told(draft.groups, samples, pure=0.2), {0: 0, 1: 1})
    found = questions(draft, view, ToyPool(looks(draft.groups, p4=1, p5=1)))
    halves = [one for one in found if one.kind == "half"]
    assert [(list(one.items), one.probability) for one in halves] == [([4, 5], 0.2)]


@given(st.sets(st.integers(0, 8)), st.integers(0, 3))
def test_nothing_is_asked_about_settled_photos_or_what_follows_from_what_was_said(claimed, seed):
    samples = np.random.default_rng(seed).integers(0, 3, (6, 9))
    draft = drafted(TWO, Word(True, 0, 1, "answer"), Word(False, 0, 4, "answer"))
    draft.claim(claimed)
    view = View.of(draft, told(TWO, samples, sure=0.6, pure=0.5, kin=0.4), {0: 0, 1: 1, 2: 2})
    for one in questions(draft, view, ToyPool(looks(TWO))):
        assert not {one.a, one.b} & draft.held
        assert {one.a, one.b} not in ({0, 1}, {0, 4}, {1, 4})
        assert one.kind != "merge" or {TWO[one.a], TWO[one.b]} != {0, 1}, "they hold photos that were said to be apart"
        assert one.worth > 0


def test_what_a_person_denied_is_impossible_and_the_rest_as_much_more_probable():
    draft = drafted(TWO, Word(False, 3, 4, "answer"))
    draft.refused.add((3, "rose"))
    chances = np.tile([0.4, 0.2, 0.1, 0.2, 0.0, 0.1, 0.0], (9, 1))
    found = told(TWO, names=NAMES, chances=chances)
    every, own = place_chances(draft, found, {0: 0, 1: 1, 2: 2})
    assert own.tolist() == TWO
    assert every[3] == pytest.approx(np.array([0.4, 0, 0.1, 0, 0, 0.1, 0, 0]) / 0.6)
    assert every[0] == pytest.approx([*chances[0], 0.0]), "nothing was denied of it"
    assert confidences(draft, found, {0: 0, 1: 1, 2: 2})[3] == pytest.approx(0.4 / 0.6)


@given(said())
def test_how_sure_a_card_is_follows_from_what_the_engine_says_of_its_place_and_of_likelier_ones(case):
    draft, found, shown = case
    every, own = place_chances(draft, found, shown)
    for row, place, sure in zip(every, own, confidences(draft, found, shown), strict=True):
        mine, others = row[place], np.sort(np.delete(row, place))[::-1]
        means = [(mine + others[:count].sum()) / (count + 1) for count in range(len(others) + 1)]
        assert sure == pytest.approx(max(means))
        assert sure >= mine


def test_groups_keep_their_numbers_whatever_the_labels_are():
    draft = drafted([0, 0, 0, 1, 1, 1])
    adopt(draft, told([5, 5, 5, 3, 3, 3]))
    assert draft.groups == [0, 0, 0, 1, 1, 1]
    assert draft.confidence == [0.9] * 6
    assert draft.next_group == 2


def test_free_photos_move_and_settled_ones_do_not():
    draft = drafted([0, 0, 0, 0, 1, 1, 1], Word(True, 2, 0, "move"))
    adopt(draft, told([0, 0, 1, 1, 1, 1, 1]))
    assert draft.groups == [0, 0, 0, 1, 1, 1, 1]


def test_a_new_group_gets_the_next_number_but_what_the_action_was_about_stays_as_said():
    free, said = drafted([0] * 6), drafted([0] * 6)
    said.touched.update(range(6))
    for draft in (free, said):
        adopt(draft, told([0, 0, 0, 1, 1, 1]))
    assert (free.groups, free.next_group) == ([0, 0, 0, 1, 1, 1], 2)
    assert said.groups == [0] * 6


@given(
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
    st.lists(st.integers(-1, 4), min_size=8, max_size=8),
    st.sets(st.integers(0, 7)),
    st.floats(0, 0.99),
)
def test_claimed_photos_never_move_and_nothing_is_put_beside_them(groups, labels, claimed, sure):
    draft = drafted(groups)
    draft.claim(claimed)
    owned = {groups[item] for item in claimed}
    adopt(draft, told(labels, sure=sure))
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
    adopt(draft, told([0, 0, -1, 1, 1, 1], sure=0.5))
    assert draft.groups == [0, 0, 0, 1, 1, 1]
