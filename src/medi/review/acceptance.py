"""Accept named groups in a review: which photos are sure enough, and what the journal says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from medi.core.errors import InputError
from medi.discover.result import is_doubtful
from medi.discover.transfer import transferring
from medi.review import accept as accepting
from medi.review.actions import RefusedError, group_of, name_of, whole
from medi.review.draft import Draft
from medi.review.state import ReviewState

if TYPE_CHECKING:
    from medi.review.session import Review


class Wish(NamedTuple):
    """What a person wants to be accepted.

    Attributes:
        groups: Numbers of groups that are one class, and its name; none for all groups that have a name.
        into: The folder of known classes.
        move: Take the photos out of the pool.
        doubtful: Accept doubtful photos too.
    """

    groups: Sequence[tuple[Sequence[int], str]]
    into: Path
    move: bool = False
    doubtful: bool = False

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Wish:
        """What a request holds."""
        groups, into, move, doubtful = (body.get(key) for key in cls._fields)
        if not isinstance(groups, list) or not isinstance(into, str):
            raise RefusedError("Say “groups”, each a list of numbers and a name, “into”, “move” and “doubtful”.")
        return cls([_group(one) for one in groups], Path(into), move is True, doubtful is True)


class Accepted(NamedTuple):
    """What was done.

    Attributes:
        now: How many photos were accepted, by class.
        before: How many had been accepted before.
        doubtful: How many were left out because of doubt.
        elsewhere: Photos that were left out, because another known class has the same one; and where.
    """

    now: Mapping[str, int]
    before: int
    doubtful: int
    elsewhere: Sequence[tuple[str, str]] = ()


def _group(asked: Any) -> tuple[list[int], str]:
    """Numbers of groups and a name, as a request has them."""
    if not isinstance(asked, list) or len(asked) != 2 or not isinstance(asked[0], list) or not asked[0]:
        raise RefusedError("A group is a list of numbers, and a name.")
    return [whole(number, "group") for number in asked[0]], name_of(asked[1])


def chosen(review: Review, groups: Sequence[Any] | None) -> dict[int, str]:
    """The class of each item of some groups; None stands for all that have a name, and for marked photos."""
    draft = Draft(review.history.state)
    numbers = sorted(draft.names) if groups is None else [group_of(group, draft) for group in groups]
    for group in numbers:
        if group not in draft.names:
            raise RefusedError(f"Group {group} has no name: name it first.")
    members = draft.members
    names = {item: draft.names[group] for group in numbers for item in members[group]}
    return names if groups is not None else names | {item: draft.known[item] for item in draft.marked}


def accept(
    review: Review, groups: Sequence[Any] | None, into: Path, *, move: bool = False, doubtful: bool = False
) -> Accepted:
    """Make named groups known classes: all that have a name, or some; doubtful photos only where that is asked for."""
    with review.lock:
        draft = Draft(review.history.state)
        wanted = chosen(review, groups)
        new = {item: name for item, name in wanted.items() if draft.accepted.get(item) != name}
        names = new if doubtful else {item: name for item, name in new.items() if not _in_doubt(draft, item)}
        left = len(new) - len(names)
        files, elsewhere = accepting.places(review.folder, review.history, names, into, move=move)
        names = {item: name for item, name in names.items() if item not in elsewhere}
        there = [(review.setting.paths[item], str(path)) for item, path in elsewhere.items()]
        done = Accepted(Counter(names.values()), len(wanted) - len(new), left, there)
        if not names:
            raise RefusedError(_why_nothing(done))
        draft.accepted |= names
        draft.questions = review.history.state.questions
        text = f"Accepted {review.setting.call_all(list(names))} into {into}."
        text += f" {left} doubtful ones were left out." if left else ""
        text += "".join(f" {photo} is in {place} already." for photo, place in there[:3])
        draft.note = {"text": text}
        line = {
            "action": "accept",
            "groups": {str(draft.groups[item]): name for item, name in names.items() if draft.groups[item] >= 0},
            "into": str(into.absolute()),
            "files": [list(file) for file in files],
            "gave_up": [list(file) for file in accepting.given_up(review.history, files)],
            "effect": draft.effect(),
        }
        transfer = accepting.acceptance(review.folder, review.history, line)
        with transferring(review.folder.path, transfer):
            review.history.write(line | {"made": transfer.makes})
        return done


def _why_nothing(done: Accepted) -> str:
    if done.elsewhere:
        photo, place = done.elsewhere[0]
        return f"{photo} is a known photo already: delete {place} to accept it under another name."
    if done.doubtful:
        return f"{done.doubtful} photos are doubtful: confirm them first."
    return "There is nothing new to accept: name a group first."


def accept_named(review: Review, wish: Wish) -> Accepted:
    """Merge and name groups where that is asked for, and accept them; nobody saw their photos, so none is confirmed."""
    with review.lock:
        review.check_open()
        state = review.history.state
        for numbers, name in wish.groups:
            accepting.folder_name(name)
            _check_there(review, numbers)
        if not wish.groups and not state.names and not state.marked:
            path = review.folder.path
            raise InputError(f"no group of {path} has a name: name some with `medi review {path}`, or say 2=NAME.")
        groups = [_named(review, numbers, name) for numbers, name in wish.groups] or None
        wanted, state = chosen(review, groups), review.history.state
        new = [item for item, name in wanted.items() if state.accepted.get(item) != name]
        doubtful = 0 if wish.doubtful else sum(_in_doubt(state, item) for item in new)
        if wanted and len(new) == doubtful:
            return Accepted({}, len(wanted) - len(new), doubtful)
        return accept(review, groups, wish.into, move=wish.move, doubtful=wish.doubtful)


def _in_doubt(state: ReviewState, item: int) -> bool:
    return is_doubtful(state.confidence[item]) and item not in state.held


def _check_there(review: Review, groups: Sequence[int]) -> None:
    """Refuse numbers that no group has; one that was merged into another of them is the same by now."""
    there = review.history.state.members
    merged = [set(line["groups"]) for line in review.history.done if line["action"] == "merge"]
    for group in groups:
        into = {other for some in merged if group in some for other in some}
        if group not in there and not into & set(groups) & there.keys():
            has = ", ".join(map(str, there)) or "none"
            raise InputError(f"{review.folder.path} has no group {group}: its groups are {has}.")


def _named(review: Review, groups: Sequence[int], name: str) -> int:
    """Merge and name groups in the journal, where they are not so already."""

    def act(action: str, **arguments: Any) -> None:
        review.act({"seq": review.history.seq, "action": action, **arguments})

    groups = [group for group in groups if group in review.history.state.members]
    if len(groups) > 1:
        act("merge", groups=groups, items=[])
    group = next(group for group in groups if group in review.history.state.members)
    if review.history.state.names.get(group) != name:
        act("name", group=group, name=name, items=[])
    return group
