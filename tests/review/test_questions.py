"""The question worth most, and what grouping again may change."""

import numpy as np
from reviews import Regrouped

from medi.review.constraints import Word
from medi.review.draft import Draft
from medi.review.questions import medoid, questions
from medi.review.regrouping import adopt, belonging, belonging_to
from medi.review.state import State

TWO = [0, 0, 0, 0, 1, 1, 1, 1, 2]
SURE = np.tile(TWO, (10, 1))


def halved(left: int, right: int) -> np.ndarray:
    """Half of the samples hold two groups for one."""
    samples = SURE.copy()
    samples[:5][samples[:5] == right] = left
    return samples


def test_nothing_is_asked_where_nothing_is_in_doubt():
    assert questions(SURE, TWO, []) == ()
    assert questions(np.empty((0, 9), dtype=np.int64), TWO, []) == ()


def test_two_groups_that_may_be_one_are_asked_about_by_what_stands_for_them():
    first = questions(halved(0, 1), TWO, [])[0]
    assert first == (0, 4, 0.5)


def test_many_photos_are_worth_more_than_one():
    samples = halved(0, 1)
    samples[::2, 8] = 0
    asked = questions(samples, TWO, [])
    assert {asked[0][0], asked[0][1]} == {0, 4}
    assert any(8 in pair[:2] for pair in asked)


def test_what_follows_from_what_was_said_is_not_asked():
    samples = halved(0, 1)
    apart = [Word(True, 0, 3, "answer"), Word(True, 4, 6, "answer"), Word(False, 3, 6, "answer")]
    assert all({a, b} != {0, 4} for a, b, _ in questions(samples, TWO, apart))
    together = [Word(True, 0, 4, "answer")]
    assert all({a, b} != {0, 4} for a, b, _ in questions(samples, TWO, together))
    assert questions(samples, TWO, [], frozenset(range(9))) == ()


def test_a_mixed_group_is_asked_about_inside():
    samples = np.tile([0, 0, 0, 0, 0, 0], (10, 1))
    samples[:5, 4:] = 7
    a, b, probability = questions(samples, [0] * 6, [])[0]
    assert len({a, b} & {4, 5}) == 1
    assert probability == 0.5


def test_the_medoid_is_with_the_others_most_often():
    samples = np.array([[0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]])
    assert medoid(samples, np.arange(4)) == 0


def test_belonging_is_the_share_of_others_that_are_together():
    samples = np.array([[0, 0, 1, 2], [0, 0, 0, 2]])
    assert belonging(samples, np.array([0, 0, 0, -1])).tolist() == [0.75, 0.75, 0.5, 0.0]
    assert belonging(samples, np.array([0, 1, 2, 3])).tolist() == [1.0] * 4
    assert belonging_to(samples, [0, 1]).tolist() == [1.0, 1.0, 0.5, 0.0]


def regrouped(labels: list[int], samples: np.ndarray | None = None, sure: float = 0.9) -> Regrouped:
    kinds = tuple("novel" if label >= 0 else "alone" for label in labels)
    samples = np.tile(np.where(np.array(labels) < 0, 100 + np.arange(len(labels)), labels), (10, 1))
    return Regrouped(kinds, tuple(labels), ("",) * len(labels), (sure,) * len(labels), samples)


def drafted(groups: list[int], words=()) -> Draft:
    state = State(
        tuple(groups), ("",) * len(groups), (0.7,) * len(groups), words=tuple(words), next_group=max(groups) + 1
    )
    return Draft(state)


def test_groups_keep_their_numbers_whatever_the_labels_are():
    draft = drafted([0, 0, 0, 1, 1, 1])
    adopt(draft, regrouped([5, 5, 5, 3, 3, 3]))
    assert draft.groups == [0, 0, 0, 1, 1, 1]
    assert draft.confidence == [0.9] * 6
    assert draft.next_group == 2


def test_free_photos_move_and_settled_ones_do_not():
    words = [Word(True, 2, 0, "move")]
    draft = drafted([0, 0, 0, 0, 1, 1, 1], words)
    adopt(draft, regrouped([0, 0, 1, 1, 1, 1, 1]))
    assert draft.groups == [0, 0, 0, 1, 1, 1, 1]


def test_a_new_group_gets_the_next_number():
    draft = drafted([0, 0, 0, 0, 0, 0])
    adopt(draft, regrouped([0, 0, 0, 1, 1, 1]))
    assert draft.groups == [0, 0, 0, 1, 1, 1]
    assert draft.next_group == 2


def test_what_the_action_was_about_stays_as_said():
    draft = drafted([0, 0, 0, 0, 0, 0])
    draft.touched.update(range(6))
    adopt(draft, regrouped([0, 0, 0, 1, 1, 1]))
    assert draft.groups == [0] * 6


def test_a_doubtful_change_is_not_made():
    draft = drafted([0, 0, 0, 1, 1, 1])
    adopt(draft, regrouped([0, 0, -1, 1, 1, 1], sure=0.5))
    assert draft.groups == [0, 0, 0, 1, 1, 1]
