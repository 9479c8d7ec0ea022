"""Events make the state: they replay to the byte, undo to the byte, and always obey what was said."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reviews import act, made_up_review, toy_pool

from medi.core.errors import InputError
from medi.review.actions import RefusedError
from medi.review.constraints import Word
from medi.review.discovery_folder import read_folder
from medi.review.session import Review
from medi.review.state import Offer, Question, ReviewState, apply, effect


def seen(review: Review) -> str:
    """Everything that a page gets to see, but the number of the last line."""
    return json.dumps({**review.state(), "seq": 0})


def group_with(state: dict, item: int) -> dict | None:
    return next((group for group in state["groups"] if item in group["items"]), None)


@pytest.fixture
def review(tmp_path):
    return made_up_review(tmp_path)


@pytest.fixture
def plain(tmp_path):
    """Without a pool: what is done changes nothing else."""
    return made_up_review(tmp_path, learning=False)


def test_the_state_begins_as_clusters_csv_has_it(review):
    state = review.state()
    assert [group["items"] for group in state["groups"]] == [[*range(6)], [*range(6, 11)], [*range(11, 15)]]
    assert [item["kind"] for item in state["items"]] == ["novel"] * 15 + ["known"] * 2 + ["alone"] * 2
    assert state["seq"] == 0


def test_a_name_stays_and_an_empty_one_takes_it_away(review):
    assert act(review, "name", group=1, name="  sea\n  holly ")["groups"][1]["name"] == "sea holly"
    assert act(review, "name", group=1, name="")["groups"][1]["name"] is None


def test_a_merge_joins_exactly_the_groups_and_keeps_the_name(review):
    act(review, "name", group=1, name="aster")
    state = act(review, "merge", groups=[0, 1])
    merged = group_with(state, 0)
    assert merged["items"] == list(range(11))
    assert merged["name"] == "aster"


def test_a_split_divides_into_as_many_parts_as_asked_and_a_preview_shows_them(review):
    act(review, "merge", groups=[0, 2])
    parts = review.preview_split(0, 2)
    state = act(review, "split", group=0, parts=2)
    assert sorted(map(sorted, parts)) == sorted(group_with(state, item)["items"] for item in (0, 11))
    assert len(state["groups"]) == 3


def test_a_split_can_be_given_as_lists(review):
    state = act(review, "split", group=0, parts=[[0, 1], [2, 3, 4, 5]])
    assert group_with(state, 0)["items"] == [0, 1]
    assert group_with(state, 2)["items"] == [2, 3, 4, 5]


def test_moved_photos_are_where_they_were_put_and_stay_there(review):
    state = act(review, "move", items=[0, 1], group=2)
    assert group_with(state, 0)["items"] == [0, 1, 11, 12, 13, 14]
    state = act(review, "answer", a=2, b=7, same=False)
    assert group_with(state, 0)["id"] == group_with(state, 1)["id"] == 2
    state = act(review, "move", items=[3], group=None)
    assert state["items"][3]["kind"] == "alone"
    assert state["items"][3]["aside"]


def test_a_rejected_photo_never_comes_back_to_its_group(review):
    for action, arguments in (("reject", {"items": [3, 15]}), ("merge", {"groups": [1, 2]}), ("regroup", {})):
        state = act(review, action, **arguments)
        assert 3 not in group_with(state, 0)["items"]
        assert state["items"][15]["kind"] == "alone", "nor is a known class proposed again"


def test_answers_join_and_part_photos_at_once(review):
    state = act(review, "answer", a=0, b=6, same=True)
    assert group_with(state, 0) == group_with(state, 6)
    state = act(review, "answer", a=12, b=13, same=False)
    assert group_with(state, 12) != group_with(state, 13) or group_with(state, 12) is None


def test_none_of_several_keeps_a_photo_apart_from_all_of_them(review):
    state = act(review, "answer", a=0, b=1, same=False, others=[6, 11])
    assert all(group_with(state, 0) != group_with(state, other) for other in (1, 6, 11))
    assert {(word.a, word.b) for word in review.history.state.words if not word.same} >= {(0, 1), (0, 6), (0, 11)}


def test_a_contradiction_is_named_and_can_be_insisted_on(plain):
    act(plain, "answer", a=0, b=1, same=True)
    act(plain, "answer", a=1, b=2, same=True)
    before = seen(plain)
    with pytest.raises(RefusedError, match=r"000\.jpg.*001\.jpg.*002\.jpg") as refused:
        act(plain, "answer", a=0, b=2, same=False)
    assert refused.value.overridable
    assert seen(plain) == before
    state = act(plain, "answer", a=0, b=2, same=False, override=True)
    assert group_with(state, 0) != group_with(state, 2) or group_with(state, 0) is None
    assert len(state["note"]["overruled"]) == 1


def test_a_merge_overrules_an_earlier_answer_and_says_so(plain):
    act(plain, "answer", a=0, b=6, same=False)
    state = act(plain, "merge", groups=[0, 1])
    assert group_with(state, 0)["items"] == list(range(11))
    assert len(state["note"]["overruled"]) == 1


def test_photos_marked_as_a_known_class_stay_so(review):
    for state in (act(review, "known", items=[2, 17], name="tulip"), act(review, "regroup")):
        assert [state["items"][item]["known"] for item in (2, 17)] == ["tulip", "tulip"]


def test_a_new_group_of_photos_from_anywhere(review):
    state = act(review, "group", items=[0, 6, 17], name="odd ones")
    assert group_with(state, 0) == {**group_with(state, 0), "items": [0, 6, 17], "name": "odd ones"}


def test_checking_confirms_and_rejects_in_one_step(review):
    state = act(review, "check", group=0, yes=[0, 1], no=[5])
    assert 5 not in group_with(state, 0)["items"]
    assert [state["items"][item]["confidence"] for item in (0, 1)] == [1.0, 1.0]
    assert 5 not in review.candidates(group_with(state, 0)["id"])
    assert 5 in group_with(act(review, "undo"), 0)["items"]


def test_checking_comes_to_an_end_whatever_is_said(review):
    act(review, "group", items=[17])
    act(review, "answer", a=6, b=7, same=True)
    for group in (0, 3):
        for _ in range(25):
            if group not in review.history.state.members or not (waiting := review.candidates(group)):
                break
            yes = [waiting[0]] if waiting[0] in (*range(6), 17) else []
            act(review, "check", group=group, yes=yes, no=[] if yes else [waiting[0]])
        else:
            pytest.fail("still the same photos")


def test_a_named_group_of_one_photo_keeps_it(review):
    act(review, "group", items=[17], name="odd one")
    act(review, "name", group=0, name="aster")
    state = act(review, "regroup")
    assert group_with(state, 17)["name"] == "odd one"


def test_what_was_said_reaches_the_pool(review):
    act(review, "answer", a=0, b=6, same=False)
    act(review, "known", items=[1], name="rose")
    act(review, "move", items=[2], group=None)
    said = review.pool.said[-1]
    assert (0, 6) in said.apart
    assert said.known == {1: "rose"}
    assert said.aside == {2}


def test_a_class_that_the_pool_does_not_know_is_no_group_to_it(tmp_path):
    pool = toy_pool()
    review = made_up_review(tmp_path, pool)
    (tmp_path / "known" / "new class").mkdir()
    again = Review(read_folder(review.folder.path), pool)
    state = act(again, "known", items=[0], name="new class")
    assert state["items"][0]["known"] == "new class"
    assert pool.said[-1].known == {}
    assert pool.said[-1].aside == {0}


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("name", {"group": 99, "name": "x"}),
        ("name", {"group": True, "name": "x"}),
        ("name", {"group": 0, "name": 5}),
        ("name", {"group": 0, "name": "\ud800"}),
        ("merge", {"groups": [0]}),
        ("merge", {"groups": "01"}),
        ("split", {"group": 0, "parts": 1}),
        ("split", {"group": 0, "parts": 7}),
        ("split", {"group": 0, "parts": [[0, 1], [2]]}),
        ("split", {"group": 0, "parts": 2.0}),
        ("move", {"items": [], "group": 0}),
        ("move", {"items": [0]}),
        ("move", {"items": [-1], "group": 0}),
        ("reject", {"items": [18]}),
        ("reject", {"items": {"0": 1}}),
        ("known", {"items": [0], "name": "no such class"}),
        ("check", {"group": 0, "yes": [1], "no": [1]}),
        ("check", {"group": 0, "yes": [], "no": []}),
        ("answer", {"a": 0, "b": 0, "same": True}),
        ("answer", {"a": 0, "b": 1, "same": 1}),
        ("undo", {}),
        ("fly", {}),
        (None, {}),
        (["name"], {}),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(review, action, arguments):
    before = seen(review)
    with pytest.raises(RefusedError, match=r"\.$"):
        act(review, action, **arguments)
    assert seen(review) == before
    assert not review.folder.journal.exists()


ITEMS = st.lists(st.integers(0, 18), min_size=1, max_size=4)


def places(review: Review) -> dict[int, tuple[int, str]]:
    return dict(enumerate(review.history.state.places))


@pytest.mark.parametrize(
    ("action", "arguments", "claims"),
    [
        ("name", {"group": 0, "name": "aster"}, set(range(6))),
        ("name", {"group": 0, "name": "aster", "items": [0, 1]}, {0, 1}),
        ("merge", {"groups": [0, 1]}, set(range(11))),
        ("move", {"items": [11, 12], "group": 0}, {11, 12}),
        ("check", {"group": 0, "yes": [2, 3], "no": [5]}, {2, 3}),
        ("group", {"items": [0, 6], "name": "odd"}, {0, 6}),
        ("confirm", {"items": [0, 1, 7, 15]}, {0, 1, 7, 15}),
        ("known", {"items": [0, 15], "name": "rose"}, {0, 15}),
    ],
)
def test_what_a_person_confirmed_is_sure_stays_and_is_not_asked_about(review, action, arguments, claims):
    state = act(review, action, **arguments)
    assert {item["id"] for item in state["items"] if item.get("held")} >= claims
    assert {state["items"][item]["confidence"] for item in claims} == {1.0}
    before = {item: places(review)[item] for item in claims}
    for more, others in (("reject", {"items": [13]}), ("answer", {"a": 9, "b": 14, "same": True}), ("regroup", {})):
        state = act(review, more, **others)
        assert {item: places(review)[item] for item in claims} == before
        assert not {end for question in state["questions"] for end in (question["a"], question["b"])} & claims


def test_a_name_counts_as_a_look_at_the_photos_that_were_shown_and_no_others(review):
    state = act(review, "name", group=0, name="aster")
    assert group_with(state, 0)["finished"]
    assert group_with(state, 0)["confidence"] == 1
    assert "finished" not in group_with(state, 6)
    with pytest.raises(RefusedError, match="load the page again"):
        act(review, "name", group=0, name="aster", items=[0, 6])


def test_a_photo_that_is_taken_out_of_a_confirmed_group_is_sure_no_more(plain):
    act(plain, "name", group=0, name="aster")
    state = act(plain, "reject", items=[3])
    assert state["items"][3]["confidence"] < 1
    assert "held" not in state["items"][3]


def test_known_photos_can_be_confirmed_and_photos_on_their_own_cannot(review):
    state = act(review, "confirm", items=[15, 16])
    assert [state["items"][item]["held"] for item in (15, 16)] == [True, True]
    with pytest.raises(RefusedError, match="nothing to confirm"):
        act(review, "confirm", items=[17])


REQUESTS = st.one_of(
    st.fixed_dictionaries({"action": st.just("name"), "group": st.integers(0, 8), "name": st.text(max_size=5)}),
    st.fixed_dictionaries({"action": st.just("merge"), "groups": st.lists(st.integers(0, 8), min_size=2, max_size=3)}),
    st.fixed_dictionaries({"action": st.just("split"), "group": st.integers(0, 8), "parts": st.integers(2, 3)}),
    st.fixed_dictionaries({"action": st.just("move"), "items": ITEMS, "group": st.none() | st.integers(0, 8)}),
    st.fixed_dictionaries({"action": st.sampled_from(["reject", "group", "confirm"]), "items": ITEMS}),
    st.fixed_dictionaries({"action": st.just("known"), "items": ITEMS, "name": st.sampled_from(["rose", "tulip"])}),
    st.fixed_dictionaries({"action": st.just("check"), "group": st.integers(0, 8), "yes": ITEMS, "no": ITEMS}),
    st.fixed_dictionaries(
        {"action": st.just("answer"), "a": st.integers(0, 18), "b": st.integers(0, 18), "same": st.booleans()}
    ),
    st.fixed_dictionaries({"action": st.sampled_from(["undo", "redo", "regroup"])}),
)


@settings(max_examples=15, deadline=None)
@given(st.lists(REQUESTS, min_size=50, max_size=50), st.booleans())
def test_fifty_actions_and_their_undos_end_where_they_began(requests, learning):
    with TemporaryDirectory() as folder:
        pool = toy_pool()
        review = made_up_review(Path(folder), pool, learning=learning, photos=False)
        begun, passed = seen(review), [seen(review)]
        for request in requests:
            try:
                review.act({**request, "seq": review.history.seq})
            except RefusedError:
                assert seen(review) == passed[-1]
                continue
            obeys(review)
            passed = [*passed[: len(review.history.done)], seen(review)]
        ended = seen(review)
        assert seen(Review(read_folder(review.folder.path), review.pool)) == ended  # as another process finds it
        steps = len(review.history.done)
        for number in reversed(range(steps)):
            act(review, "undo")
            assert seen(review) == passed[number]
        assert seen(review) == begun
        for _ in range(steps):
            act(review, "redo")
        assert seen(review) == ended
        numbers = [json.loads(line)["seq"] for line in review.folder.journal.open()]
        assert numbers == list(range(1, review.history.seq + 1))


ITEM, TEXT = st.integers(0, 3), st.text(max_size=3)
STATES = st.builds(
    ReviewState,
    groups=st.lists(st.integers(-1, 3), min_size=4, max_size=4),
    known=st.lists(TEXT, min_size=4, max_size=4),
    confidence=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    names=st.dictionaries(ITEM, TEXT),
    words=st.lists(st.builds(Word, st.booleans(), ITEM, ITEM, TEXT), max_size=4),
    claimed=st.sets(ITEM),
    offers=st.lists(st.builds(Offer, ITEM, st.lists(ITEM, max_size=3), ITEM, TEXT), max_size=3),
    aside=st.sets(ITEM),
    marked=st.sets(ITEM),
    refused=st.sets(st.tuples(ITEM, TEXT)),
    accepted=st.dictionaries(ITEM, TEXT),
    next_group=ITEM,
    questions=st.none()
    | st.lists(
        st.builds(
            Question,
            *(ITEM, ITEM, st.floats(0, 1), st.just("which"), st.floats(0, 9)),
            items=st.lists(ITEM, max_size=2),
            known=st.lists(st.tuples(ITEM, TEXT).map(list), max_size=2),
            chances=st.lists(st.floats(0, 1), max_size=3),
        ),
        max_size=3,
    ),
    note=st.dictionaries(TEXT, TEXT),
)


@given(STATES, STATES)
def test_what_a_line_holds_leads_from_any_state_to_any_other(before, after):
    assert apply(before, json.loads(json.dumps(effect(before, after)))) == after


def obeys(review: Review) -> None:
    """Nothing shown contradicts what was said."""
    state = review.history.state
    for word in state.words:
        if word.same:
            assert state.groups[word.a] == state.groups[word.b] >= 0
        else:
            assert state.groups[word.a] != state.groups[word.b] or state.groups[word.a] < 0
    assert all(state.groups[item] < 0 and not state.known[item] for item in state.aside)
    assert all(state.known[item] for item in state.marked)
    assert set(state.names) <= set(state.groups)
    assert all(state.groups[item] >= 0 and state.confidence[item] == 1 for item in state.claimed)
    for offer in state.offers:
        assert offer.beside in state.groups
        assert not state.settled.intersection(offer.items)
    assert all(group < state.next_group for group in state.groups)


def test_a_cut_last_line_is_left_out_and_other_damage_is_named(review):
    act(review, "name", group=0, name="a")
    act(review, "name", group=1, name="b")
    journal = review.folder.journal
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-20])
    again = Review(read_folder(review.folder.path), review.pool)
    assert again.state()["seq"] == 1
    act(again, "name", group=1, name="c")
    assert [json.loads(line)["name"] for line in journal.open()] == ["a", "c"]
    journal.write_bytes(whole.replace(b'"seq": 1', b'"seq": 7'))
    with pytest.raises(InputError, match="line 1 is damaged"):
        Review(read_folder(review.folder.path), review.pool)


def test_a_journal_of_another_discovery_is_not_replayed(review):
    act(review, "name", group=0, name="a")
    clusters = review.folder.path / "clusters.csv"
    clusters.write_text(clusters.read_text().replace("novel,2", "novel,1"))
    with pytest.raises(InputError, match="belongs to another discovery"):
        Review(read_folder(review.folder.path), review.pool)
